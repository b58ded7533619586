//! One stream of an output: its start and its end in memory, everything but its start in a file.
//!
//! When the file cannot grow any more, the stream is cut. Of what arrives later, only the newest bytes stay in
//! memory.
//!
//!     0 ── head ──── file ──── cut ┄┄ lost ┄┄ tail ── length
//!     └──────── prefix ────────┘

use std::sync::Arc;

use crate::content_kind::ContentKind;
use crate::excerpt::ExcerptSource;
use crate::spill::SpillFile;

/// How much of a stream's end is in memory.
pub const TAIL: usize = 16 << 10;

/// The same, for a stream that is cut: its end is nowhere else.
pub const NEWEST_KEPT: usize = 64 << 10;

/// Text that is not plain may be this many times longer than its rendered form.
const RENDER_FACTOR: usize = 8;

/// Text that is not plain and no longer than this is rendered as a whole.
const MAX_RENDERED: usize = 4 << 20;

/// The least that an excerpt reads of the start.
const MIN_FIRST: usize = 1024;

/// How many bytes of a stream's start and of its end an excerpt needs.
#[derive(Debug, Clone, Copy)]
pub struct SourceLengths {
    pub first: usize,
    pub last: usize,
}

#[derive(Debug, Default)]
pub struct StreamBuffer {
    pub length: u64,
    pub content_kind: ContentKind,
    /// The end of the last complete line.
    pub last_line_end: u64,
    /// The length when the command was answered, even if processes it left still write.
    pub answered: u64,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub file: Option<Arc<SpillFile>>,
    /// Where the prefix ends, if there was no room for more. Only the tail holds anything beyond.
    pub cut: Option<u64>,
}

impl StreamBuffer {
    /// How much can be read without a gap, from the first byte on.
    pub fn prefix_length(&self) -> u64 {
        self.cut.unwrap_or(self.length)
    }

    /// Where the readable bytes beyond the prefix begin.
    pub fn tail_start(&self) -> u64 {
        self.prefix_length().max(self.length - self.tail.len() as u64)
    }

    pub fn lost(&self) -> u64 {
        self.tail_start() - self.prefix_length()
    }

    /// Gives up the file. What only the file holds is lost with it.
    pub fn release(&mut self) -> Option<Arc<SpillFile>> {
        let file = self.file.take()?;
        self.cut = Some(self.head.len() as u64);
        Some(file)
    }

    /// Appends bytes. The first `in_head` go into the head; `kept` is how many are in the head and the file
    /// together.
    pub fn append(&mut self, bytes: &[u8], in_head: usize, kept: usize) {
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
            self.last_line_end = self.length - (bytes.len() - at - 1) as u64;
        }
        self.content_kind.update(bytes);
    }

    /// Counts bytes that arrived but that nobody has.
    pub fn skip_lost(&mut self, bytes: u64) {
        self.cut.get_or_insert(self.length);
        self.length = self.length.saturating_add(bytes);
        self.tail.clear();
    }

    /// The bytes from `at` on, which must be beyond the prefix.
    pub fn beyond_cut(&self, at: u64, limit: usize) -> &[u8] {
        let bytes = &self.tail[self.tail.len() - (self.length - at) as usize..];
        &bytes[..bytes.len().min(limit)]
    }

    /// The last bytes, at most `limit`, and the length of the stream.
    pub fn end(&self, limit: usize) -> (&[u8], u64) {
        let end = if self.tail.is_empty() { &self.head } else { &self.tail };
        (&end[end.len().saturating_sub(limit)..], self.length)
    }

    /// How much of the start and of the end an excerpt of this size needs.
    pub fn source_lengths(&self, size: usize) -> SourceLengths {
        if self.length == self.head.len() as u64 {
            return SourceLengths { first: self.head.len(), last: 0 };
        }
        // Other text may render to much less than its raw size.
        let (size, most) = match self.is_plain() {
            true => (size, size),
            false => (size.saturating_mul(RENDER_FACTOR), MAX_RENDERED),
        };
        if let Ok(whole) = usize::try_from(self.length)
            && self.lost() == 0
            && whole <= size.max(most)
        {
            return SourceLengths { first: whole, last: 0 };
        }
        let at_most = |size: usize, length: u64| {
            usize::try_from(length).map_or(size, |length| size.min(length))
        };
        // A third of the excerpt is for the start.
        let first = at_most((size / 3).max(MIN_FIRST), self.prefix_length());
        let last = at_most(size, self.length - first as u64);
        // After a gap, only memory has anything.
        let last = if self.lost() > 0 { last.min(self.tail.len()) } else { last };
        SourceLengths { first, last }
    }

    /// Whether memory has these bytes.
    pub fn holds(&self, lengths: SourceLengths) -> bool {
        lengths.first <= self.head.len() && lengths.last <= self.tail.len()
    }

    /// What memory has of these bytes.
    pub fn excerpt_source(&self, lengths: SourceLengths) -> ExcerptSource {
        ExcerptSource {
            first: self.head[..self.head.len().min(lengths.first)].to_vec(),
            last: self.tail[self.tail.len().saturating_sub(lengths.last)..].to_vec(),
            length: self.length,
            plain: self.is_plain(),
        }
    }

    fn is_plain(&self) -> bool {
        self.content_kind.plain && !self.content_kind.ends_mid_character()
    }

    /// The text that replaces binary data in an excerpt.
    pub fn placeholder(&self) -> Option<String> {
        let kind = || infer::get(&self.head).map_or("binary data", |kind| kind.mime_type());
        self.content_kind
            .binary
            .then(|| format!("[{} bytes of {}, not shown]\n", self.length, kind()))
    }
}

/// Appends `bytes` to `end`, then drops all but the last `limit` bytes.
pub fn keep_last(end: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(limit)..];
    let surplus = (end.len() + bytes.len()).saturating_sub(limit);
    end.drain(..surplus);
    end.extend_from_slice(bytes);
}
