//! What is missing when a shell says that it did not find a script.
//!
//! The system says the same of a script that does not exist and of one whose interpreter does not, and
//! so do most shells. The script's first line tells which.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Systems read no more of a first line.
const LONGEST: u64 = 256;

/// What is missing.
#[derive(Debug, PartialEq, Eq)]
pub enum Absent {
    File,
    /// The program a script's first line names.
    Interpreter(String),
    /// One of them, or something else that the file needs.
    Either,
}

/// Which of them it is.
pub fn absent(file: &Path) -> Absent {
    match std::fs::metadata(file) {
        Err(_) => return Absent::File,
        // Others may wait for somebody to write to them.
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
    File::open(file).ok()?.take(LONGEST).read_to_end(&mut beginning).ok()?;
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
