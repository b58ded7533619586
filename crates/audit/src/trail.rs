//! Writing the trail, one line at a time, shared by any number of processes.
//!
//! The process that holds the lock of the file at the path may write. Each process remembers where it stopped. If
//! the file has another length now, another process has written or rotated it, or was killed while writing; the
//! head and the last line then tell where the chain continues. What is known of the chain, from memory or from the
//! head, always overrides what the file says: removed lines leave a visible gap, however much is written after
//! them.
//!
//!     lock ─▶ stat ─┬─ as we left it ──────▶ write … write ─▶ head ─▶ unlock
//!                   └─ changed ─▶ resync ──▶
//!
//! Lines in quick succession share one lock and one head. A process that does not get the lock in time writes to a
//! [`WaitingFile`].
//!
//! A line without a newline (disk full, power lost) is removed by the next writer, which records that. A full file
//! is renamed to the next number. The new one starts with the number of the one before and of the oldest that is
//! kept, so verification knows which files may be missing.
//!
//! The head is older than the key, and both are older than the first line. So a key without a head and lines means that
//! the trail was removed, which the next writer records.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::files::{self, FileLock, LockMode};
use crate::head::{HEAD_FILE, Head};
use crate::line::{Line, Link, MAX_LINE, compose, compose_joined};
use crate::mac::{Key, sha256};
use crate::record::{RepairRecord, RotationRecord};
use crate::settings::AuditSettings;
use crate::waiting::{WaitingFile, WaitingLine, write_whole};

/// How long to wait for the lock. Others usually hold it for microseconds; one that does not was probably stopped.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

pub struct Trail {
    settings: AuditSettings,
    /// `None` until there is something to write.
    opened: Option<Opened>,
    /// The last line we know of.
    last: Link,
    /// The length of the file when we stopped writing, or `UNKNOWN`, which matches no file.
    size: u64,
    lock_timeout: Duration,
    /// Our lock, held while the head does not include all lines we wrote.
    lock: Option<FileLock>,
    /// What we wrote while another process held the lock.
    waiting: Option<WaitingFile>,
    /// Whether other processes may have left waiting files.
    look_for_abandoned: bool,
    line: Vec<u8>,
}

struct Opened {
    file: Arc<File>,
    /// Device and inode, which identify the file.
    identity: (u64, u64),
    head: File,
    key: Key,
}

const UNKNOWN: u64 = u64::MAX;

impl Trail {
    pub fn new(settings: AuditSettings) -> Self {
        let (last, size) = (Link::START, UNKNOWN);
        let (lock_timeout, line) = (LOCK_TIMEOUT, Vec::new());
        let (opened, lock, waiting, look_for_abandoned) = (None, None, None, true);
        Self { settings, opened, last, size, lock_timeout, lock, waiting, look_for_abandoned, line }
    }

    /// Adds a record, and keeps the lock until `flush`. Returns the file it is in, for callers that sync it.
    pub fn add(&mut self, record: &impl Serialize) -> io::Result<Arc<File>> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let written = match self.ensure_locked(&mut opened) {
            Ok(()) => self.join_waiting(&mut opened).and_then(|()| self.write(&opened, record)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let written = self.write_to_waiting(&opened.key, record);
                self.opened = Some(opened);
                return written;
            }
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.lock = None;
        }
        let file = opened.file.clone();
        self.opened = Some(opened);
        written.map(|()| file)
    }

    /// Adds a record to our waiting file. Returns that file.
    fn write_to_waiting(&mut self, key: &Key, record: &impl Serialize) -> io::Result<Arc<File>> {
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            none => none.insert(WaitingFile::create(&self.settings.folder)?),
        };
        waiting.write(&mut self.line, record, key)?;
        // The same lock stops others, too.
        self.look_for_abandoned = true;
        Ok(waiting.file().clone())
    }

    /// Moves waiting records into the trail. We hold the lock.
    fn join_waiting(&mut self, opened: &mut Opened) -> io::Result<()> {
        let abandoned = match std::mem::take(&mut self.look_for_abandoned) {
            true => WaitingFile::abandoned(&self.settings.folder),
            false => Vec::new(),
        };
        for mut waiting in abandoned {
            self.join_one(opened, &mut waiting)?;
            waiting.remove();
        }
        if let Some(mut waiting) = self.waiting.take() {
            if let Err(error) = self.join_one(opened, &mut waiting) {
                self.waiting = Some(waiting);
                return Err(error);
            }
            waiting.remove();
        }
        Ok(())
    }

    fn join_one(&mut self, opened: &Opened, waiting: &mut WaitingFile) -> io::Result<()> {
        waiting.join(&opened.key, |line| match line {
            WaitingLine::Genuine(body) => {
                let link = compose_joined(&mut self.line, &body, self.last, &opened.key);
                self.write_line(opened, link)
            }
            WaitingLine::Changed(line) => {
                let (bytes, text) = (line.len() as u64, String::from_utf8_lossy(&line));
                self.write(opened, &RepairRecord::joined(bytes, sha256(&line), &text))
            }
        })
    }

    /// Writes the head and releases the lock.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_some() {
            self.join_now()?;
        }
        let lock = self.lock.take();
        match &self.opened {
            Some(opened) if lock.is_some() => self.write_head(opened),
            _ => Ok(()),
        }
    }

    /// Like [`flush`](Self::flush), but first moves everybody's waiting records into the trail.
    pub fn flush_all(&mut self) -> io::Result<()> {
        if !files::all_waiting(&self.settings.folder).unwrap_or_default().is_empty() {
            (self.look_for_abandoned, self.lock_timeout) = (true, LOCK_TIMEOUT);
            self.join_now()?;
        }
        self.flush()
    }

    /// Moves waiting records into the trail, unless another process holds the lock.
    fn join_now(&mut self) -> io::Result<()> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let joined = self.ensure_locked(&mut opened).and_then(|()| self.join_waiting(&mut opened));
        self.opened = Some(opened);
        if joined.is_err() {
            self.lock = None;
        }
        joined.or_else(|error| match error.kind() {
            io::ErrorKind::TimedOut => Ok(()),
            _ => Err(error),
        })
    }

    /// Whether anything was written.
    pub fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the head includes all lines we wrote.
    pub fn is_flushed(&self) -> bool {
        self.lock.is_none()
    }

    fn open(&mut self) -> io::Result<Opened> {
        self.size = UNKNOWN;
        let folder = &self.settings.folder;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = Arc::new(files::open(&files::current(folder), true)?);
        let identity = files::identity(&file.metadata()?);
        let head = files::open(&folder.join(HEAD_FILE), false)?;
        let key = match Key::read(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.begin(&file, &head)?,
            key => key?,
        };
        Ok(Opened { file, identity, head, key })
    }

    /// Begins a trail with its head, and then its key.
    fn begin(&self, file: &Arc<File>, head: &File) -> io::Result<Key> {
        let folder = &self.settings.folder;
        // Without the lock, too: a process that was stopped while it began the trail must not block everything else.
        let _lock = FileLock::acquire(file.clone(), LockMode::Exclusive, LOCK_TIMEOUT);
        match Key::read(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Another process was faster.
            key => return key,
        }
        let is_new = file.metadata()?.len() == 0 && files::numbers(folder)?.is_empty();
        let start = |key: &Key| match is_new {
            true => Head { link: Link::START, size: 0 }.write(head, key),
            // Its key is gone: a head that nobody can check stays one.
            false => Ok(()),
        };
        let key = Key::create(folder, start)?;
        // The key may be another process's, and the head made with a key that nobody has.
        if Head::read(head, &key)?.is_none() {
            start(&key)?;
        }
        Ok(key)
    }

    fn acquire_lock(&mut self, file: &Arc<File>) -> io::Result<FileLock> {
        let lock = FileLock::acquire(file.clone(), LockMode::Exclusive, self.lock_timeout);
        // Do not wait again for a process that does not release the lock.
        self.lock_timeout = if lock.is_ok() { LOCK_TIMEOUT } else { Duration::ZERO };
        lock
    }

    /// Makes sure that we hold the lock of the current file, know its end, and that it is not full.
    fn ensure_locked(&mut self, opened: &mut Opened) -> io::Result<()> {
        while self.lock.is_none()
            || self.size >= self.settings.max_size.max(AuditSettings::MIN_SIZE)
        {
            let path = files::current(&self.settings.folder);
            if self.lock.is_some() {
                self.write_head(opened)?;
                self.rotate(&path)?;
            } else {
                let lock = self.acquire_lock(&opened.file)?;
                let found = files::found_at(&path)?;
                if let Some(found) = found.filter(|it| files::identity(it) == opened.identity) {
                    self.lock = Some(lock);
                    if found.size() != self.size {
                        self.resync(opened, found.size())?;
                    }
                    continue;
                }
            }
            // Rotated or removed.
            self.lock = None;
            *opened = self.open()?;
        }
        Ok(())
    }

    /// Writes a line, completely or not at all. We hold the lock.
    fn write(&mut self, opened: &Opened, record: &impl Serialize) -> io::Result<()> {
        let link = compose(&mut self.line, record, self.last, &opened.key);
        self.write_line(opened, link)
    }

    /// Writes the line that was composed.
    fn write_line(&mut self, opened: &Opened, link: Link) -> io::Result<()> {
        let before = self.size;
        if let Err(error) = write_whole(&opened.file, &self.line) {
            // If even this fails, the next writer finds the remainder and records it.
            let _ = opened.file.set_len(before);
            self.size = UNKNOWN;
            return Err(error);
        }
        (self.last, self.size) = (link, before + self.line.len() as u64);
        Ok(())
    }

    fn write_head(&self, opened: &Opened) -> io::Result<()> {
        Head { link: self.last, size: self.size }.write(&opened.head, &opened.key)
    }

    /// Finds out where the chain continues, in a file of this size. We hold the lock.
    fn resync(&mut self, opened: &Opened, size: u64) -> io::Result<()> {
        let head = Head::read(&opened.head, &opened.key)?;
        if let Some(head) = head
            && head.size == size
            && head.link.seq >= self.last.seq
        {
            (self.last, self.size) = (head.link, size);
            return Ok(());
        }
        let end = FileEnd::read(&opened.file, size)?;
        let known = [Some(self.last), head.map(|head| head.link), end.last];
        let known = known.into_iter().flatten().max_by_key(|link| link.seq);
        self.last = known.unwrap_or(Link::START);
        self.size = size - end.torn.len() as u64;
        if !end.torn.is_empty() {
            opened.file.set_len(self.size)?;
        }
        let numbers = if size == 0 { files::numbers(&self.settings.folder)? } else { Vec::new() };
        let is_gone = head.is_none() && self.last.seq == 0 && self.size == 0 && numbers.is_empty();
        if is_gone && end.torn.is_empty() {
            self.write(opened, &RepairRecord::trail())?;
            return self.write_head(opened);
        }
        if self.size == 0 && self.last.seq > 0 {
            self.begin_file(opened, &numbers)?;
        }
        if !end.torn.is_empty() {
            let (bytes, text) = (end.torn.len() as u64, String::from_utf8_lossy(&end.torn));
            self.write(opened, &RepairRecord::torn(bytes, sha256(&end.torn), &text))?;
        }
        if head.is_none() {
            self.write(opened, &RepairRecord::head())?;
        }
        Ok(())
    }

    /// Starts a file with a reference to the one before, and removes files that are too old.
    fn begin_file(&mut self, opened: &Opened, numbers: &[u64]) -> io::Result<()> {
        let folder = &self.settings.folder;
        let previous = numbers.last().copied().unwrap_or(0);
        let kept = (previous + 1).saturating_sub(self.settings.keep);
        // Based on what was written, not on what is there: a file that somebody removed must be reported.
        let before =
            RotationRecord::read(&files::rotated(folder, previous)).map(|before| before.oldest);
        let oldest = kept.max(before.unwrap_or(1));
        self.write(opened, &RotationRecord::new(previous, oldest))?;
        for number in numbers.iter().filter(|number| **number < oldest) {
            // A file that stays is harmless.
            let _ = fs::remove_file(files::rotated(&self.settings.folder, *number));
        }
        Ok(())
    }

    fn rotate(&self, path: &Path) -> io::Result<()> {
        let folder = &self.settings.folder;
        let number = files::numbers(folder)?.last().map_or(1, |newest| newest + 1);
        fs::rename(path, files::rotated(folder, number))
    }
}

/// Whether a trail was removed while its key stayed.
pub fn trail_was_removed(folder: &Path) -> io::Result<bool> {
    let is_empty =
        |path: &Path| files::found_at(path).map(|found| found.is_none_or(|found| found.len() == 0));
    // The key first: a trail that begins now has its head before its key.
    Ok(files::found_at(&Key::path(folder))?.is_some()
        && is_empty(&folder.join(HEAD_FILE))?
        && is_empty(&files::current(folder))?
        && files::numbers(folder)?.is_empty())
}

/// The end of a file.
struct FileEnd {
    /// The last line, if it is well-formed.
    last: Option<Link>,
    /// What follows it without a newline: the writer was killed, or the disk was full.
    torn: Vec<u8>,
}

impl FileEnd {
    fn read(file: &File, size: u64) -> io::Result<Self> {
        let window = size.min(2 * MAX_LINE as u64);
        let mut bytes = vec![0; window as usize];
        file.read_exact_at(&mut bytes, size - window)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if bytes.len() - whole > MAX_LINE {
            let text = "it does not end with audit records; move it elsewhere";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let torn = bytes.split_off(whole);
        let line = bytes.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|b| *b == b'\n').next());
        let last = line.and_then(Line::parse).map(|line| line.link);
        Ok(Self { last, torn })
    }
}
