//! Finds out what is missing when a shell cannot find a script.
//!
//! The system gives the same error for a missing script and for a missing interpreter, and so do most shells. The first
//! line of the script tells which it is.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Linux reads no more of the first line.
const MAX_SHEBANG: u64 = 256;

/// What is missing.
#[derive(Debug, PartialEq, Eq)]
pub enum Absent {
    File,
    /// The program that the first line of a script names.
    Interpreter(String),
    /// One of the two, or something else the file needs.
    Either,
}

/// Finds out which of them is missing.
pub fn absent(file: &Path) -> Absent {
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
