//! The files of a trail: the one that is written, and older ones by number.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How long to try again while somebody else has the lock, which takes microseconds.
const PAUSE: Duration = Duration::from_micros(100);

const WAITING: &str = "waiting-";

const WRITER: (&str, &str) = ("writer-", ".lock");

/// The file that is written.
pub fn current(folder: &Path) -> PathBuf {
    folder.join("audit.jsonl")
}

/// One that was put away: the higher the number, the newer.
pub fn rotated(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("audit.{number}.jsonl"))
}

/// The numbers of those that were put away, oldest first.
pub fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("audit.")?.strip_suffix(".jsonl")?;
            // Only as we write it: `audit.01.jsonl` is somebody else's.
            digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
        });
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Where a process keeps records that wait for the trail.
pub fn waiting(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{WAITING}{name}.jsonl"))
}

/// All of those.
pub fn all_waiting(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(WAITING) && name.ends_with(".jsonl")) {
            paths.push(folder.join(name));
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// What a process keeps locked that has ends to record.
pub fn writer(folder: &Path, name: &str) -> PathBuf {
    let (before, after) = WRITER;
    folder.join(format!("{before}{name}{after}"))
}

/// The names of all of those.
pub fn all_writers(folder: &Path) -> io::Result<HashSet<String>> {
    let (before, after) = WRITER;
    let mut names = HashSet::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(before)?.strip_suffix(after));
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Opens a file of the folder to be read and written by us alone, and makes it if need be.
pub fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).append(append).create(true).mode(0o600);
    // A pipe in its place must not hold us up.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Device and inode, by which a file is known.
pub fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// What is at a path, if there is anything.
pub fn found_at(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that is locked as long as this lives.
pub struct Held(Arc<File>);

impl Held {
    /// Takes the lock, or gives up when `patience` is over. A lock that is never given back, such as
    /// that of a process that was stopped, must not hold up everything else.
    pub fn take(file: Arc<File>, how: Sharing, patience: Duration) -> io::Result<Self> {
        let operation = match how {
            Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
            Sharing::Readers => FlockOperation::NonBlockingLockShared,
        };
        let mut until = None;
        loop {
            match flock(&*file, operation) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= *until.get_or_insert_with(|| Instant::now() + patience) {
                let text = "another process has locked it and does not let go";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Alone,
    Readers,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = flock(&*self.0, FlockOperation::Unlock);
    }
}
