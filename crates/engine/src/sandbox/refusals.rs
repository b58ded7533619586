//! What a command was refused by its sandbox, in words.
//!
//! The proxy says what it refuses. The kernel does not say which file it has kept from whom, but
//! programs do: a line with one of the kernel's words and a path in it, where the path is one the
//! sandbox keeps, is taken for such a refusal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mcpz_proxy::Refusal;

/// The most that is told of one command.
const MAX_TOLD: usize = 5;

/// The most commands whose refusals wait to be told.
const MAX_LABELS: usize = 256;

/// What the kernel says where a file is kept, as programs print it.
const WORDS: &[&str] = &[
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Device or resource busy",
    "EACCES",
    "EPERM",
    "EROFS",
    "EBUSY",
];

/// What the proxy has refused, until it is told.
#[derive(Debug, Default)]
pub struct Refusals {
    by_label: Mutex<HashMap<String, Vec<String>>>,
}

impl Refusals {
    pub fn note(&self, refusal: &Refusal) {
        let label = refusal.label.clone().unwrap_or_default();
        let mut by_label = self.by_label.lock().unwrap_or_else(PoisonError::into_inner);
        if by_label.len() >= MAX_LABELS && !by_label.contains_key(&label) {
            by_label.clear();
        }
        let told = by_label.entry(label).or_default();
        let text = format!("sandbox: {refusal}");
        if told.len() < MAX_TOLD && !told.contains(&text) {
            told.push(text);
        }
    }

    /// Those of one command.
    pub fn take(&self, label: &str) -> Vec<String> {
        let mut by_label = self.by_label.lock().unwrap_or_else(PoisonError::into_inner);
        by_label.remove(label).unwrap_or_default()
    }
}

/// What a command says it was kept from, of what `explain` knows to be kept.
pub fn files(
    printed: &str,
    directory: &Path,
    explain: impl Fn(&Path) -> Option<String>,
) -> Vec<String> {
    let mut told = Vec::new();
    let lines = printed.lines().filter(|line| WORDS.iter().any(|word| line.contains(word)));
    for path in lines.flat_map(paths) {
        let explained = explain(&clean(&directory.join(path)));
        if let Some(text) = explained.filter(|text| !told.contains(text))
            && told.len() < MAX_TOLD
        {
            told.push(text);
        }
    }
    told
}

/// What may be a path in a line: words with a slash in them, or what stands in quotes or before a
/// colon.
fn paths(line: &str) -> Vec<&str> {
    let separators = |c: char| c.is_whitespace() || "'\"`‘’“”:;,()[]".contains(c);
    let word = |word: &&str| !word.is_empty() && (word.contains('/') || word.starts_with('.'));
    // The program that complains names itself first: `/bin/sh: 1: cannot create /etc/x: …`
    let said = match line.split_once(": ") {
        Some((program, said)) if said.contains(": ") && !program.contains(' ') => said,
        _ => line,
    };
    let named: Vec<_> = said.split(separators).filter(word).collect();
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

    fn told(printed: &str) -> Vec<String> {
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
        ] {
            assert_eq!(told(line), ["/etc/x"], "{line}");
        }
    }

    #[test]
    fn what_the_sandbox_does_not_keep_is_not_its_doing() {
        for line in ["cat: /proj/x: Permission denied", "/etc/x is fine", "x: Permission denied"] {
            assert!(told(line).is_empty(), "{line}");
        }
    }
}
