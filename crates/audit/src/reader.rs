//! Reading a trail while others write and rotate it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, unreadable};
use crate::files;
use crate::line::{JOINED, Line, MAX_LINE};

/// All complete lines of a trail, oldest first, followed by those that wait to join it.
pub fn audit_lines(folder: &Path) -> Result<impl Iterator<Item = String> + use<>, Error> {
    let files = open_all(folder)?.into_iter().map(|(_, file)| file);
    let waiting = files::all_waiting(folder).map_err(unreadable(folder))?;
    let waiting = waiting.into_iter().filter_map(|path| File::open(path).ok());
    Ok(files.chain(waiting).flat_map(|file| Lines(BufReader::new(file))))
}

/// The files of a trail, newest first. Lines that wait to join the trail belong to the newest.
pub fn audit_files(folder: &Path) -> Result<Vec<AuditFile>, Error> {
    let waiting = files::all_waiting(folder).map_err(unreadable(folder))?;
    let waiting = waiting.into_iter().filter_map(|path| File::open(path).ok());
    let mut files: Vec<_> = open_all(folder)?.into_iter().map(|(_, file)| vec![file]).collect();
    if let Some(newest) = files.last_mut() {
        newest.extend(waiting);
    }
    let lines = |file| Lines(BufReader::new(file));
    Ok(files.into_iter().rev().map(|all| AuditFile(all.into_iter().map(lines).collect())).collect())
}

/// The complete lines of one file, oldest first.
pub struct AuditFile(VecDeque<Lines>);

impl Iterator for AuditFile {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        while let Some(lines) = self.0.front_mut() {
            match lines.next() {
                Some(line) => return Some(line),
                None => drop(self.0.pop_front()),
            }
        }
        None
    }
}

/// Follows the end of a trail.
pub struct AuditTail {
    folder: PathBuf,
    /// The number of the last record that was returned.
    seq: u64,
    current: Option<Current>,
    /// Waiting files, each read up to some place.
    waiting: HashMap<PathBuf, Lines>,
    /// The bodies of waiting records that were returned. They are not returned again when they join.
    given: HashSet<Vec<u8>>,
}

/// The current file, read up to some place.
struct Current {
    identity: (u64, u64),
    lines: Lines,
}

impl AuditTail {
    /// Starts with the last `count` lines.
    pub fn last(folder: &Path, count: usize) -> Result<(Self, Vec<String>), Error> {
        let (waiting, given) = (HashMap::new(), HashSet::new());
        let mut tail = Self { folder: folder.to_owned(), seq: 0, current: None, waiting, given };
        let mut last = tail.read_back(count, 0)?;
        tail.seq = newest(&last).unwrap_or(0);
        last.extend(tail.read_waiting()?);
        last.drain(..last.len().saturating_sub(count));
        Ok((tail, last.into()))
    }

    /// What was added to the waiting files.
    fn read_waiting(&mut self) -> Result<Vec<String>, Error> {
        let paths = files::all_waiting(&self.folder).map_err(unreadable(&self.folder))?;
        self.waiting.retain(|path, _| paths.contains(path));
        let mut added = Vec::new();
        for path in paths {
            let lines = match self.waiting.entry(path) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => match File::open(new.key()) {
                    Ok(file) => new.insert(Lines(BufReader::new(file))),
                    Err(_) => continue,
                },
            };
            added.extend(lines);
        }
        self.given.extend(added.iter().filter_map(|line| body(line)));
        Ok(added)
    }

    /// The last `count` lines, or fewer if those already include everything after record `after`.
    fn read_back(&mut self, count: usize, after: u64) -> Result<VecDeque<String>, Error> {
        let mut last = VecDeque::new();
        for (path, file) in open_all(&self.folder)?.into_iter().rev() {
            let mut own = VecDeque::new();
            let mut lines = Lines(BufReader::new(file));
            for line in lines.by_ref() {
                own.push_back(line);
                if own.len() + last.len() > count {
                    own.pop_front();
                }
            }
            if path == files::current(&self.folder) {
                self.current = Current::new(lines);
            }
            own.append(&mut last);
            last = own;
            let reached = last.front().and_then(|line| seq(line)).is_some_and(|seq| seq <= after);
            if reached || last.len() >= count {
                break;
            }
        }
        Ok(last)
    }

    /// What was added since the last call.
    pub fn more(&mut self) -> Result<Vec<String>, Error> {
        let mut added = Vec::new();
        let path = files::current(&self.folder);
        let at = files::found_at(&path).map_err(unreadable(&path))?.as_ref().map(files::identity);
        match &mut self.current {
            Some(current) if Some(current.identity) == at => added.extend(&mut current.lines),
            // The file was rotated, perhaps more than once.
            _ => {
                self.current = None;
                let lines = self.read_back(usize::MAX, self.seq)?;
                let is_new = |line: &String| seq(line).is_none_or(|seq| seq > self.seq);
                added.extend(lines.into_iter().filter(is_new));
            }
        }
        self.seq = newest(&added).unwrap_or(self.seq);
        added.retain(|line| body(line).is_none_or(|body| !self.given.remove(&body)));
        added.extend(self.read_waiting()?);
        Ok(added)
    }
}

impl Current {
    fn new(lines: Lines) -> Option<Self> {
        let identity = files::identity(&lines.0.get_ref().metadata().ok()?);
        Some(Self { identity, lines })
    }
}

fn newest<'a>(
    lines: impl IntoIterator<Item = &'a String, IntoIter: DoubleEndedIterator>,
) -> Option<u64> {
    lines.into_iter().rev().find_map(|line| seq(line))
}

fn seq(line: &str) -> Option<u64> {
    Line::parse(line.as_bytes()).map(|line| line.link.seq)
}

/// The body of a line, the same in a waiting file and in the trail.
fn body(line: &str) -> Option<Vec<u8>> {
    let body = Line::parse(line.as_bytes())?.body;
    Some(body.strip_suffix(JOINED).unwrap_or(body).to_vec())
}

/// Opens all files, oldest first.
fn open_all(folder: &Path) -> Result<Vec<(PathBuf, File)>, Error> {
    // Before listing the rotated ones: it may become one of them meanwhile.
    let current = files::current(folder);
    let written = File::open(&current);
    let numbers = files::numbers(folder).map_err(unreadable(folder))?;
    let mut files = Vec::new();
    for path in numbers.into_iter().map(|number| files::rotated(folder, number)) {
        match File::open(&path) {
            Ok(file) => files.push((path, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path)(error)),
        }
    }
    match written {
        Ok(file) => {
            let is_same = |(_, other): &(PathBuf, File)| match (other.metadata(), file.metadata()) {
                (Ok(one), Ok(other)) => files::identity(&one) == files::identity(&other),
                _ => false,
            };
            // By now, it may not even be the last of them.
            if !files.iter().any(is_same) {
                files.push((current, file));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.is_empty() => {}
        Err(error) => return Err(unreadable(&current)(error)),
    }
    Ok(files)
}

/// Complete lines. An incomplete one is left for later. Of a line that is too long to be ours, only the start is kept
/// in memory.
struct Lines(BufReader<File>);

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let start = self.0.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line).ok()?;
        let (mut read, mut ends) = (start, line.last() == Some(&b'\n'));
        while !ends && read >= MAX_LINE {
            let mut rest = Vec::new();
            let more = self.0.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut rest).ok()?;
            (read, ends) = (read + more, rest.last() == Some(&b'\n'));
            if more == 0 {
                break;
            }
        }
        if !ends {
            let _ = self.0.seek_relative(-(read as i64));
            return None;
        }
        line.pop_if(|last| *last == b'\n');
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}
