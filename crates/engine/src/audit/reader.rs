//! Reading a trail, while it is written and put away.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::files;
use super::line::Line;
use super::unreadable;
use crate::error::Error;

/// Every whole line of a trail, oldest first.
pub fn audit_lines(folder: &Path) -> Result<impl Iterator<Item = String> + use<>, Error> {
    let files = open_all(folder)?.into_iter();
    Ok(files.flat_map(|(_, file)| Lines(BufReader::new(file))))
}

/// The end of a trail, and what is added to it.
pub struct AuditTail {
    folder: PathBuf,
    /// The last record that was given.
    seq: u64,
    current: Option<Current>,
}

/// The file that is written, read up to a place.
struct Current {
    identity: (u64, u64),
    lines: Lines,
}

impl AuditTail {
    /// Begins with the last `count` lines.
    pub fn last(folder: &Path, count: usize) -> Result<(Self, Vec<String>), Error> {
        let mut tail = Self { folder: folder.to_owned(), seq: 0, current: None };
        let last = tail.read_back(count, 0)?;
        tail.seq = newest(&last).unwrap_or(0);
        Ok((tail, last.into()))
    }

    /// The last lines: as many as are wanted, or at least all that are newer than a record.
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

    /// What was added since.
    pub fn more(&mut self) -> Result<Vec<String>, Error> {
        let mut added = Vec::new();
        let path = files::current(&self.folder);
        let at = files::found_at(&path).map_err(unreadable(&path))?.as_ref().map(files::identity);
        match &mut self.current {
            Some(current) if Some(current.identity) == at => added.extend(&mut current.lines),
            // It was put away, and perhaps more than one.
            _ => {
                self.current = None;
                let lines = self.read_back(usize::MAX, self.seq)?;
                let is_new = |line: &String| seq(line).is_none_or(|seq| seq > self.seq);
                added.extend(lines.into_iter().filter(is_new));
            }
        }
        self.seq = newest(&added).unwrap_or(self.seq);
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

/// The files there are, oldest first.
fn open_all(folder: &Path) -> Result<Vec<(PathBuf, File)>, Error> {
    // Before those that were put away are counted: it may become one of them meanwhile.
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
            // It may not even be the last of them by now.
            if !files.iter().any(is_same) {
                files.push((current, file));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.is_empty() => {}
        Err(error) => return Err(unreadable(&current)(error)),
    }
    Ok(files)
}

/// Whole lines; one that has no end yet is left for later.
struct Lines(BufReader<File>);

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self.0.read_until(b'\n', &mut line).ok()?;
        if line.pop() != Some(b'\n') {
            let _ = self.0.seek_relative(-(read as i64));
            return None;
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}
