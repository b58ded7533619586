//! The files of a trail and their names, and locking.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How long to pause before trying again to get a lock. Others usually hold it for microseconds.
const RETRY_PAUSE: Duration = Duration::from_micros(100);

const WAITING: &str = "waiting-";

const WRITER: (&str, &str) = ("writer-", ".lock");

/// The file that is currently written.
pub fn current(folder: &Path) -> PathBuf {
    folder.join("audit.jsonl")
}

/// A rotated file. Higher numbers are newer.
pub fn rotated(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("audit.{number}.jsonl"))
}

/// The numbers of the rotated files, oldest first.
pub fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("audit.")?.strip_suffix(".jsonl")?;
            // Only names as we write them: `audit.01.jsonl` is not ours.
            digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
        });
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The file of a process whose records wait to join the trail.
pub fn waiting(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{WAITING}{name}.jsonl"))
}

/// All waiting files.
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

/// The file that a process with ends to record keeps locked.
pub fn writer(folder: &Path, name: &str) -> PathBuf {
    let (before, after) = WRITER;
    folder.join(format!("{before}{name}{after}"))
}

/// The names of all writers.
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

/// Opens or creates a file that only our user can read and write.
pub fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).append(append).create(true).mode(0o600);
    // A named pipe in its place must not block us.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Device and inode, which identify a file.
pub fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// The metadata of what is at a path, if anything is.
pub fn found_at(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A lock on a file, released on drop.
pub struct FileLock(Arc<File>);

impl FileLock {
    /// Takes the lock, or fails after `timeout`. A lock that is never released, such as that of a stopped process,
    /// must not block everything else.
    pub fn acquire(file: Arc<File>, mode: LockMode, timeout: Duration) -> io::Result<Self> {
        let operation = match mode {
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
        };
        let mut deadline = None;
        loop {
            match flock(&*file, operation) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + timeout) {
                let text = "another process holds its lock and does not release it";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    Exclusive,
    Shared,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = flock(&*self.0, FlockOperation::Unlock);
    }
}
