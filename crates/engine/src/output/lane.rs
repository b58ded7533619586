//! One stream of an output: its beginning and its end in memory, all but its beginning in a file.
//!
//! What is lost is lost at the end: a stream can be read from its first byte to the first gap.

use std::sync::Arc;

use super::Excerpt;
use crate::nature::Nature;
use crate::spill::SpillFile;
use crate::text;

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

    pub fn excerpt(&self, limit: usize) -> Excerpt {
        if self.nature.binary {
            let kind = infer::get(&self.head).map_or("binary data", |kind| kind.mime_type());
            let text = format!("[{} bytes of {kind}, which is no text]\n", self.length);
            return Excerpt { text, omitted: self.length };
        }
        if self.length <= limit as u64 && self.length == self.head.len() as u64 {
            return Excerpt { text: text::plain_within(&self.head, limit), omitted: 0 };
        }
        let first = text::before_cut(&self.head[..self.head.len().min(limit / 4 * 3)]);
        // Where little is kept, the end may reach back to the beginning.
        let rest = usize::try_from(self.length - first.len() as u64).unwrap_or(usize::MAX);
        let (end, _) = self.end(rest.min(limit / 4));
        let last = text::after_cut(end);
        let omitted = self.length - (first.len() + last.len()) as u64;
        let (before, after) =
            (text::plain_within(first, limit), text::plain_within(last, limit / 4));
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        let text = format!("{before}{gap}[... {omitted} bytes left out ...]\n{after}");
        Excerpt { text, omitted }
    }
}
