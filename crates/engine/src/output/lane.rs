//! One stream of an output: its beginning and its end in memory, all but its beginning in a file.
//!
//! What is lost is lost at the end: a stream can be read from its first byte to the first gap.

use std::sync::Arc;

use crate::excerpt::Pieces;
use crate::nature::Nature;
use crate::spill::SpillFile;

/// How many times longer than what is shown of it text may be that is not plain.
const RENDERED: usize = 8;

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
    pub lost: u64,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub file: Option<Arc<SpillFile>>,
    /// Whether bytes were lost. What follows a gap could not be placed any more.
    pub full: bool,
}

impl Lane {
    /// How much can be read: all but what was lost.
    pub fn kept_length(&self) -> u64 {
        self.length - self.lost
    }

    /// What is only in the file is lost with it.
    pub fn release(&mut self) -> Option<Arc<SpillFile>> {
        let file = self.file.take()?;
        self.lost = self.length - self.head.len() as u64;
        self.full = true;
        Some(file)
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
        let size = if self.is_plain() { size } else { size.saturating_mul(RENDERED) };
        if let Ok(whole) = usize::try_from(self.length)
            && self.lost == 0
            && whole <= size
        {
            return Reach { first: whole, last: 0 };
        }
        let at_most = |size: usize, length: u64| {
            usize::try_from(length).map_or(size, |length| size.min(length))
        };
        // A third is for the beginning, and with little room all of it.
        let first = at_most((size / 3).max(LITTLE), self.kept_length());
        let last = at_most(size, self.length - first as u64);
        // Behind a gap there is no more than what memory has.
        let last = if self.lost > 0 { last.min(self.tail.len()) } else { last };
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
