//! Cuts a page out of what passes by.
//!
//! What is seen passes in pieces, each at its place. A place need not be where the piece before it ended:
//! what was lost has one too.

use super::newest::{Line, Newest};
use super::{Data, Page, PageRequest};
use crate::room::{Measure, Room};
use crate::text::NEAR;

/// Collects a page until a limit is reached.
pub struct Cutter {
    request: PageRequest,
    text: String,
    /// Where parts of the text come from: an index in it and the place of what is there.
    parts: Vec<(usize, u64)>,
    /// What is left of the room.
    left: Room,
    lines: usize,
    pub full: bool,
    /// How much there is, on the page, before it and after.
    pub total: u64,
}

impl Cutter {
    pub fn new(request: PageRequest) -> Self {
        let (text, parts) = (String::new(), Vec::new());
        Self { request, text, parts, left: request.room, lines: 0, full: false, total: 0 }
    }

    /// What is taken next has this place.
    pub fn begin(&mut self, place: u64) {
        self.parts.push((self.text.len(), place));
    }

    /// Lets the next part of all there is pass by, and takes what belongs on the page.
    pub fn pass(&mut self, text: &str) {
        let before = self.total;
        self.total += text.len() as u64;
        if self.full || self.total <= self.request.offset {
            return;
        }
        let skip = text.ceil_char_boundary(self.request.offset.saturating_sub(before) as usize);
        if self.place_of(self.text.len()) != Some(before) {
            self.begin(before + skip as u64);
        }
        self.take(&text[skip..]);
    }

    /// Lets what is beyond a cut pass by, after all that was kept.
    pub fn pass_newest(&mut self, newest: &Newest) {
        let cut = self.total;
        if newest.lost > 0 && self.request.offset < cut + newest.lost {
            self.tell_of_loss(newest);
        }
        for Line { place, length, text } in &newest.lines {
            let (start, end) = (cut + place, cut + place + length);
            if end <= self.request.offset {
                continue;
            }
            self.total = start;
            match text.len() as u64 > *length {
                true => self.pass_whole(text, end),
                false => self.pass(text),
            }
        }
        self.total = cut + newest.end;
    }

    /// Takes a line that is seen longer than the places it has. No page may end within it, so one that is longer
    /// than a whole page is cut.
    fn pass_whole(&mut self, text: &str, end: u64) {
        let fits = self.left.beginning(text) == text.len();
        if self.full || !fits && !self.text.is_empty() {
            self.full = true;
            return;
        }
        self.begin(self.total);
        self.take(text);
        self.begin(end);
    }

    /// Says where something is missing; on the next page, if there is no room on this one.
    fn tell_of_loss(&mut self, newest: &Newest) {
        // Bytes before the reader's offset were read earlier.
        let bytes = self.total + newest.lost - self.request.offset.max(self.total);
        let in_line = match self.text.is_empty() {
            true => newest.in_line && self.request.offset == self.total,
            false => !self.text.ends_with('\n'),
        };
        let line_end = if in_line { "\n" } else { "" };
        let notice = format!("{line_end}[{bytes} bytes of output were not kept]\n");
        if !self.full && self.left.beginning(&notice) == notice.len() {
            self.take(&notice);
            self.begin(self.total + newest.lost);
        } else {
            self.full |= !self.text.is_empty();
        }
    }

    /// Takes what still fits.
    pub fn take(&mut self, text: &str) {
        let mut end = self.left.beginning(text);
        self.full = end < text.len();
        // A page has at least one character, or reading would never get on.
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

    pub fn page(mut self) -> Page {
        if self.full
            && self.left.measure != Measure::Bytes
            && let Some(line) = self.text.rfind('\n')
            && self.text.len() - line <= NEAR
        {
            self.text.truncate(line + 1);
        }
        let place = |index| self.place_of(index).unwrap_or(self.request.offset).min(self.total);
        let start = place(0);
        // Behind the last line there may be places where nothing is.
        let end = if self.full { place(self.text.len()) } else { self.total };
        let (data, total) = (Data::Text(self.text), self.total);
        Page { data, start, end, total, running: false, in_parts: false }
    }

    /// The place of what is at an index of the text.
    fn place_of(&self, index: usize) -> Option<u64> {
        let (from, place) = self.parts.iter().rev().find(|(from, _)| *from <= index)?;
        Some(place + (index - from) as u64)
    }
}
