//! Names and command lines as the report of a refusal shows them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::target::base_name;

/// How much of a command line a refusal keeps.
const SHOWN_ARGUMENTS: usize = 8;
const SHOWN_CHARACTERS: usize = 200;

/// The name of a process, of which the kernel keeps the beginning.
pub fn whole_name(name: String, command_line: &[Vec<u8>]) -> String {
    const KEPT: usize = 15;
    let mut names = command_line.iter().map(|word| base_name(OsStr::from_bytes(word).as_ref()));
    match name.len() < KEPT {
        true => name,
        false => names.find(|it| it.starts_with(&name)).map_or(name, str::to_owned),
    }
}

/// The beginning of a command line, as text.
pub fn shown(arguments: &[Vec<u8>]) -> Vec<String> {
    let text = |argument: &Vec<u8>| -> String {
        String::from_utf8_lossy(argument).chars().take(SHOWN_CHARACTERS).collect()
    };
    arguments.iter().take(SHOWN_ARGUMENTS).map(text).collect()
}
