//! Which programs may come to read the input of a run.
//!
//! Input waits until someone reads it, so it does not matter who reads now. A program counts if it can read the input,
//! on whatever descriptor, or if it has a terminal: it can open that by name, and a terminal inside a run is the run's
//! own or one to which another program of the run passes its input on.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::input;
use crate::tree::{self, ProcessStat};

/// How much of a command line to read at most.
const MAX_COMMAND_LINE: u64 = 64 << 10;

/// The owner may read what the descriptor is open on.
const READABLE: u32 = 0o400;

/// A program that may read the input of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputReader {
    /// The file name of its executable.
    pub name: String,
    /// The beginning of its command line, without the name.
    pub arguments: Vec<Vec<u8>>,
    /// Whether it has a terminal for other programs, and may pass its input on to them.
    pub relays: bool,
    /// Whether it waits for input now.
    pub waits: bool,
}

/// The programs below `root` that may read this pipe or a terminal. `stdin` is what the first one of them reads.
/// None may be missed, so this scans every process of the machine.
pub fn find(root: i32, pipe: Option<u64>, stdin: Option<&Path>) -> Vec<InputReader> {
    let pipe = pipe.map(|inode| PathBuf::from(format!("pipe:[{inode}]")));
    let stdin = stdin.map(Path::to_string_lossy);
    let waits = |pid| stdin.as_ref().is_some_and(|stdin| input::waits_to_read(pid, stdin));
    let all = tree::living(root).into_iter();
    all.filter_map(|process| {
        let found = reader(&process, pipe.as_deref())?;
        Some(InputReader { waits: waits(process.pid), ..found })
    })
    .collect()
}

fn reader(process: &ProcessStat, pipe: Option<&Path>) -> Option<InputReader> {
    let pid = process.pid;
    let (reads, relays) = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(open) => uses(open, pipe),
        // A program with other privileges, such as sudo, does not show its descriptors.
        Err(error) => (error.kind() == ErrorKind::PermissionDenied, false),
    };
    (reads || process.has_terminal).then_some(())?;
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(MAX_COMMAND_LINE).read_to_end(&mut line).ok()?;
    let arguments = line.split(|byte| *byte == 0).skip(1).map(<[u8]>::to_vec).collect();
    Some(InputReader { name: name(pid)?, arguments, relays, waits: false })
}

/// Whether one of these descriptors reads the pipe or a terminal, and whether one is the other end of a terminal.
fn uses(open: fs::ReadDir, pipe: Option<&Path>) -> (bool, bool) {
    let (mut reads, mut relays) = (false, false);
    for entry in open.flatten() {
        let path = entry.path();
        let Ok(link) = fs::read_link(&path) else { continue };
        // Not the file behind it: that may be on a network, and asking for it could take forever.
        let mode = fs::symlink_metadata(&path).map_or(READABLE, |link| link.permissions().mode());
        let is_other_end = link.file_name().is_some_and(|name| name == "ptmx");
        let is_terminal = link.starts_with("/dev/pts") || link == Path::new("/dev/tty");
        relays |= is_other_end;
        reads |= mode & READABLE != 0 && (is_terminal && !is_other_end || Some(&*link) == pipe);
    }
    (reads, relays)
}

/// The file name of its executable, or what the process calls itself if that is hidden.
fn name(pid: i32) -> Option<String> {
    let Ok(file) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return tree::read_stat(pid).map(|(_, name)| name);
    };
    let name = file.file_name()?.to_string_lossy();
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}
