//! Checks that a trail is as it was written.
//!
//! All files are read in order, then those that wait to join. Files may be missing only if a rotation removed them; the
//! first line of the newest file says which are kept.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, unreadable};
use crate::files::{self, FileLock, LockMode};
use crate::head::{HEAD_FILE, Head};
use crate::line::{Line, Link, MAX_LINE};
use crate::mac::Key;
use crate::record::{RepairRecord, RotationRecord};
use crate::writer::{RecordKind, Unended, Writer};

/// How long to wait for writers.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The result.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    pub files: u64,
    /// The number of the first record. Rotation may have removed earlier ones.
    pub first: u64,
    /// Incomplete lines that were left by a killed writer, removed already or not.
    pub torn: u64,
    /// Records that have yet to join the trail, because a process does not release its lock.
    pub waiting: u64,
    /// Runs without an end on record whose process is gone.
    pub unended: u64,
    /// In the order of the trail. An intact trail has none.
    pub faults: Vec<Fault>,
}

/// Something that is not as it was written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    pub path: PathBuf,
    /// The line number, starting at 1, if the fault is in a line.
    pub line: Option<u64>,
    pub defect: Defect,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.defect)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("this is not a record")]
    NotARecord,
    #[error("this record was changed, or was not written with this key")]
    Changed,
    #[error("{}", missing(*from, *to, "before this one"))]
    Missing { from: u64, to: u64 },
    #[error("{}", missing(*from, *to, "at the end"))]
    MissingAtEnd { from: u64, to: u64 },
    #[error("record {seq} is out of order")]
    OutOfOrder { seq: u64 },
    #[error("this record does not follow the one before it")]
    Unlinked,
    #[error("this file is missing")]
    MissingFile,
    #[error("the head is missing or was changed, so the last record is unknown")]
    MissingHead,
    #[error(
        "the records are gone, but their key is still here; if you removed them yourself, remove the key as \
         well to begin a new trail"
    )]
    MissingTrail,
    #[error(
        "all records before this one were removed, but not their key; if you removed them yourself, move this \
         folder elsewhere to begin a new trail"
    )]
    TrailWasMissing,
    #[error("a record was changed while it waited to join the trail")]
    ChangedWhileWaiting,
    #[error("the head was missing when this was written, so records before it may be missing, too")]
    HeadWasMissing,
}

fn missing(from: u64, to: u64, place: &str) -> String {
    match from == to {
        true => format!("record {from} is missing {place}"),
        false => format!("records {from} to {to} are missing {place}"),
    }
}

/// Checks every line of a trail.
pub fn verify(folder: &Path) -> Result<Verified, Error> {
    let Snapshot { key, head, files, numbers, waiting, writers } = Snapshot::take(folder)?;
    let (unended, found) = (Unended::default(), Verified::default());
    let mut verifier = Verifier { key, last: None, first: None, rotated: None, unended, found };
    for (path, file) in files {
        verifier.file(&path, file).map_err(unreadable(&path))?;
    }
    verifier.check_beginning(folder, &numbers);
    match head.is_none() && numbers.is_empty() && verifier.found.records == 0 {
        true => verifier.fault(&Key::path(folder), None, Defect::MissingTrail),
        false => verifier.check_end(folder, head),
    }
    let joined = verifier.found.records;
    for (path, file) in waiting {
        // Each waiting file is a separate chain.
        verifier.last = Some(Link::START);
        verifier.file(&path, file).map_err(unreadable(&path))?;
    }
    verifier.found.waiting = verifier.found.records - joined;
    let lives = |name: &String| writers.contains(name);
    let unended = verifier.unended.runs().filter(|(id, writer)| !lives(id) && !lives(writer));
    verifier.found.unended = unended.count() as u64;
    Ok(verifier.found)
}

/// The trail at one moment. Others may write meanwhile.
struct Snapshot {
    key: Key,
    head: Option<Head>,
    /// Oldest first, limited to their length at that moment.
    files: Vec<(PathBuf, io::Take<File>)>,
    numbers: Vec<u64>,
    /// What has yet to join the trail.
    waiting: Vec<(PathBuf, io::Take<File>)>,
    /// The writers that lived then, and will record the ends of their runs.
    writers: HashSet<String>,
}

impl Snapshot {
    fn take(folder: &Path) -> Result<Self, Error> {
        let key = Key::read(folder).map_err(unreadable(&Key::path(folder)))?;
        let path = files::current(folder);
        // Keep others from writing and rotating while we list the files. If the holder of the lock was stopped,
        // nobody writes anyway.
        let _lock = match lock(folder, &path) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => None,
            lock => lock.map_err(unreadable(&path))?,
        };
        let mut writers = Writer::living(folder).map_err(unreadable(folder))?;
        let numbers = files::numbers(folder).map_err(unreadable(folder))?;
        let paths = numbers.iter().map(|number| files::rotated(folder, *number)).chain([path]);
        let files = open_at_current_size(paths)?;
        let waiting = files::all_waiting(folder).map_err(unreadable(folder))?;
        let waiting = open_at_current_size(waiting)?;
        // A new writer may have started a waiting file since.
        writers.extend(Writer::living(folder).map_err(unreadable(folder))?);
        let path = folder.join(HEAD_FILE);
        let head = open(&path).map_err(unreadable(&path))?;
        let head = head.map(|file| Head::read(&file, &key)).transpose();
        let head = head.map_err(unreadable(&path))?.flatten();
        Ok(Self { head, key, files, numbers, waiting, writers })
    }
}

/// Opens the files that exist, limited to their current length.
fn open_at_current_size(
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<Vec<(PathBuf, io::Take<File>)>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if let Some(file) = open(&path).map_err(unreadable(&path))? {
            let size = file.metadata().map_err(unreadable(&path))?.len();
            files.push((path, file.take(size)));
        }
    }
    Ok(files)
}

/// Locks the current file against writers, if there is one.
fn lock(folder: &Path, path: &Path) -> io::Result<Option<FileLock>> {
    const PAUSE: Duration = Duration::from_millis(1);
    let patience = Instant::now() + LOCK_TIMEOUT;
    loop {
        let Some(file) = open(path)?.map(Arc::new) else {
            // The writer that rotates it is about to make the next one, unless it was killed.
            if files::numbers(folder)?.is_empty() || Instant::now() > patience {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
            continue;
        };
        let lock = FileLock::acquire(file.clone(), LockMode::Shared, LOCK_TIMEOUT)?;
        // It may have been rotated before we got the lock.
        let found = files::found_at(path)?;
        if Some(files::identity(&file.metadata()?)) == found.as_ref().map(files::identity) {
            return Ok(Some(lock));
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

struct Verifier {
    key: Key,
    /// The last line in sequence.
    last: Option<Link>,
    /// The first line, and its file.
    first: Option<(PathBuf, Link)>,
    /// What the newest file says about those before it.
    rotated: Option<RotationRecord>,
    unended: Unended,
    found: Verified,
}

impl Verifier {
    fn file(&mut self, path: &Path, file: impl Read) -> io::Result<()> {
        self.found.files += 1;
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let limited = &mut (&mut reader).take(MAX_LINE as u64);
            if limited.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let defect = match line.strip_suffix(b"\n") {
                Some(line) => self.line(path, line),
                None => self.unended(&mut reader)?,
            };
            if let Some(defect) = defect {
                self.fault(path, Some(number), defect);
            }
        }
        Ok(())
    }

    /// Handles a line that is too long, or that a killed writer left incomplete.
    fn unended(&mut self, reader: &mut impl BufRead) -> io::Result<Option<Defect>> {
        if reader.skip_until(b'\n')? > 0 {
            return Ok(Some(Defect::NotARecord));
        }
        // If there was more after it, the head says so.
        self.found.torn += 1;
        Ok(None)
    }

    fn line(&mut self, path: &Path, text: &[u8]) -> Option<Defect> {
        let Some(line) = Line::parse(text) else { return Some(Defect::NotARecord) };
        self.found.records += 1;
        let expected = self.last.map_or(line.link.seq, |last| last.seq + 1);
        if !line.is_genuine(&self.key) {
            // Even its number may be wrong. The next line continues from its MAC.
            self.last = Some(Link { seq: expected, ..line.link });
            return Some(Defect::Changed);
        }
        let Some(last) = self.last else {
            self.first = Some((path.to_owned(), line.link));
            self.last = Some(line.link);
            return self.inspect(text);
        };
        let seq = line.link.seq;
        if seq < expected {
            return Some(Defect::OutOfOrder { seq });
        }
        self.last = Some(line.link);
        match self.inspect(text) {
            None if seq > expected => Some(Defect::Missing { from: expected, to: seq - 1 }),
            None if line.prev != last.mac => Some(Defect::Unlinked),
            inside => inside,
        }
    }

    /// Notes what a genuine record says about the trail and about runs.
    fn inspect(&mut self, text: &[u8]) -> Option<Defect> {
        let kind: RecordKind<'_> = serde_json::from_slice(text).ok()?;
        match (kind.event, kind.what) {
            (RotationRecord::EVENT, _) => self.rotated = RotationRecord::parse(text),
            (RepairRecord::EVENT, RepairRecord::HEAD) => return Some(Defect::HeadWasMissing),
            (RepairRecord::EVENT, RepairRecord::TRAIL) => return Some(Defect::TrailWasMissing),
            (RepairRecord::EVENT, RepairRecord::JOINED) => {
                return Some(Defect::ChangedWhileWaiting);
            }
            (RepairRecord::EVENT, _) => self.found.torn += 1,
            _ => self.unended.note(&kind),
        }
        None
    }

    /// Checks that no file is missing, and that the first line is where the trail began or a rotation let it begin.
    fn check_beginning(&mut self, folder: &Path, numbers: &[u64]) {
        let (oldest, previous) = self.rotated.as_ref().map_or((1, 0), |r| (r.oldest, r.previous));
        let mut faults = Vec::new();
        for number in (oldest..=previous).filter(|number| !numbers.contains(number)) {
            let path = files::rotated(folder, number);
            faults.push(Fault { path, line: None, defect: Defect::MissingFile });
        }
        if let Some((path, first)) = self.first.take() {
            self.found.first = first.seq;
            if first.seq > 1 && oldest <= 1 {
                let defect = Defect::Missing { from: 1, to: first.seq - 1 };
                faults.push(Fault { path, line: Some(1), defect });
            }
        }
        self.found.faults.splice(0..0, faults);
    }

    fn check_end(&mut self, folder: &Path, head: Option<Head>) {
        let path = files::current(folder);
        let last = self.last.unwrap_or(Link::START);
        match head {
            None => self.fault(&folder.join(HEAD_FILE), None, Defect::MissingHead),
            Some(Head { link, .. }) if link.seq > last.seq => {
                let defect = Defect::MissingAtEnd { from: last.seq + 1, to: link.seq };
                self.fault(&path, None, defect);
            }
            Some(Head { link, .. }) if link.seq == last.seq && link.mac != last.mac => {
                self.fault(&path, None, Defect::Unlinked);
            }
            Some(_) => {}
        }
    }

    fn fault(&mut self, path: &Path, line: Option<u64>, defect: Defect) {
        self.found.faults.push(Fault { path: path.to_owned(), line, defect });
    }
}

#[cfg(test)]
mod tests;
