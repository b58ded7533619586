//! What a sandbox refused a command, in words.
//!
//! The proxy reports each connection it refuses; without a network it refuses all of them, with a reason. The kernel
//! does not say which file it refused, but programs do: a printed line that contains an error of the kernel and a path
//! the sandbox covers counts as a refusal. This explains a failure. Nothing else depends on it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mcpz_proxy::Refusal;

/// The most refusals reported for one command.
const MAX_PER_RUN: usize = 5;

/// The most commands whose refusals wait to be reported.
const MAX_RUNS: usize = 256;

/// How programs print the errors of a refused file, in small letters: those in Go print them so.
const ERROR_WORDS: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "device or resource busy",
    "eacces",
    "eperm",
    "erofs",
    "ebusy",
];

/// Those that hardly anything but a sandbox causes.
const CERTAIN_WORDS: &[&str] = &["read-only file system", "erofs"];

/// What the proxy refused, until a run reports it.
#[derive(Debug, Default)]
pub struct Refusals {
    by_label: Mutex<HashMap<String, Vec<String>>>,
}

impl Refusals {
    pub fn note(&self, refusal: &Refusal) {
        let label = refusal.label.clone().unwrap_or_default();
        let mut by_label = self.by_label.lock().unwrap_or_else(PoisonError::into_inner);
        if by_label.len() >= MAX_RUNS && !by_label.contains_key(&label) {
            by_label.clear();
        }
        let refusals = by_label.entry(label).or_default();
        let text = format!("sandbox: {refusal}");
        if refusals.len() < MAX_PER_RUN && !refusals.contains(&text) {
            refusals.push(text);
        }
    }

    /// Those of one command.
    pub fn take(&self, label: &str) -> Vec<String> {
        let mut by_label = self.by_label.lock().unwrap_or_else(PoisonError::into_inner);
        by_label.remove(label).unwrap_or_default()
    }
}

/// The lines with errors that count even if the command succeeds as a whole, as in `touch /etc/x; ls`: of what hardly
/// anything else causes, or about a file that is hidden.
pub fn certain(printed: &str, directory: &Path, is_hidden: impl Fn(&Path) -> bool) -> String {
    let is_certain = |line: &&str| {
        has_any(line, CERTAIN_WORDS)
            || paths(line).into_iter().any(|path| is_hidden(&clean(&directory.join(path))))
    };
    printed.lines().filter(is_certain).collect::<Vec<_>>().join("\n")
}

/// The files a command complains about, as far as `explain` knows them.
pub fn files(
    printed: &str,
    directory: &Path,
    explain: impl Fn(&Path) -> Option<String>,
) -> Vec<String> {
    let mut refusals = Vec::new();
    let lines = printed.lines().filter(|line| has_any(line, ERROR_WORDS));
    for path in lines.flat_map(paths) {
        let explained = explain(&clean(&directory.join(path)));
        if let Some(text) = explained.filter(|text| !refusals.contains(text))
            && refusals.len() < MAX_PER_RUN
        {
            refusals.push(text);
        }
    }
    refusals
}

fn has_any(line: &str, words: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    words.iter().any(|word| line.contains(word))
}

/// What a command is told that complains about not being allowed to trace a process.
pub fn tracing(printed: &str) -> Option<String> {
    let is_refusal = |line: &str| {
        let line = line.to_lowercase();
        line.contains("ptrace")
            && (line.contains("not permitted") || line.contains("leaksanitizer does not work"))
    };
    printed.lines().any(is_refusal).then(|| {
        "sandbox: processes cannot trace each other, so debuggers and `strace` do not work; with AddressSanitizer, \
         `ASAN_OPTIONS=detect_leaks=0` skips the check for leaks"
            .to_owned()
    })
}

/// What may be a path in a line: words with a slash, or the last word before the final colon.
fn paths(line: &str) -> Vec<&str> {
    let separators = |c: char| c.is_whitespace() || "'\"`‘’“”:;,()[]".contains(c);
    // `https://host/x` is split at its colon.
    let word = |word: &&str| {
        (word.contains('/') || word.starts_with('.')) && !word.starts_with("//") && *word != "."
    };
    // The program names itself first: `/bin/sh: 1: cannot create /etc/x: …`
    let message = match line.split_once(": ") {
        Some((program, message)) if message.contains(": ") && !program.contains(' ') => message,
        _ => line,
    };
    // `cannot copy 'a' to 'b'`: the first is only read.
    let message = [" -> ", " to "]
        .iter()
        .find_map(|to| message.rsplit_once(to))
        .map_or(message, |(_, to)| to);
    let named: Vec<_> = message.split(separators).filter(word).collect();
    if !named.is_empty() {
        return named;
    }
    // `cannot touch 'x': Permission denied`, `sh: 1: cannot create x: Permission denied`
    let before = line.rsplit_once(": ").map_or("", |(before, _)| before);
    let last = before.rsplit(separators).find(|word| !word.is_empty());
    last.into_iter().collect()
}

/// A path without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                clean.pop();
            }
            std::path::Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_in(printed: &str) -> Vec<String> {
        let kept = |path: &Path| (!path.starts_with("/proj")).then(|| path.display().to_string());
        files(printed, Path::new("/proj/sub"), kept)
    }

    #[test]
    fn the_path_a_program_complains_about_is_found() {
        for line in [
            "touch: cannot touch '/etc/x': Read-only file system",
            "sh: 1: cannot create /etc/x: Permission denied",
            "bash: line 1: /etc/x: Read-only file system",
            "/bin/sh: 1: cannot create /etc/x: Read-only file system",
            "/usr/bin/touch: cannot touch '/etc/x': Read-only file system",
            "Error: EROFS: read-only file system, open '/etc/x'",
            "PermissionError: [Errno 13] Permission denied: '/etc/x'",
            "cat: ../../etc/x: Permission denied",
            "cp: cannot copy '/usr/share/x' to '/etc/x': Read-only file system",
            "Error: EROFS: read-only file system, rename '/usr/x' -> '/etc/x'",
            "Error: opening database /etc/x: open /etc/x: read-only file system",
            "open /etc/x: permission denied",
        ] {
            assert_eq!(refused_in(line), ["/etc/x"], "{line}");
        }
    }

    #[test]
    fn programs_that_may_not_trace_are_recognised() {
        for line in [
            "strace: test_ptrace_get_syscall_info: PTRACE_TRACEME: Operation not permitted",
            "warning: ptrace: Operation not permitted",
            "HINT: LeakSanitizer does not work under ptrace (strace, gdb, etc)",
        ] {
            assert!(tracing(&format!("begun\n{line}\n")).is_some(), "{line}");
        }
        for line in ["ptrace: fine", "mount: Operation not permitted", ""] {
            assert_eq!(tracing(line), None, "{line}");
        }
    }

    #[test]
    fn a_path_the_sandbox_does_not_cover_is_not_a_refusal() {
        for line in [
            "cat: /proj/x: Permission denied",
            "/etc/x is fine",
            "x: Permission denied",
            "npm error EACCES https://registry.example/left-pad",
            "fatal: cannot copy '/usr/share/git/x' to '/proj/.git/x': Permission denied",
        ] {
            assert!(refused_in(line).is_empty(), "{line}");
        }
    }
}
