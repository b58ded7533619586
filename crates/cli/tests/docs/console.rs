//! Somebody who does what a page says: a home, a shell, and what they see.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use tempfile::TempDir;

use super::matching::{fits, shows};
use super::{Block, Page, transcript};
use crate::support::sandbox::visible_folder;
use crate::support::{MCPZ, PATIENCE};

/// What a shell says after each command.
const DONE: char = '\u{1e}';

/// Blocks for what a test does not have: an image to build, a cluster, an init, a proxy.
const NOT_RUN: &[&str] = &["sh", "nginx", "yaml"];

/// Where we are, in a home.
const PROGRAM: &str = ".cargo/bin/mcpz";

/// Where the servers of pages are, for which there is another port each time.
const ADDRESS: &str = "127.0.0.1:8000";

/// Where each client shows that it is here.
const CLIENTS: &[&str] = &[
    ".claude",
    ".codex",
    ".config/Claude",
    ".config/Code/User",
    ".config/goose",
    ".config/zed",
    ".cursor",
    ".gemini",
    ".qwen",
];

/// A person at home in `/home/me`, with all clients and a project, who has just installed us.
pub struct Person {
    folder: TempDir,
    port: u16,
    confines: bool,
}

impl Person {
    pub fn new() -> Self {
        let folder = visible_folder();
        let mut person = Self { folder, port: free_port(), confines: false };
        let home = person.home();
        for name in CLIENTS.iter().chain(&[
            "project/.git",
            ".cargo/bin",
            ".cache/pip",
            ".config/mcpz",
            ".ssh",
        ]) {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::write(home.join(".ssh/id_ed25519"), "a key\n").unwrap();
        symlink(MCPZ, home.join(PROGRAM)).unwrap();
        let mut doctor = person.command("mcpz doctor --sandbox workspace --net example.org");
        let found = doctor.output().unwrap().stdout;
        person.confines = String::from_utf8_lossy(&found).contains("fully supported");
        person
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home/me")
    }

    /// A line for the shell, as they would type it.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["--norc", "--noprofile", "-c", line])
            .current_dir(self.home().join("project"));
        let path =
            format!("{}:/usr/local/bin:/usr/bin:/bin", self.home().join(".cargo/bin").display());
        command.env_clear().env("HOME", self.home()).env("PATH", path).env("LANG", "C.UTF-8");
        command.env("XDG_STATE_HOME", self.home().join(".local/state"));
        command
    }

    /// What a page says, as it is here.
    pub fn here(&self, text: &str) -> String {
        let home = self.home().display().to_string();
        text.replace("/home/me", &home).replace(ADDRESS, &self.address())
    }

    /// What there is here, as a page says it.
    pub fn told(&self, text: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let program = fs::canonicalize(MCPZ).unwrap().display().to_string();
        let text = text.replace(&program, &format!("/home/me/{PROGRAM}"));
        text.replace(&folder, "").replace(&self.address(), ADDRESS)
    }

    /// Does what a page says. The answer is what was not as it is shown.
    pub fn follow(&self, page: &Page) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut shell = Shell::start(self.command(
            "exec 2>&1; while read -r file; do \
             . \"$file\" </dev/null; code=$?; printf '\\036'; done; \
             kill $(jobs -p) 2>/dev/null; wait",
        ));
        for block in &page.blocks {
            let confined = block.text.contains("--sandbox") && !block.text.contains("install");
            if confined && !self.confines {
                continue;
            }
            let differences = match block.kind.as_str() {
                "console" => self.type_in(block, &mut shell),
                "toml" => self.configure(block),
                "verdicts" => self.judge(block),
                "mcp" => transcript::replay(self, block),
                kind if NOT_RUN.contains(&kind) => Vec::new(),
                kind => vec![format!("`{kind}` is not one of the kinds of blocks there are")],
            };
            let place = format!("{}, line {}", page.path.display(), block.line);
            wrong.extend(differences.iter().map(|what| format!("{place}: {what:.4000}")));
        }
        shell.leave();
        wrong
    }

    fn type_in(&self, block: &Block, shell: &mut Shell) -> Vec<String> {
        let file = self.folder.path().join("command");
        let mut wrong = Vec::new();
        for (command, shown) in commands(&block.text) {
            let typed = shell.recalled(&self.here(&command));
            fs::write(&file, format!("(exit ${{code:-0}})\n{typed}")).unwrap();
            shell.ask(&file.display().to_string());
            // What goes on says what it says after the shell has gone on.
            let goes_on = command.trim_end().ends_with('&') && !shown.is_empty();
            let whole = |seen: &str| seen.ends_with('\n') && shows(&shown, &self.told(seen));
            let seen = shell.answer(|seen| !goes_on || whole(seen));
            let seen = self.told(&seen);
            if !shows(&shown, &seen) {
                wrong.push(format!("$ {command}shows\n{shown}but there was\n{seen}"));
            }
        }
        wrong
    }

    /// Writes the configuration file, and has it read.
    fn configure(&self, block: &Block) -> Vec<String> {
        fs::write(self.home().join(".config/mcpz/config.toml"), self.here(&block.text)).unwrap();
        let output = self.command("mcpz check true").output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        Vec::from_iter((!complaint.is_empty()).then_some(complaint))
    }

    fn judge(&self, block: &Block) -> Vec<String> {
        let mut wrong = Vec::new();
        for line in block.text.lines().filter(|line| !line.is_empty()) {
            let (verdict, command) = line.split_once(' ').unwrap();
            let mut check = self.command("mcpz check \"$0\"");
            let output = check.arg(self.here(command.trim())).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            if said.lines().next() != Some(verdict) {
                wrong.push(format!("{line}\nbut it was\n{said}"));
            }
        }
        wrong
    }
}

/// A port that is free, and below those that the system gives away before a server here takes it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1000) as u16 * 20;
    let mut ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// The commands of a block, each with what it is followed by. One that ends with `\` goes on.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((format!("{command}\n"), String::new())),
            (None, Some((command, shown))) if shown.is_empty() && command.ends_with("\\\n") => {
                *command += &format!("{line}\n");
            }
            (None, Some((_, shown))) => *shown += &format!("{line}\n"),
            (None, None) => panic!("{line} is not behind a command"),
        }
    }
    found
}

/// A shell that is told where its next command is, and says when it is done.
struct Shell {
    child: Child,
    stdin: Option<ChildStdin>,
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// Every word that was printed.
    words: Vec<String>,
}

impl Shell {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, pieces) = channel();
        let mut stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                let _ = sender.send(buffer[..length].to_vec());
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, pieces, seen: Vec::new(), words: Vec::new() }
    }

    /// What is typed, in which a word with `…` is one that was printed.
    fn recalled(&self, line: &str) -> String {
        let recall = |word: &str| match word.contains('…') {
            true => self.words.iter().rev().find(|known| fits(word, known)).cloned(),
            false => None,
        };
        let words = line.split(' ').map(|word| recall(word.trim_end()).unwrap_or(word.to_owned()));
        words.collect::<Vec<_>>().join(" ")
    }

    fn ask(&mut self, file: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{file}").unwrap();
    }

    /// What was printed until the command was done, and what was waited for was seen.
    fn answer(&mut self, enough: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = String::from_utf8_lossy(&self.seen);
            let plain = text.replace(DONE, "");
            let left = until.saturating_duration_since(Instant::now());
            let done = text.contains(DONE) && enough(&plain);
            match (done || left.is_zero()).then_some(plain) {
                Some(plain) => {
                    self.seen.clear();
                    self.words.extend(plain.split_whitespace().map(str::to_owned));
                    return plain;
                }
                None => self.seen.extend(self.pieces.recv_timeout(left).unwrap_or_default()),
            }
        }
    }

    /// Ends it with what it has in the background.
    fn leave(mut self) {
        self.stdin = None;
        self.child.wait().unwrap();
    }
}
