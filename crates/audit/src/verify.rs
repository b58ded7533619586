//! Whether a trail is as it was written.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::files::{self, Held, Sharing};
use crate::head::{HEAD_FILE, Head};
use crate::line::{Line, Link, MAX_LINE};
use crate::record::{Repaired, Rotated};
use crate::seal::Key;
use crate::unreadable;
use crate::writer::{Kind, Unended, Writer};

/// How long those who write are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    pub files: u64,
    /// The number of the first record there is: older ones may have been let go of.
    pub first: u64,
    /// Lines that somebody was killed while writing, and that were taken off.
    pub torn: u64,
    /// Records that have yet to join the trail: somebody has its lock and does not let go.
    pub waiting: u64,
    /// Runs that have no end on record, and whose process is gone.
    pub unended: u64,
    /// In the order of the trail; if there are none, all is well.
    pub faults: Vec<Fault>,
}

/// Something is not as it was written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    pub path: PathBuf,
    /// From 1 on, if it is about one.
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
    #[error("this is no record")]
    NoRecord,
    #[error("this record was changed, or was not written with this key")]
    Changed,
    #[error("{}", missing(*from, *to, "before this one"))]
    Missing { from: u64, to: u64 },
    #[error("{}", missing(*from, *to, "at the end"))]
    MissingAtEnd { from: u64, to: u64 },
    #[error("record {seq} is out of order")]
    OutOfOrder { seq: u64 },
    #[error("this record does not follow the one before it")]
    Detached,
    #[error("this file is missing")]
    NoFile,
    #[error("the head is missing or was changed, so nobody knows which record was the last")]
    NoHead,
    #[error("a record was changed while it waited to join the trail")]
    ChangedElsewhere,
    #[error("the head was missing when this was written, so records before it may be, too")]
    WasHeadless,
}

fn missing(from: u64, to: u64, place: &str) -> String {
    match from == to {
        true => format!("record {from} is missing {place}"),
        false => format!("records {from} to {to} are missing {place}"),
    }
}

/// Looks at every line of a trail.
pub fn verify(folder: &Path) -> Result<Verified, Error> {
    let Snapshot { key, head, files, numbers, waiting, writers } = Snapshot::take(folder)?;
    let (unended, found) = (Unended::default(), Verified::default());
    let mut walk = Walk { key, last: None, first: None, rotated: None, unended, found };
    for (path, file) in files {
        walk.file(&path, file).map_err(unreadable(&path))?;
    }
    walk.check_beginning(folder, &numbers);
    walk.check_end(folder, head);
    let joined = walk.found.records;
    for (path, file) in waiting {
        // Each is a chain of its own.
        walk.last = Some(Link::START);
        walk.file(&path, file).map_err(unreadable(&path))?;
    }
    walk.found.waiting = walk.found.records - joined;
    let lives = |name: &String| writers.contains(name);
    let unended = walk.unended.runs().filter(|(id, writer)| !lives(id) && !lives(writer));
    walk.found.unended = unended.count() as u64;
    Ok(walk.found)
}

/// The trail as it is at one moment; others may go on writing.
struct Snapshot {
    key: Key,
    head: Option<Head>,
    /// Oldest first, none longer than it was then.
    files: Vec<(PathBuf, io::Take<File>)>,
    numbers: Vec<u64>,
    /// What has yet to join it.
    waiting: Vec<(PathBuf, io::Take<File>)>,
    /// Those who lived then, and will record the ends of their runs.
    writers: HashSet<String>,
}

impl Snapshot {
    fn take(folder: &Path) -> Result<Self, Error> {
        let key = Key::read(folder).map_err(unreadable(&Key::path(folder)))?;
        let path = files::current(folder);
        // Nobody writes or puts files away while we look what there is; unless whoever may was stopped,
        // and then nobody does so either.
        let _held = match hold(&path) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => None,
            held => held.map_err(unreadable(&path))?,
        };
        let mut writers = Writer::living(folder).map_err(unreadable(folder))?;
        let numbers = files::numbers(folder).map_err(unreadable(folder))?;
        let paths = numbers.iter().map(|number| files::rotated(folder, *number)).chain([path]);
        let files = as_they_are(paths)?;
        let waiting = files::all_waiting(folder).map_err(unreadable(folder))?;
        let waiting = as_they_are(waiting)?;
        // Somebody new may have begun to write what waits.
        writers.extend(Writer::living(folder).map_err(unreadable(folder))?);
        let path = folder.join(HEAD_FILE);
        let head = open(&path).map_err(unreadable(&path))?;
        let head = head.map(|file| Head::read(&file, &key)).transpose();
        let head = head.map_err(unreadable(&path))?.flatten();
        Ok(Self { head, key, files, numbers, waiting, writers })
    }
}

/// Files that are there, none longer than it is now.
fn as_they_are(
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

/// Keeps others from writing, if there is anything to be written to.
fn hold(path: &Path) -> io::Result<Option<Held>> {
    while let Some(file) = open(path)?.map(Arc::new) {
        let held = Held::take(file.clone(), Sharing::Readers, PATIENCE)?;
        // It may have been put away before we had it.
        let found = files::found_at(path)?;
        if Some(files::identity(&file.metadata()?)) == found.as_ref().map(files::identity) {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

struct Walk {
    key: Key,
    /// The last line that was where it belongs.
    last: Option<Link>,
    /// The very first line, and where it is.
    first: Option<(PathBuf, Link)>,
    /// What the newest file says about those before it.
    rotated: Option<Rotated>,
    unended: Unended,
    found: Verified,
}

impl Walk {
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

    /// A line that is too long, or that somebody was killed while writing.
    fn unended(&mut self, reader: &mut impl BufRead) -> io::Result<Option<Defect>> {
        if reader.skip_until(b'\n')? > 0 {
            return Ok(Some(Defect::NoRecord));
        }
        // If there was more of it, the head knows.
        self.found.torn += 1;
        Ok(None)
    }

    fn line(&mut self, path: &Path, text: &[u8]) -> Option<Defect> {
        let Some(line) = Line::parse(text) else { return Some(Defect::NoRecord) };
        self.found.records += 1;
        let expected = self.last.map_or(line.link.seq, |last| last.seq + 1);
        if !line.is_genuine(&self.key) {
            // Even its number may be wrong; the next line follows what stands here.
            self.last = Some(Link { seq: expected, ..line.link });
            return Some(Defect::Changed);
        }
        let Some(last) = self.last else {
            self.first = Some((path.to_owned(), line.link));
            self.last = Some(line.link);
            return self.look_inside(text);
        };
        let seq = line.link.seq;
        if seq < expected {
            return Some(Defect::OutOfOrder { seq });
        }
        self.last = Some(line.link);
        match self.look_inside(text) {
            None if seq > expected => Some(Defect::Missing { from: expected, to: seq - 1 }),
            None if line.prev != last.mac => Some(Defect::Detached),
            inside => inside,
        }
    }

    /// Notes what a genuine record says about the trail itself, and about runs.
    fn look_inside(&mut self, text: &[u8]) -> Option<Defect> {
        let kind: Kind<'_> = serde_json::from_slice(text).ok()?;
        match (kind.event, kind.what) {
            (Rotated::EVENT, _) => self.rotated = Rotated::parse(text),
            (Repaired::EVENT, Repaired::HEAD) => return Some(Defect::WasHeadless),
            (Repaired::EVENT, Repaired::JOINED) => return Some(Defect::ChangedElsewhere),
            (Repaired::EVENT, _) => self.found.torn += 1,
            _ => self.unended.note(&kind),
        }
        None
    }

    /// Whether all files are there, and the first begins where the trail does, or where it was
    /// allowed to.
    fn check_beginning(&mut self, folder: &Path, numbers: &[u64]) {
        let (oldest, previous) = self.rotated.as_ref().map_or((1, 0), |r| (r.oldest, r.previous));
        let mut faults = Vec::new();
        for number in (oldest..=previous).filter(|number| !numbers.contains(number)) {
            let path = files::rotated(folder, number);
            faults.push(Fault { path, line: None, defect: Defect::NoFile });
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
            None => self.fault(&folder.join(HEAD_FILE), None, Defect::NoHead),
            Some(Head { link, .. }) if link.seq > last.seq => {
                let defect = Defect::MissingAtEnd { from: last.seq + 1, to: link.seq };
                self.fault(&path, None, defect);
            }
            Some(Head { link, .. }) if link.seq == last.seq && link.mac != last.mac => {
                self.fault(&path, None, Defect::Detached);
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
