//! A client for the built binary, and a look at the process table.

#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "tests, each of which uses a part of this"
)]

pub mod audit;
pub mod collector;
pub mod daemon;
pub mod disk;
pub mod http;
pub mod install;
pub mod kills;
pub mod locked;
pub mod piped;
pub mod place;
pub mod reserved;
pub mod sandbox;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for anything on a busy machine; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const MCPZ: &str = env!("CARGO_BIN_EXE_mcpz");

/// A running `mcpz server shell` and its client.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What came while something else was waited for.
    pub seen: VecDeque<Value>,
    next_id: i64,
    /// Where it keeps its records, unless the test has said where.
    pub state: TempDir,
}

/// A folder for the records of a server: none of a test's belong into anybody's home.
pub fn state() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A folder whose path can stand in rules and commands as it is: one without blanks.
pub fn plain_folder() -> TempDir {
    let is_plain = !std::env::temp_dir().to_string_lossy().contains(char::is_whitespace);
    if is_plain { TempDir::new().unwrap() } else { TempDir::new_in("/tmp").unwrap() }
}

/// A folder in which everybody may write. Where temporary files are, others than root may not look.
pub fn open_folder() -> TempDir {
    let folder = match rustix::process::geteuid().is_root() {
        true => TempDir::new_in("/tmp"),
        false => TempDir::new(),
    };
    let folder = folder.unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    folder
}

/// A copy of the program that others can run: the one that was built may be its builder's alone.
pub fn copy_program(folder: &Path) -> PathBuf {
    let program = folder.join("mcpz");
    // Not by this process: another test's child would have the copy open for writing for a moment,
    // and a file that is open for writing is not executed.
    assert!(Command::new("cp").arg(MCPZ).arg(&program).status().unwrap().success());
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program
}

/// Has a command keep its records in a folder, unless the test has said where.
pub fn keep_state_in(command: &mut Command, state: &TempDir) {
    if !command.get_envs().any(|(name, _)| name == "XDG_STATE_HOME") {
        command.env("XDG_STATE_HOME", state.path());
    }
}

impl Server {
    /// Starts a server and shakes hands.
    pub fn start(flags: &[&str]) -> Self {
        let mut server = Self::start_silent(flags);
        server.initialize("2025-11-25");
        server
    }

    /// Starts a server and says nothing yet.
    pub fn start_silent(flags: &[&str]) -> Self {
        Self::from_command(Command::new(MCPZ).args(["server", "shell"]).args(flags))
    }

    /// Starts a server within limits as `ulimit` takes them, and shakes hands.
    pub fn start_limited(limits: &str) -> Self {
        let line = format!("ulimit {limits} && exec \"$0\" server shell");
        let mut server = Self::from_command(Command::new("sh").args(["-c", &line, MCPZ]));
        server.initialize("2025-11-25");
        server
    }

    pub fn from_command(command: &mut Command) -> Self {
        let state = state();
        keep_state_in(command, &state);
        // A configuration for all servers of a test run: the place that their commands run in.
        match std::env::var_os("MCPZ_TEST_CONFIG") {
            Some(config) => command.env("MCPZ_CONFIG", config),
            None => command.env_remove("MCPZ_CONFIG"),
        };
        let mut child = command
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, seen: VecDeque::new(), next_id: 1, state }
    }

    /// Starts a server as an ordinary user, if we are root, and shakes hands. The folder, an open one,
    /// is for the program: where it was built, others may not look.
    pub fn start_ordinary(folder: &Path) -> Self {
        Self::start_ordinary_with(folder, &[])
    }

    pub fn start_ordinary_with(folder: &Path, flags: &[&str]) -> Self {
        let program = copy_program(folder);
        let mut command = Command::new(&program);
        let state = folder.join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::set_permissions(&state, PermissionsExt::from_mode(0o777)).unwrap();
        command.args(["server", "shell"]).args(flags);
        command.current_dir("/").env("XDG_STATE_HOME", &state).env("TMPDIR", &state);
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let mut server = Self::from_command(&mut command);
        server.initialize("2025-11-25");
        server
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        self.notify("notifications/initialized", json!({}));
        answer
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends to a server that may have left.
    pub fn try_send(&mut self, message: &Value) -> std::io::Result<()> {
        self.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes())
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id without waiting.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its answer, result or error.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Starts a call of `execute_command` that reports progress; its id is its token.
    pub fn start_call(&mut self, arguments: Value) -> i64 {
        let token = self.next_id;
        self.ask(
            "tools/call",
            json!({
                "name": "execute_command",
                "arguments": arguments,
                "_meta": {"progressToken": token},
            }),
        )
    }

    /// Calls any tool and returns the whole result.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer["error"].is_null(), "{answer}");
        self.check_reply(name, &answer["result"]["structuredContent"]);
        answer["result"].clone()
    }

    /// Clients refuse a reply that is not what the tool's schema promises.
    fn check_reply(&mut self, name: &str, reply: &Value) {
        let Some(fields) = reply.as_object() else { return };
        let listed = self.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let schema = &tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"];
        if schema.is_null() {
            return;
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(required.as_str().unwrap()), "no {required} in {reply}");
        }
        for (field, value) in fields {
            let property = &schema["properties"][field];
            let kind = property["type"].as_str();
            let fits = match kind {
                // Anything.
                None => *property == json!({}),
                Some("string") => value.is_string(),
                Some("integer") => value.is_i64() || value.is_u64(),
                Some("boolean") => value.is_boolean(),
                Some("array") => value.is_array(),
                Some("object") => value.is_object(),
                _ => false,
            };
            assert!(fits, "{field} is {value}, not {kind:?}");
        }
    }

    /// Calls `execute_command` and returns the whole result.
    pub fn call_raw(&mut self, arguments: Value) -> Value {
        self.tool("execute_command", arguments)
    }

    /// Calls `execute_command` and returns its structure, having checked that the text says the
    /// same.
    pub fn call(&mut self, arguments: Value) -> Value {
        let result = self.call_raw(arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        let structured = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
        structured
    }

    pub fn run(&mut self, command: &str) -> Value {
        self.call(json!({"command": command}))
    }

    pub fn answer(&mut self, id: i64) -> Value {
        self.wait_for(|message| message["id"] == id)
    }

    /// The next message that fits; others are put aside in order.
    pub fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&fits) {
            return self.seen.remove(at).unwrap();
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let message: Value =
                        serde_json::from_str(&line).expect("nothing but protocol on stdout");
                    if fits(&message) {
                        return message;
                    }
                    self.seen.push_back(message);
                }
                Err(RecvTimeoutError::Timeout) => panic!("no answer; {}", self.last_seen()),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the server left; {}", self.last_seen())
                }
            }
        }
    }

    fn last_seen(&self) -> String {
        let last: Vec<_> = self.seen.iter().rev().take(3).map(Value::to_string).collect();
        format!("last seen: {}", last.join(" "))
    }

    /// Waits until the command of this call has printed `text`.
    pub fn wait_for_output(&mut self, token: i64, text: &str) {
        self.wait_for(|message| {
            message["params"]["progressToken"] == token
                && message["params"]["message"].as_str().is_some_and(|said| said.contains(text))
        });
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: &str) {
        kill(signal, self.child.id());
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_until("the server ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `shell_exec` and returns its structure, having checked that the text says the same.
pub fn exec(server: &mut Server, arguments: Value) -> Value {
    let result = server.tool("shell_exec", arguments);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap_or_default(),
        result["structuredContent"],
        "{text}"
    );
    result["structuredContent"].clone()
}

/// Calls `read_file_chunk` and returns its structure.
pub fn read(server: &mut Server, arguments: Value) -> Value {
    server.tool("read_file_chunk", arguments)["structuredContent"].clone()
}

pub fn kill(signal: &str, pid: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
    assert!(sent.unwrap().success());
}

/// What a request of the newest revision says about itself.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

/// Where a command waits until the test drops it.
pub struct Gate(tempfile::NamedTempFile);

impl Gate {
    pub fn new() -> Self {
        Self(tempfile::NamedTempFile::new().unwrap())
    }

    /// The part of the command that waits.
    pub fn wait(&self) -> String {
        format!("while [ -e '{}' ]; do sleep 0.01; done", self.0.path().display())
    }
}

/// Looks again and again until there is something to see.
pub fn wait_until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let mut look = look;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A value to put into a command's environment by which its processes can be told from all others.
pub fn mark() -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    format!("mark-{}-{}", std::process::id(), file.path().file_name().unwrap().display())
}

/// The living processes that carry the mark in their environment, with their command lines.
pub fn survivors(mark: &str) -> Vec<String> {
    processes()
        .filter(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            contains(&environment, mark.as_bytes()) && is_living(process)
        })
        .map(|process| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("{}: {line}", process.display())
        })
        .collect()
}

/// The agents of a server, or what contains them.
pub fn agents(server: &Server) -> Vec<u32> {
    let mut below = children(server.child.id());
    below.retain(|pid| ["mcpz-agent", "bwrap"].contains(&&*name(*pid)));
    below
}

/// The name of a process, empty if it has ended.
pub fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// The children of a process, whose ids are `parent`'s in their `stat`.
pub fn children(parent: u32) -> Vec<u32> {
    processes()
        .filter(|process| fields(process).is_some_and(|(_, ppid)| ppid == parent))
        .filter_map(|process| process.file_name()?.to_str()?.parse().ok())
        .collect()
}

/// The parent of a process, unless that has ended.
pub fn parent(pid: u32) -> Option<u32> {
    fields(Path::new(&format!("/proc/{pid}"))).map(|(_, parent)| parent)
}

pub fn is_living(process: &Path) -> bool {
    fields(process).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

fn fields(process: &Path) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
        .map(|entry| entry.path())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A text without the sequences that only set colours.
pub fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end {
            Some(end) if part[end..].starts_with('m') => plain + &part[end + 1..],
            _ => plain + "\x1b[" + part,
        }
    })
}
