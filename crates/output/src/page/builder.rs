//! Builds a page from the text of an output.
//!
//! The text is fed in pieces with ascending offsets. A piece need not start where the one before it ended: lost
//! bytes take up offsets, too.

use super::tail::{Line, Tail};
use super::{Data, Page, PageRequest};
use crate::room::{Measure, Room};
use crate::text::NEAR;

/// Collects text until a limit is reached.
pub struct PageBuilder {
    request: PageRequest,
    text: String,
    /// Pairs of an index in the text and the offset of what is there.
    parts: Vec<(usize, u64)>,
    /// The room that is left.
    left: Room,
    lines: usize,
    pub full: bool,
    /// The length of everything fed so far, on the page or not.
    pub total: u64,
}

impl PageBuilder {
    pub fn new(request: PageRequest) -> Self {
        let (text, parts) = (String::new(), Vec::new());
        Self { request, text, parts, left: request.room, lines: 0, full: false, total: 0 }
    }

    /// Sets the offset of the text that is pushed next.
    pub fn begin_part(&mut self, offset: u64) {
        self.parts.push((self.text.len(), offset));
    }

    /// Feeds the next piece; what belongs on the page is taken.
    pub fn feed(&mut self, text: &str) {
        let before = self.total;
        self.total += text.len() as u64;
        if self.full || self.total <= self.request.offset {
            return;
        }
        let skip = text.ceil_char_boundary(self.request.offset.saturating_sub(before) as usize);
        if self.offset_of(self.text.len()) != Some(before) {
            self.begin_part(before + skip as u64);
        }
        self.push(&text[skip..]);
    }

    /// Feeds the lines beyond a cut, after all that was kept.
    pub fn feed_tail(&mut self, tail: &Tail) {
        let cut = self.total;
        if tail.lost > 0 && self.request.offset < cut + tail.lost {
            self.push_loss_notice(tail);
        }
        for Line { offset, length, text } in &tail.lines {
            let (start, end) = (cut + offset, cut + offset + length);
            if end <= self.request.offset {
                continue;
            }
            self.total = start;
            match text.len() as u64 > *length {
                true => self.feed_unsplit(text, end),
                false => self.feed(text),
            }
        }
        self.total = cut + tail.end;
    }

    /// Takes a line whose text is longer than the offsets it takes up. No page may end within such a line, so one
    /// that does not even fit on an empty page is cut short.
    fn feed_unsplit(&mut self, text: &str, end: u64) {
        let fits = self.left.beginning(text) == text.len();
        if self.full || !fits && !self.text.is_empty() {
            self.full = true;
            return;
        }
        self.begin_part(self.total);
        self.push(text);
        self.begin_part(end);
    }

    /// Says how many bytes are missing; on the next page, if this one has no room for it.
    fn push_loss_notice(&mut self, tail: &Tail) {
        // The reader already has the bytes before its offset.
        let bytes = self.total + tail.lost - self.request.offset.max(self.total);
        let in_line = match self.text.is_empty() {
            true => tail.in_line && self.request.offset == self.total,
            false => !self.text.ends_with('\n'),
        };
        let line_end = if in_line { "\n" } else { "" };
        let notice = format!("{line_end}[{bytes} bytes of output were not kept]\n");
        if !self.full && self.left.beginning(&notice) == notice.len() {
            self.push(&notice);
            self.begin_part(self.total + tail.lost);
        } else {
            self.full |= !self.text.is_empty();
        }
    }

    /// Takes as much as fits.
    pub fn push(&mut self, text: &str) {
        let mut end = self.left.beginning(text);
        self.full = end < text.len();
        // A page has at least one character, or readers would never make progress.
        if self.full && end == 0 && self.text.is_empty() {
            end = text.chars().next().map_or(0, char::len_utf8);
        }
        for at in memchr::memchr_iter(b'\n', &text.as_bytes()[..end]) {
            self.lines += 1;
            if self.lines == self.request.limit_lines {
                (end, self.full) = (at + 1, true);
                break;
            }
        }
        self.text.push_str(&text[..end]);
        self.left = self.left.less(self.left.measure.of(&text[..end]));
    }

    pub fn finish(mut self) -> Page {
        if self.full
            && self.left.measure != Measure::Bytes
            && let Some(line) = self.text.rfind('\n')
            && self.text.len() - line <= NEAR
        {
            self.text.truncate(line + 1);
        }
        let offset = |index| self.offset_of(index).unwrap_or(self.request.offset).min(self.total);
        let start = offset(0);
        // There may be offsets without text behind the last line.
        let end = if self.full { offset(self.text.len()) } else { self.total };
        let (data, total) = (Data::Text(self.text), self.total);
        Page { data, start, end, total, running: false, in_parts: false, left_out: None }
    }

    /// The offset of the text at an index.
    fn offset_of(&self, index: usize) -> Option<u64> {
        let (from, offset) = self.parts.iter().rev().find(|(from, _)| *from <= index)?;
        Some(offset + (index - from) as u64)
    }
}
