//! Lines of an output of any size, with the few before them, in bounded memory.
//!
//! A line is where it lies in the buffer, without a copy. Of a very long line only the beginning is kept. Of a line
//! that a progress bar wrote over and over, only what it said last, and states that tell of errors.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Result};

use memchr::memchr;

use crate::alike::alike;
use crate::words::mentions_trouble;

/// How much is kept of a line that is too long.
const LONGEST: usize = 32 * 1024;

/// A line this long is kept: without its last bytes, but with a note about them, it would not be shorter.
const WHOLE: usize = LONGEST + NOTE;

/// The first size of the buffer. Most outputs are small; for others it grows, as large pieces are read faster.
const SMALL: usize = 16 * 1024;

/// The largest size: room for four of the longest lines and one that goes on, and as much again to read into.
const LARGE: usize = 8 * LONGEST;

/// How many lines can be looked at: the newest, and three before it.
const RECENT: usize = 4;

/// More than a note takes that says how much was left out.
const NOTE: usize = 48;

/// One line, or what is kept of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    at: usize,
    len: usize,
    /// Its length in the output, with its end.
    pub raw: u64,
    /// How many bytes of it were not kept, after those that were.
    pub cut: u64,
    /// A hash of those bytes.
    pub cut_hash: u64,
    /// How many states of a progress bar were left out.
    pub overwritten: u64,
    /// Whether it ends with a newline. Only the last line may not.
    pub ended: bool,
}

impl Line {
    /// The line without some more bytes, after those that are kept.
    pub fn without(&self, bytes: usize) -> Self {
        Self { cut: self.cut + bytes as u64, ..*self }
    }

    /// Whether every byte of it was kept.
    pub fn is_whole(&self) -> bool {
        self.cut == 0 && self.overwritten == 0
    }
}

pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where the next line begins, and where ends what was read.
    next: usize,
    end: usize,
    /// Whether there is a carriage return in anything that was read.
    returns: bool,
    recent: [Line; RECENT],
    /// Whether they mention trouble, as far as anybody has asked.
    trouble: [Cell<Option<bool>>; RECENT],
    newest: usize,
}

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Self {
        let (buffer, recent) = (vec![0; SMALL], [Line::default(); RECENT]);
        let trouble = [const { Cell::new(None) }; RECENT];
        Self { source, buffer, next: 0, end: 0, returns: false, recent, trouble, newest: 0 }
    }

    /// The line that was read some lines ago; 0 is the newest.
    pub fn recent(&self, ago: usize) -> &Line {
        &self.recent[self.place(ago)]
    }

    fn place(&self, ago: usize) -> usize {
        self.newest.wrapping_sub(ago) % RECENT
    }

    /// What was kept of it, without its end.
    pub fn bytes(&self, ago: usize) -> &[u8] {
        let line = self.recent(ago);
        self.buffer.get(line.at..line.at + line.len).unwrap_or_default()
    }

    /// Whether the newest line is alike to one some lines before, in what was kept of them.
    pub fn are_alike(&self, ago: usize) -> bool {
        let trouble = &self.trouble[self.place(ago)];
        let is_trouble = || {
            let known = trouble.get().unwrap_or_else(|| mentions_trouble(self.bytes(ago)));
            trouble.set(Some(known));
            known
        };
        let are_alike = alike(self.bytes(0), self.bytes(ago), is_trouble);
        if are_alike {
            self.trouble[self.place(0)].set(trouble.get());
        }
        are_alike
    }

    /// Reads the next line; false at the end of the output.
    pub fn advance(&mut self) -> Result<bool> {
        let mut searched = 0;
        loop {
            let rest = self.buffer.get(self.next + searched..self.end).unwrap_or_default();
            let found = memchr(b'\n', rest).map(|found| searched + found);
            searched = self.end - self.next;
            match found {
                Some(len) if len <= WHOLE => self.take(len, true),
                _ if searched > WHOLE => self.take_long()?,
                _ if self.fill()? => continue,
                _ if searched > 0 => self.take(searched, false),
                _ => return Ok(false),
            }
            return Ok(true);
        }
    }

    fn take(&mut self, len: usize, ended: bool) {
        let raw = len + usize::from(ended);
        let mut line = Line { at: self.next, len, raw: raw as u64, ended, ..Line::default() };
        self.next += raw;
        if self.returns {
            self.drop_states(&mut line);
        }
        self.remember(line);
    }

    fn remember(&mut self, line: Line) {
        self.newest = self.newest.wrapping_add(1);
        let place = self.place(0);
        self.recent[place] = line;
        self.trouble[place].set(None);
    }

    /// Takes a line that is longer than what is kept. What is kept stays where the line begins, and the rest is
    /// read behind it, part by part. What is kept does not depend on how the parts were cut.
    fn take_long(&mut self) -> Result<()> {
        let mut line = Line::default();
        let mut unread = 0;
        loop {
            let from = self.next + unread;
            let rest = self.buffer.get(from..self.end).unwrap_or_default();
            let found = memchr(b'\n', rest);
            let mut part = found.unwrap_or(rest.len());
            if line.cut > 0 {
                line.cut_hash = hash(line.cut_hash, rest.get(..part).unwrap_or_default());
                line.cut += part as u64;
            } else {
                part = part.min(WHOLE + 1 - line.len);
                self.buffer.copy_within(from..from + part, self.next + line.len);
                line.len += part;
            }
            unread += part;
            line.raw += part as u64;
            let at_end = found == Some(part);
            if at_end
                || self.next + unread == self.end && !self.fill_behind(line.len, &mut unread)?
            {
                line.ended = at_end;
                break;
            }
            if line.len > WHOLE {
                self.shorten(&mut line);
            }
        }
        line.at = self.next;
        self.next += unread + usize::from(line.ended);
        line.raw += u64::from(line.ended);
        if line.len > WHOLE {
            self.cut(&mut line);
        }
        if line.cut == 0 && self.returns {
            self.drop_states(&mut line);
        }
        self.remember(line);
        Ok(())
    }

    /// Makes what is kept of a line that goes on shorter.
    fn shorten(&mut self, line: &mut Line) {
        line.at = self.next;
        if self.returns {
            let kept = self.buffer.get(line.at..line.at + line.len).unwrap_or_default();
            let complete = memchr::memrchr(b'\r', kept).unwrap_or(0);
            let (states, last) = kept.split_at(complete);
            let (mut shorter, dropped) = last_states(states);
            shorter.extend_from_slice(last);
            // Otherwise little would be won, over and over.
            if shorter.len() < LONGEST / 2 {
                line.overwritten += dropped;
                line.len = shorter.len();
                self.write(line.at, &shorter);
                return;
            }
        }
        self.cut(line);
    }

    fn cut(&mut self, line: &mut Line) {
        let rest = self.buffer.get(line.at + LONGEST..line.at + line.len).unwrap_or_default();
        line.cut_hash = hash(line.cut_hash, rest);
        line.cut += rest.len() as u64;
        line.len = LONGEST;
    }

    /// Leaves out what a finished line said before it was overwritten, if it is shorter with a note about it.
    fn drop_states(&mut self, line: &mut Line) {
        let kept = self.buffer.get(line.at..line.at + line.len).unwrap_or_default();
        let inner = kept.strip_suffix(b"\r").unwrap_or(kept);
        if memchr(b'\r', inner).is_none() {
            return;
        }
        let (shorter, dropped) = last_states(inner);
        if line.overwritten > 0 || shorter.len() + NOTE < kept.len() {
            line.overwritten += dropped;
            line.len = shorter.len();
            self.write(line.at, &shorter);
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Forgets what was read of a long line, but for its beginning, and reads on.
    fn fill_behind(&mut self, kept: usize, unread: &mut usize) -> Result<bool> {
        self.end = self.next + kept;
        *unread = kept;
        self.fill()
    }

    /// Reads more; false at the end of the output.
    fn fill(&mut self) -> Result<bool> {
        if self.end == self.buffer.len() {
            self.make_room();
        }
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = loop {
            match self.source.read(free) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let new = free.get(..read).unwrap_or_default();
        self.returns = self.returns || memchr(b'\r', new).is_some();
        self.end += new.len();
        Ok(!new.is_empty())
    }

    /// Lets go of everything but recent lines and what was read after them.
    fn make_room(&mut self) {
        let mut end = 0;
        for ago in (0..RECENT).rev() {
            let place = self.place(ago);
            let line = &mut self.recent[place];
            self.buffer.copy_within(line.at..line.at + line.len, end);
            line.at = end;
            end += line.len;
        }
        self.buffer.copy_within(self.next..self.end, end);
        self.end = end + self.end - self.next;
        self.next = end;
        let is_small = self.buffer.len() < LARGE / 2 || self.end > self.buffer.len() / 2;
        if is_small && self.buffer.len() < LARGE {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }
}

/// The states of a line that are kept, and how many are not: the last one, and those that tell of trouble in
/// other words than the next.
fn last_states(line: &[u8]) -> (Vec<u8>, u64) {
    let mut states = line.split(|byte| *byte == b'\r').filter(|state| !state.is_empty()).peekable();
    let (mut kept, mut dropped) = (Vec::new(), 0);
    while let Some(state) = states.next() {
        let repeated = states.peek().map(|next| alike(state, next, || mentions_trouble(next)));
        if repeated == Some(true) || repeated == Some(false) && !mentions_trouble(state) {
            dropped += 1;
            continue;
        }
        if !kept.is_empty() {
            kept.push(b'\r');
        }
        kept.extend_from_slice(state);
    }
    (kept, dropped)
}

/// Goes on with a hash (FNV-1a), whatever the parts of what is hashed.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
