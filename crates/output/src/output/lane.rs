//! One stream of an output: its beginning and its end in memory, all but its beginning in a file.
//!
//! When the file cannot grow any further, the stream is cut: only the newest of what follows stays in memory.
//!
//!     0 ── head ──── file ──── cut ┄┄ lost ┄┄ tail ── length

use std::sync::Arc;

use crate::excerpt::Pieces;
use crate::nature::Nature;
use crate::spill::SpillFile;

/// How much of each stream's end is in memory.
pub const TAIL: usize = 16 << 10;

/// The same, of a stream whose end is nowhere else.
pub const NEWEST_KEPT: usize = 64 << 10;

/// How many times longer than what is shown of it text may be that is not plain.
const RENDERED: usize = 8;

/// How much of such text is looked at as a whole.
const MOST_RENDERED: usize = 4 << 20;

/// What is looked at of the beginning, at least.
const LITTLE: usize = 1024;

/// How many bytes of a stream's beginning and of its end.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    pub first: usize,
    pub last: usize,
}

#[derive(Debug, Default)]
pub struct Lane {
    pub length: u64,
    pub nature: Nature,
    /// Where the last line that has an end, ends.
    pub lines_end: u64,
    /// How much there was when the command was answered for, though something of it still runs.
    pub answered: u64,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub file: Option<Arc<SpillFile>>,
    /// Where there was no more room for it, if that happened. Only the tail has anything beyond.
    pub cut: Option<u64>,
}

impl Lane {
    /// How much can be read from the beginning on.
    pub fn front(&self) -> u64 {
        self.cut.unwrap_or(self.length)
    }

    /// Where the bytes begin that can be read beyond the front.
    pub fn newest(&self) -> u64 {
        self.front().max(self.length - self.tail.len() as u64)
    }

    pub fn lost(&self) -> u64 {
        self.newest() - self.front()
    }

    /// What is only in the file is lost with it.
    pub fn release(&mut self) -> Option<Arc<SpillFile>> {
        let file = self.file.take()?;
        self.cut = Some(self.head.len() as u64);
        Some(file)
    }

    /// Takes in bytes that came: the first `in_head` of them belong there, and so many in all are kept.
    pub fn take_in(&mut self, bytes: &[u8], in_head: usize, kept: usize) {
        let beyond_head = in_head < bytes.len();
        if beyond_head && self.length == self.head.len() as u64 {
            keep_last(&mut self.tail, &self.head, TAIL);
            keep_last(&mut self.tail, &bytes[..in_head], TAIL);
        }
        self.head.extend_from_slice(&bytes[..in_head]);
        if kept < bytes.len() {
            self.cut.get_or_insert(self.length + kept as u64);
        }
        let limit = if self.cut.is_some() { NEWEST_KEPT } else { TAIL };
        keep_last(&mut self.tail, &bytes[in_head..], limit);
        self.length += bytes.len() as u64;
        if let Some(at) = memchr::memrchr(b'\n', bytes) {
            self.lines_end = self.length - (bytes.len() - at - 1) as u64;
        }
        self.nature.note(bytes);
    }

    /// Notes that so much more came, of which nothing is at hand.
    pub fn lose(&mut self, bytes: u64) {
        self.cut.get_or_insert(self.length);
        self.length = self.length.saturating_add(bytes);
        self.tail.clear();
    }

    /// What memory has from an offset beyond the front on.
    pub fn passing(&self, at: u64, limit: usize) -> &[u8] {
        let bytes = &self.tail[self.tail.len() - (self.length - at) as usize..];
        &bytes[..bytes.len().min(limit)]
    }

    /// The last bytes, at most so many, and how many there were in all.
    pub fn end(&self, limit: usize) -> (&[u8], u64) {
        let end = if self.tail.is_empty() { &self.head } else { &self.tail };
        (&end[end.len().saturating_sub(limit)..], self.length)
    }

    /// How much of the beginning and of the end an excerpt of some size is made from.
    pub fn reach(&self, size: usize) -> Reach {
        if self.length == self.head.len() as u64 {
            return Reach { first: self.head.len(), last: 0 };
        }
        // What is shown of other text can be much shorter than what came.
        let (size, most) = match self.is_plain() {
            true => (size, size),
            false => (size.saturating_mul(RENDERED), MOST_RENDERED),
        };
        if let Ok(whole) = usize::try_from(self.length)
            && self.lost() == 0
            && whole <= size.max(most)
        {
            return Reach { first: whole, last: 0 };
        }
        let at_most = |size: usize, length: u64| {
            usize::try_from(length).map_or(size, |length| size.min(length))
        };
        // A third is for the beginning.
        let first = at_most((size / 3).max(LITTLE), self.front());
        let last = at_most(size, self.length - first as u64);
        // Behind a gap there is no more than what memory has.
        let last = if self.lost() > 0 { last.min(self.tail.len()) } else { last };
        Reach { first, last }
    }

    /// Whether memory reaches that far.
    pub fn holds(&self, reach: Reach) -> bool {
        reach.first <= self.head.len() && reach.last <= self.tail.len()
    }

    /// What memory has of it.
    pub fn pieces(&self, reach: Reach) -> Pieces {
        Pieces {
            first: self.head[..self.head.len().min(reach.first)].to_vec(),
            last: self.tail[self.tail.len().saturating_sub(reach.last)..].to_vec(),
            length: self.length,
            plain: self.is_plain(),
        }
    }

    fn is_plain(&self) -> bool {
        self.nature.plain && !self.nature.is_cut()
    }

    /// What stands for bytes that cannot be shown.
    pub fn announcement(&self) -> Option<String> {
        let kind = || infer::get(&self.head).map_or("binary data", |kind| kind.mime_type());
        self.nature.binary.then(|| format!("[{} bytes of {}, not shown]\n", self.length, kind()))
    }
}

/// Appends `bytes` to `end` and drops what is more than the last `limit` bytes.
pub fn keep_last(end: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(limit)..];
    let surplus = (end.len() + bytes.len()).saturating_sub(limit);
    end.drain(..surplus);
    end.extend_from_slice(bytes);
}
