//! One stream of a run as somebody sees it, a page at a time.
//!
//!     kept bytes ─▶ as they are, or rendered ─┐
//!     newest bytes, if the stream was cut ────┴▶ Cutter ─▶ Page

use std::io;
use std::sync::{MutexGuard, PoisonError};

use super::seen::{Rendered, Seen};
use super::{Cutter, Data, Newest, Page, PageRequest, Reader, Stop};
use crate::output::{Output, Piece};
use crate::render::{Newline, View};
use crate::room::Measure;
use crate::stream::Stream;
use crate::text::{partial_character, whole_characters};

impl Reader {
    pub fn new(output: Output, stream: Stream, view: View) -> Self {
        Self { output, stream, view, stop: Stop::default(), live: None }
    }

    /// Reads all there is now, even a line that has no end and may be written over: what is behind its
    /// beginning can move.
    pub fn live(self) -> Self {
        let live = (!self.output.is_finished()).then(|| self.output.live_length(self.stream));
        Self { live, ..self }
    }

    /// Reads no more than there was when the command was answered for: what it left running may print faster than
    /// anybody reads.
    pub fn answered(self) -> Self {
        let answered = self.output.answered_length(self.stream);
        let live = (answered < self.output.end(self.stream)).then_some(answered);
        Self { live, ..self }
    }

    /// Reads only as long as somebody wants it.
    pub fn until(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub fn page(&self, request: PageRequest) -> io::Result<Page> {
        if self.is_binary() {
            return self.binary_page(request);
        }
        let newest = self.newest();
        let mut cutter = Cutter::new(request);
        if self.shows_bytes_as_they_are() {
            let front = self.front();
            let room = request.room.size.saturating_add(8);
            let mut bytes = self.read(request.offset, room)?;
            if request.offset + (bytes.len() as u64) < front {
                bytes.truncate(whole_characters(&bytes).len());
            }
            let skip = partial_character(&bytes).min(bytes.len());
            if !bytes.is_empty() {
                cutter.begin(request.offset + skip as u64);
                cutter.take(&String::from_utf8_lossy(&bytes[skip..]));
            }
            cutter.total = front;
        } else {
            let front = self.front_length()?;
            let from = self.output.mark_before(self.stream, self.view, request.offset);
            cutter.total = from.seen;
            let mut rendered = Rendered::new(self, from);
            while !cutter.full
                && let Some(text) = rendered.next()?
            {
                cutter.pass(text);
            }
            cutter.total = front;
        }
        if let Some(newest) = newest {
            cutter.pass_newest(&newest);
        }
        Ok(Page { running: self.is_running(), ..cutter.page() })
    }

    /// How much there is to see, so far.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.front_length()? + self.beyond().end)
    }

    /// Where the last so many bytes of what there is to see begin. Not within what was lost: that is told of as
    /// a whole.
    pub fn last(&self, bytes: u64) -> io::Result<u64> {
        let (front, beyond) = (self.front_length()?, self.beyond());
        let at = (front + beyond.end).saturating_sub(bytes);
        Ok(if at < front + beyond.lost { at.min(front) } else { at })
    }

    /// What there is to see beyond what is kept.
    fn beyond(&self) -> Newest {
        match self.is_binary() {
            true => Newest::default(),
            false => self.newest().unwrap_or_default(),
        }
    }

    /// How much there is to see of what is kept.
    fn front_length(&self) -> io::Result<u64> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(self.front());
        }
        let finished = self.live.is_none() && self.output.is_finished();
        if finished && let Some(length) = self.output.known_length(self.stream, self.view) {
            return Ok(length);
        }
        let from = self.output.mark_before(self.stream, self.view, u64::MAX);
        let mut length = from.seen;
        let mut rendered = Rendered::new(self, from);
        while let Some(text) = rendered.next()? {
            length += text.len() as u64;
        }
        if finished {
            self.output.note_length(self.stream, self.view, length);
        }
        Ok(length)
    }

    /// What there is beyond what is kept, if that is not all.
    pub fn newest(&self) -> Option<Newest> {
        let cut = self.output.cut(self.stream)?;
        let end = self.extent();
        if end <= cut {
            return None;
        }
        let piece = self.output.read_on(self.stream, cut, usize::MAX).ok()?;
        let length = usize::try_from(end.saturating_sub(piece.at)).unwrap_or(usize::MAX);
        let bytes = &piece.bytes[..piece.bytes.len().min(length)];
        let last = self.output.read_at(self.stream, cut.saturating_sub(1), 1).ok()?;
        let in_line = cut > 0 && last != b"\n";
        Some(Newest { in_line, ..Newest::new(self.view, cut, (piece.at, bytes)) })
    }

    /// All that is seen, from the beginning on.
    pub fn seen(&self) -> Seen<'_> {
        Seen::new(self)
    }

    pub fn is_running(&self) -> bool {
        !self.output.is_finished()
    }

    pub fn is_binary(&self) -> bool {
        self.output.nature(self.stream).binary
    }

    /// Whether what is seen is what came, byte for byte.
    pub(super) fn shows_bytes_as_they_are(&self) -> bool {
        let nature = self.output.nature(self.stream);
        // A character that is cut off at the very end is shown as something else.
        let whole = !nature.is_cut() || !self.output.is_finished();
        nature.plain && whole && self.view.newline == Newline::Lf
    }

    /// Bytes as they came, at most so many.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.stop.check()?;
        let there = self.front().saturating_sub(offset);
        let limit = limit.min(usize::try_from(there).unwrap_or(usize::MAX));
        self.output.read_at(self.stream, offset, limit)
    }

    /// How much of what is kept is read, in bytes as they came.
    fn front(&self) -> u64 {
        let extent = self.extent();
        self.output.cut(self.stream).map_or(extent, |cut| cut.min(extent))
    }

    /// Where reading ends, in bytes as they came.
    fn extent(&self) -> u64 {
        self.live.unwrap_or_else(|| self.output.settled_length(self.stream))
    }

    /// Whether a program uses all of the screen now, which the view leaves out.
    pub fn draws(&self) -> io::Result<bool> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(false);
        }
        if let Some(newest) = self.newest() {
            return Ok(newest.draws);
        }
        let from = self.output.mark_before(self.stream, self.view, u64::MAX);
        let mut rendered = Rendered::new(self, from);
        while rendered.next()?.is_some() {}
        Ok(rendered.draws())
    }

    /// The right to look something up that takes much memory.
    pub fn lookup_turn(&self) -> MutexGuard<'_, ()> {
        self.output.lookups().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn binary_page(&self, request: PageRequest) -> io::Result<Page> {
        let total = self.output.end(self.stream);
        let limit = match request.room.measure {
            Measure::Bytes => request.room.size,
            // They are told in base64.
            Measure::Quoted | Measure::QuotedTwice => (request.room.size / 4 * 3).max(1),
        };
        self.stop.check()?;
        let Piece { at: start, bytes, .. } =
            self.output.read_on(self.stream, request.offset, limit)?;
        let end = start + bytes.len() as u64;
        let running = self.is_running();
        Ok(Page { data: Data::Binary(bytes), start, end, total, running, in_parts: false })
    }
}
