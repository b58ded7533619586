//! Records of a process that does not get at the trail.
//!
//! Whoever has its lock may have been stopped, and nobody waits for a stranger: a process that does not
//! get the lock soon writes to a file of its own, in lines like those of the trail. They join the trail
//! when it has the lock; those of a process that has ended, with whoever opens the trail next.
//!
//!     locked ─▶ waiting-NAME.jsonl ─▶ lock ─▶ the trail: the same records, with the time they had
//!
//! A line that was changed meanwhile does not become a genuine one: what joins the trail in its place is
//! that it was changed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::files::{self, Held, Sharing};
use crate::line::{Line, Link, MAX_LINE, compose};
use crate::seal::Key;
use mcpz_runtime::random_name;

/// A file of records that wait. It is locked as long as whoever writes it lives.
pub struct Waiting {
    path: PathBuf,
    file: Arc<File>,
    _held: Held,
    last: Link,
    size: u64,
    /// How many lines have joined the trail.
    joined: u64,
}

/// A line that is to join the trail.
pub enum Joining {
    /// What stands in it.
    Genuine(Vec<u8>),
    /// It is not as it was written, or does not follow the one before.
    Changed(Vec<u8>),
}

impl Waiting {
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let path = files::waiting(folder, &random_name()?);
        let file = Arc::new(files::open(&path, true)?);
        let _held = Held::take(file.clone(), Sharing::Alone, Duration::ZERO)?;
        Ok(Self { path, file, _held, last: Link::START, size: 0, joined: 0 })
    }

    /// Those whose writers have ended.
    pub fn left(folder: &Path) -> Vec<Self> {
        let paths = files::all_waiting(folder).unwrap_or_default().into_iter();
        let left = paths.filter_map(|path| {
            let file = Arc::new(files::open(&path, true).ok()?);
            let _held = Held::take(file.clone(), Sharing::Alone, Duration::ZERO).ok()?;
            // It may have joined the trail, and gone, before we had it.
            let found = files::found_at(&path).ok()??;
            let is_same = files::identity(&file.metadata().ok()?) == files::identity(&found);
            let (last, size) = (Link::START, found.len());
            is_same.then_some(Self { path, file, _held, last, size, joined: 0 })
        });
        left.collect()
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes a line, all of it or nothing.
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

    /// Has every line join the trail, which `add` does for each. Those that have are not added again.
    pub fn join(
        &mut self,
        key: &Key,
        mut add: impl FnMut(Joining) -> io::Result<()>,
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
            let fits = |line: &Line<'_>| line.is_genuine(key) && line.follows(last);
            let joining = match line.filter(fits) {
                Some(line) => {
                    last = line.link;
                    Joining::Genuine(line.body.to_vec())
                }
                None => Joining::Changed(text),
            };
            if read > self.joined {
                add(joining)?;
                self.joined = read;
            }
        }
    }

    /// Removes it: all of it has joined the trail.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes all of a line in one go, or fails.
pub fn write_whole(mut file: &File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    }
}
