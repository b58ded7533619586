//! Questions about the files of the machine that runs commands, besides those about a run.
//!
//! The system gives the same error for a missing script and for a missing interpreter, and so do most shells. The first
//! line of the script tells which it is.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

/// Linux reads no more of the first line.
const MAX_SHEBANG: u64 = 256;

/// The most names of programs that are listed.
const MAX_PROGRAMS: usize = 20_000;

/// What to find out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lookup {
    /// Which names do files have in the folders of this `PATH`?
    Programs { path: OsString },
    /// Which program does a name mean?
    Program { name: OsString, path: OsString },
    /// What is missing, if a shell cannot find this file?
    Absent(PathBuf),
}

/// The answer to a [`Lookup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    Programs(Vec<String>),
    Program(Option<PathBuf>),
    Absent(Absent),
}

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Absent {
    File,
    /// The program that the first line of a script names.
    Interpreter(String),
    /// One of the two, or something else the file needs.
    Either,
}

/// Finds it out on this machine. May block.
pub fn look_up(lookup: &Lookup) -> Found {
    match lookup {
        Lookup::Programs { path } => Found::Programs(programs(path)),
        Lookup::Program { name, path } => {
            let is_program = |file: &PathBuf| access(file, Access::EXEC_OK).is_ok();
            Found::Program(folders(path).map(|folder| folder.join(name)).find(is_program))
        }
        Lookup::Absent(file) => Found::Absent(absent(file)),
    }
}

fn folders(path: &OsStr) -> impl Iterator<Item = &Path> {
    path.as_bytes().split(|byte| *byte == b':').map(|folder| Path::new(OsStr::from_bytes(folder)))
}

fn programs(path: &OsStr) -> Vec<String> {
    let entries = folders(path).filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let name = |entry: DirEntry| entry.file_name().into_string().ok();
    let names: BTreeSet<_> = entries.filter_map(name).take(MAX_PROGRAMS).collect();
    names.into_iter().collect()
}

/// Finds out which of them is missing.
fn absent(file: &Path) -> Absent {
    match std::fs::metadata(file) {
        Err(_) => return Absent::File,
        // Opening a pipe could block.
        Ok(found) if !found.is_file() => return Absent::Either,
        Ok(_) => {}
    }
    match interpreter(file) {
        Some(name) if !Path::new(&name).exists() => Absent::Interpreter(name),
        _ => Absent::Either,
    }
}

fn interpreter(file: &Path) -> Option<String> {
    let mut beginning = Vec::new();
    File::open(file).ok()?.take(MAX_SHEBANG).read_to_end(&mut beginning).ok()?;
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8(line.to_vec()).ok()?;
    let name = line.trim_start_matches([' ', '\t']).split([' ', '\t']).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        assert_eq!(absent(&file), Absent::File);
        let missing = |name: &str| Absent::Interpreter(name.to_owned());
        for (text, expected) in [
            ("#!/nope/interp\n", missing("/nope/interp")),
            ("#! /nope/interp -x\necho hi\n", missing("/nope/interp")),
            ("#!/bin/sh\r\necho hi\r\n", missing("/bin/sh\r")),
            ("#!/bin/sh\n", Absent::Either),
            ("echo hi\n", Absent::Either),
            ("", Absent::Either),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(absent(&file), expected, "{text}");
        }
        assert_eq!(absent(folder.path()), Absent::Either);
    }
}
