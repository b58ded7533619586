//! The trail as it is written: one line at a time, by any number of processes.
//!
//! Whoever has the lock of the file that stands at the path may write. Each remembers where it left
//! off; when the file is not as long any more, somebody else has written, put the file away, or was
//! killed while writing, and the head and the last line tell where the chain goes on. What is known of
//! the chain is never forgotten in favour of what the file says: lines that were taken away leave a
//! gap that shows.
//!
//!     lock ─▶ stat ─┬─ as we left it ─────────▶ write … write ─▶ head ─▶ unlock
//!                   └─ changed ─▶ catch up ───▶
//!
//! Lines that follow each other soon share a lock and a head. Whoever does not get the lock soon writes
//! elsewhere for the time being ([`Waiting`]).

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::AuditSettings;
use crate::files::{self, Held, Sharing};
use crate::head::{HEAD_FILE, Head};
use crate::line::{Line, Link, MAX_LINE, compose, compose_joined};
use crate::record::{Repaired, Rotated};
use crate::seal::{Key, sha256};
use crate::waiting::{Joining, Waiting, write_whole};

/// How long somebody else's lock is waited for, which is given back within microseconds.
const PATIENCE: Duration = Duration::from_millis(50);

/// The least size at which a file is put away: more than what is written when one begins.
pub const MIN_SIZE: u64 = 4 << 10;

pub struct Trail {
    settings: AuditSettings,
    /// Nothing until there is something to write.
    opened: Option<Opened>,
    /// The last line we know of.
    last: Link,
    /// How long the file was when we left it; if we do not know, nothing has this size.
    size: u64,
    patience: Duration,
    /// The lock, while lines were written that the head does not know of.
    held: Option<Held>,
    /// What was written while somebody else had the lock.
    waiting: Option<Waiting>,
    /// Whether others have left some of that.
    any_left: bool,
    line: Vec<u8>,
}

struct Opened {
    file: Arc<File>,
    /// Device and inode, by which we know it.
    identity: (u64, u64),
    head: File,
    key: Key,
}

const UNKNOWN: u64 = u64::MAX;

impl Trail {
    pub fn new(settings: AuditSettings) -> Self {
        let (last, size) = (Link::START, UNKNOWN);
        let (patience, line) = (PATIENCE, Vec::new());
        let (opened, held, waiting, any_left) = (None, None, None, true);
        Self { settings, opened, last, size, patience, held, waiting, any_left, line }
    }

    /// Adds a record, and keeps others from writing until it is settled. Returns the file it is in,
    /// for whoever wants it to be on the disk.
    pub fn add(&mut self, record: &impl Serialize) -> io::Result<Arc<File>> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let written = match self.hold(&mut opened) {
            Ok(()) => self.join(&mut opened).and_then(|()| self.write(&opened, record)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let written = self.write_elsewhere(&opened.key, record);
                self.opened = Some(opened);
                return written;
            }
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.held = None;
        }
        let file = opened.file.clone();
        self.opened = Some(opened);
        written.map(|()| file)
    }

    /// Adds a record to what waits for the trail. Returns the file it is in.
    fn write_elsewhere(&mut self, key: &Key, record: &impl Serialize) -> io::Result<Arc<File>> {
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            none => none.insert(Waiting::begin(&self.settings.folder)?),
        };
        waiting.write(&mut self.line, record, key)?;
        // Whoever has the lock keeps it from others, too.
        self.any_left = true;
        Ok(waiting.file().clone())
    }

    /// Has what waits join the trail. The lock is ours.
    fn join(&mut self, opened: &mut Opened) -> io::Result<()> {
        let left = match std::mem::take(&mut self.any_left) {
            true => Waiting::left(&self.settings.folder),
            false => Vec::new(),
        };
        for mut waiting in left {
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

    fn join_one(&mut self, opened: &Opened, waiting: &mut Waiting) -> io::Result<()> {
        waiting.join(&opened.key, |joining| match joining {
            Joining::Genuine(body) => {
                let link = compose_joined(&mut self.line, &body, self.last, &opened.key);
                self.write_line(opened, link)
            }
            Joining::Changed(line) => {
                let (bytes, text) = (line.len() as u64, String::from_utf8_lossy(&line));
                self.write(opened, &Repaired::joined(bytes, sha256(&line), &text))
            }
        })
    }

    /// Notes how far the trail goes, and lets others write.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.waiting.is_some() {
            self.join_now()?;
        }
        let held = self.held.take();
        match &self.opened {
            Some(opened) if held.is_some() => self.write_head(opened),
            _ => Ok(()),
        }
    }

    /// The same, and what anybody has left waiting joins the trail before.
    pub fn gather(&mut self) -> io::Result<()> {
        if !files::all_waiting(&self.settings.folder).unwrap_or_default().is_empty() {
            (self.any_left, self.patience) = (true, PATIENCE);
            self.join_now()?;
        }
        self.settle()
    }

    /// Has what waits join the trail, unless others have the lock.
    fn join_now(&mut self) -> io::Result<()> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let joined = self.hold(&mut opened).and_then(|()| self.join(&mut opened));
        self.opened = Some(opened);
        if joined.is_err() {
            self.held = None;
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

    /// Whether there is something to settle.
    pub fn is_settled(&self) -> bool {
        self.held.is_none()
    }

    fn open(&mut self) -> io::Result<Opened> {
        self.size = UNKNOWN;
        let folder = &self.settings.folder;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = Arc::new(files::open(&files::current(folder), true)?);
        let identity = files::identity(&file.metadata()?);
        let key = Key::read_or_make(&self.settings.folder)?;
        let head = files::open(&self.settings.folder.join(HEAD_FILE), false)?;
        Ok(Opened { file, identity, head, key })
    }

    fn lock(&mut self, file: &Arc<File>) -> io::Result<Held> {
        let held = Held::take(file.clone(), Sharing::Alone, self.patience);
        // Nobody waits again for one who does not let go.
        self.patience = if held.is_ok() { PATIENCE } else { Duration::ZERO };
        held
    }

    /// Sees to it that we have the lock of the file that is to be written, at its end and with room
    /// in it.
    fn hold(&mut self, opened: &mut Opened) -> io::Result<()> {
        while self.held.is_none() || self.size >= self.settings.max_size.max(MIN_SIZE) {
            let path = files::current(&self.settings.folder);
            if self.held.is_some() {
                self.write_head(opened)?;
                self.put_away(&path)?;
            } else {
                let held = self.lock(&opened.file)?;
                let found = files::found_at(&path)?;
                if let Some(found) = found.filter(|it| files::identity(it) == opened.identity) {
                    self.held = Some(held);
                    if found.size() != self.size {
                        self.catch_up(opened, found.size())?;
                    }
                    continue;
                }
            }
            // Put away, or removed.
            self.held = None;
            *opened = self.open()?;
        }
        Ok(())
    }

    /// Writes a line, all of it or nothing. The lock is ours.
    fn write(&mut self, opened: &Opened, record: &impl Serialize) -> io::Result<()> {
        let link = compose(&mut self.line, record, self.last, &opened.key);
        self.write_line(opened, link)
    }

    /// The same for a line that was composed.
    fn write_line(&mut self, opened: &Opened, link: Link) -> io::Result<()> {
        let before = self.size;
        if let Err(error) = write_whole(&opened.file, &self.line) {
            // If even this fails, the next to write finds what is left and says so.
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

    /// Finds out where the chain goes on in a file of this size. The lock is ours.
    fn catch_up(&mut self, opened: &Opened, size: u64) -> io::Result<()> {
        let head = Head::read(&opened.head, &opened.key)?;
        if let Some(head) = head
            && head.size == size
            && head.link.seq >= self.last.seq
        {
            (self.last, self.size) = (head.link, size);
            return Ok(());
        }
        let end = End::read(&opened.file, size)?;
        let known = [Some(self.last), head.map(|head| head.link), end.last];
        let known = known.into_iter().flatten().max_by_key(|link| link.seq);
        self.last = known.unwrap_or(Link::START);
        self.size = size - end.torn.len() as u64;
        if !end.torn.is_empty() {
            opened.file.set_len(self.size)?;
        }
        let numbers = if size == 0 { files::numbers(&self.settings.folder)? } else { Vec::new() };
        if head.is_none() && self.last.seq == 0 && self.size == 0 && numbers.is_empty() {
            // The very beginning. From now on, a trail without a head has lost it.
            let head = Head { link: self.last, size };
            return head.write(&opened.head, &opened.key);
        }
        if self.size == 0 && self.last.seq > 0 {
            self.begin(opened, &numbers)?;
        }
        if !end.torn.is_empty() {
            let (bytes, text) = (end.torn.len() as u64, String::from_utf8_lossy(&end.torn));
            self.write(opened, &Repaired::torn(bytes, sha256(&end.torn), &text))?;
        }
        if head.is_none() {
            self.write(opened, &Repaired::head())?;
        }
        Ok(())
    }

    /// Begins a file with where the chain comes from, and lets go of what is too old.
    fn begin(&mut self, opened: &Opened, numbers: &[u64]) -> io::Result<()> {
        let folder = &self.settings.folder;
        let previous = numbers.last().copied().unwrap_or(0);
        let kept = (previous + 1).saturating_sub(self.settings.keep);
        // By what was written, not by what is there: a file somebody removed has to be missed.
        let before = Rotated::read(&files::rotated(folder, previous)).map(|before| before.oldest);
        let oldest = kept.max(before.unwrap_or(1));
        self.write(opened, &Rotated::new(previous, oldest))?;
        for number in numbers.iter().filter(|number| **number < oldest) {
            // One that stays is no harm.
            let _ = fs::remove_file(files::rotated(&self.settings.folder, *number));
        }
        Ok(())
    }

    fn put_away(&self, path: &Path) -> io::Result<()> {
        let folder = &self.settings.folder;
        let number = files::numbers(folder)?.last().map_or(1, |newest| newest + 1);
        fs::rename(path, files::rotated(folder, number))
    }
}

/// What stands at the end of a file.
struct End {
    /// The last line, if it has the form of one.
    last: Option<Link>,
    /// What follows it and has no end: the writer was killed, or there was no room.
    torn: Vec<u8>,
}

impl End {
    fn read(file: &File, size: u64) -> io::Result<Self> {
        let window = size.min(2 * MAX_LINE as u64);
        let mut bytes = vec![0; window as usize];
        file.read_exact_at(&mut bytes, size - window)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if bytes.len() - whole > MAX_LINE {
            let text = "its end is not one of an audit trail; move it away";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let torn = bytes.split_off(whole);
        let line = bytes.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|b| *b == b'\n').next());
        let last = line.and_then(Line::parse).map(|line| line.link);
        Ok(Self { last, torn })
    }
}
