//! How the kernel runs a file, and the formats for which it was told an interpreter (`binfmt_misc`).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mcpz_sandbox::mounts;

use super::elf;
use super::shebang::{HEAD, shebang};

/// A file that describes a format, or says whether all are switched on, or takes new ones.
#[derive(Debug)]
pub struct Format {
    pub path: PathBuf,
    /// What it says, if it can be read.
    pub text: Option<String>,
}

impl Format {
    /// Whether it is switched on, and the kernel takes a file with this path, which begins like this, for one of it.
    pub fn is_of(&self, path: &Path, head: &[u8]) -> bool {
        let Some(text) = &self.text else { return self.may_be_any() };
        // From the end, as the path of the interpreter may have lines as well.
        let line = |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name));
        if !text.starts_with("enabled") {
            return false;
        }
        if let Some(extension) = line("extension .") {
            let path = path.as_os_str().as_bytes();
            let after_point = path.iter().rposition(|byte| *byte == b'.').map(|at| &path[at + 1..]);
            return after_point.is_some_and(|its| String::from_utf8_lossy(its) == extension);
        }
        let (Some(offset), Some(magic)) = (line("offset "), line("magic ").and_then(bytes)) else {
            return false;
        };
        let mask = line("mask ").and_then(bytes).unwrap_or_else(|| vec![u8::MAX; magic.len()]);
        let found = offset.parse().ok().and_then(|offset: usize| head.get(offset..));
        let found = found.and_then(|found| found.get(..magic.len())).unwrap_or_default();
        let same = |((found, magic), mask): ((&u8, &u8), &u8)| (found ^ magic) & mask == 0;
        found.len() == magic.len() && found.iter().zip(&magic).zip(&mask).all(same)
    }

    /// What the kernel runs for such files.
    pub fn interpreter(&self) -> Option<&str> {
        self.text.as_deref()?.lines().nth(1)?.strip_prefix("interpreter ")
    }

    /// Whether it describes a format, although it cannot be read.
    fn may_be_any(&self) -> bool {
        let is_other = |name: &str| self.path.file_name().is_some_and(|its| its == name);
        !is_other("register") && !is_other("status")
    }
}

/// How the kernel runs a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// As a script, or a binary for this machine.
    Usual,
    /// By an interpreter that it was told.
    Format,
    /// Not at all, unless it was told an interpreter that we do not see. A shell may take it for a script.
    Unknown,
}

impl Nature {
    pub fn of(path: &Path, head: &[u8; HEAD], formats: &[Format]) -> Self {
        match shebang(head).is_some() || elf::is_native(head) {
            _ if formats.iter().any(|format| format.is_of(path, head)) => Self::Format,
            true => Self::Usual,
            false => Self::Unknown,
        }
    }
}

/// What hexadecimal digits stand for.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// All that we see.
pub fn formats() -> Vec<Format> {
    let mounted = folders().iter().filter(|folder| are_shown_in(folder));
    let folders = mounted.filter_map(|folder| fs::read_dir(folder).ok());
    let paths = folders.flatten().flatten().map(|entry| entry.path());
    let text = |path: &Path| Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned());
    paths.map(|path| Format { text: text(&path), path }).collect()
}

/// Whether the kernel shows them in this folder. On most machines it has none, and where it would show them is a folder
/// of `/proc` like any other.
fn are_shown_in(folder: &Path) -> bool {
    let is_plain = |found: rustix::fs::StatFs| found.f_type == libc::PROC_SUPER_MAGIC;
    !rustix::fs::statfs(folder).is_ok_and(is_plain) && folder.join("register").exists()
}

/// Where the kernel shows them: in the usual folder, even if it is mounted later, and wherever else it was mounted when
/// they were first looked at. A command that is held mounts nothing.
fn folders() -> &'static [PathBuf] {
    const USUAL: &str = "/proc/sys/fs/binfmt_misc";
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let mounted = mounts().into_iter().filter(|mount| mount.kind == b"binfmt_misc");
        let mut folders: Vec<_> =
            mounted.map(|mount| mount.point).chain([PathBuf::from(USUAL)]).collect();
        folders.sort();
        folders.dedup();
        folders
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_format_are_recognised_as_the_kernel_does_it() {
        let is_of = |text: &str, path: &str, head: &[u8]| {
            let format = Format { path: PathBuf::from("x"), text: Some(text.to_owned()) };
            format.is_of(Path::new(path), head)
        };
        let by_magic =
            "enabled\ninterpreter /usr/bin/x\nflags: \noffset 1\nmagic 4d5a\nmask ff0f\n";
        assert!(is_of(by_magic, "/a", b"?MZ"));
        assert!(is_of(by_magic, "/a", b"?M\xfa rest"));
        assert!(!is_of(by_magic, "/a", b"MZ"));
        assert!(!is_of(by_magic, "/a", b"?M"));
        let whole = "enabled\ninterpreter /usr/bin/x\nflags: F\noffset 0\nmagic cb0d0d0a\n";
        assert!(is_of(whole, "/a.pyc", b"\xcb\r\r\n."));
        assert!(!is_of(whole, "/a.pyc", b"\xcb\r\r\r."));
        let by_extension = "enabled\ninterpreter /usr/bin/x\nflags: \nextension .jar\n";
        assert!(is_of(by_extension, "/a/b.jar", b"#!/bin/sh\n"));
        assert!(!is_of(by_extension, "/a/jar", b""));
        assert!(!is_of(&by_extension.replace("enabled", "disabled"), "/a/b.jar", b""));
        assert!(!is_of("enabled\n", "/a/jar", b""));
        assert!(is_of(by_extension, "/a/.jar", b""));
        assert!(!is_of(by_extension, "/a.jar/b", b""));
        let forged = by_extension.replace("/usr/bin/x", "/x\nextension .y");
        assert!(is_of(&forged, "/a/b.jar", b""));
    }

    #[test]
    fn what_cannot_be_read_may_be_about_any_file() {
        let is_of = |name: &str| {
            Format { path: Path::new("/formats").join(name), text: None }
                .is_of(Path::new("/a"), b"")
        };
        assert!(is_of("php") && !is_of("register") && !is_of("status"));
    }
}
