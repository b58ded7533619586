//! Records of a process that cannot get the lock of the trail.
//!
//! The process that holds the lock may have been stopped, so nobody waits long for it. A process that does not get
//! the lock writes to a file of its own, as a separate chain of lines. They join the trail, with their original
//! time, when the process writes again and gets the lock, or when it ends. If it never does, the next process that
//! opens the trail moves them.
//!
//!     locked ─▶ waiting-NAME.jsonl ─▶ lock ─▶ the trail: the same records, with their original time
//!
//! A line that was changed while it waited does not become genuine: the trail gets a record of the change instead.
//! The removal of a whole waiting file goes unnoticed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::files::{self, FileLock, LockMode};
use crate::line::{Line, Link, MAX_LINE, compose};
use crate::mac::Key;
use mcpz_runtime::random_name;

/// A file of waiting records, locked while its writer lives.
pub struct WaitingFile {
    path: PathBuf,
    file: Arc<File>,
    _lock: FileLock,
    last: Link,
    size: u64,
    /// How many lines have joined the trail.
    joined: u64,
}

/// A line that is to join the trail.
pub enum WaitingLine {
    /// The body of an unchanged line.
    Genuine(Vec<u8>),
    /// A line that was changed, or that does not follow the one before.
    Changed(Vec<u8>),
}

impl WaitingFile {
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = files::waiting(folder, &random_name()?);
        let file = Arc::new(files::open(&path, true)?);
        let _lock = FileLock::acquire(file.clone(), LockMode::Exclusive, Duration::ZERO)?;
        Ok(Self { path, file, _lock, last: Link::START, size: 0, joined: 0 })
    }

    /// The waiting files whose writers have ended.
    pub fn abandoned(folder: &Path) -> Vec<Self> {
        let paths = files::all_waiting(folder).unwrap_or_default().into_iter();
        let abandoned = paths.filter_map(|path| {
            let file = Arc::new(files::open(&path, true).ok()?);
            let _lock =
                FileLock::acquire(file.clone(), LockMode::Exclusive, Duration::ZERO).ok()?;
            // It may have joined the trail, and been removed, before we got the lock.
            let found = files::found_at(&path).ok()??;
            let is_same = files::identity(&file.metadata().ok()?) == files::identity(&found);
            let (last, size) = (Link::START, found.len());
            is_same.then_some(Self { path, file, _lock, last, size, joined: 0 })
        });
        abandoned.collect()
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes a line, completely or not at all.
    pub fn write(
        &mut self,
        line: &mut Vec<u8>,
        record: &impl Serialize,
        key: &Key,
    ) -> io::Result<()> {
        let link = compose(line, record, self.last, key);
        write_whole(&self.file, line).inspect_err(|_| drop(self.file.set_len(self.size)))?;
        (self.last, self.size) = (link, self.size + line.len() as u64);
        Ok(())
    }

    /// Calls `add` for each line, which adds it to the trail. Lines that were added before are skipped.
    pub fn join(
        &mut self,
        key: &Key,
        mut add: impl FnMut(WaitingLine) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(&self.path)?);
        let (mut last, mut read) = (Link::START, 0);
        loop {
            let mut text = Vec::new();
            let limited = &mut io::Read::take(&mut reader, MAX_LINE as u64);
            if limited.read_until(b'\n', &mut text)? == 0 {
                return Ok(());
            }
            read += 1;
            let line = text.strip_suffix(b"\n").and_then(Line::parse);
            let follows = |line: &Line<'_>| line.is_genuine(key) && line.follows(last);
            let line = match line.filter(follows) {
                Some(line) => {
                    last = line.link;
                    WaitingLine::Genuine(line.body.to_vec())
                }
                None => WaitingLine::Changed(text),
            };
            if read > self.joined {
                add(line)?;
                self.joined = read;
            }
        }
    }

    /// Removes the file, because all its lines have joined the trail.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a line with a single system call, or fails.
pub fn write_whole(mut file: &File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    }
}
