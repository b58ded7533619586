//! Reads pages of one stream, and what else depends on its rendering: its length, and whether a program draws.

use std::io;
use std::sync::{MutexGuard, PoisonError};

use super::blocks::{Blocks, RenderedBlocks};
use super::{Data, Page, PageBuilder, PageRequest, Reader, Stop, Tail};
use crate::output::{Output, Piece};
use crate::render::{Newline, Rendering};
use crate::room::Measure;
use crate::stream::Stream;
use crate::text::{partial_character, whole_characters};

impl Reader {
    pub fn new(output: Output, stream: Stream, rendering: Rendering) -> Self {
        Self { output, stream, rendering, stop: Stop::default(), limit: None }
    }

    /// Reads everything there is now, even an unfinished line that may still be overwritten. Offsets within such a
    /// line can move.
    pub fn live(self) -> Self {
        let limit = (!self.output.is_finished()).then(|| self.output.live_length(self.stream));
        Self { limit, ..self }
    }

    /// Reads no more than there was when the command was answered: processes it left running may print faster than
    /// anybody reads.
    pub fn answered(self) -> Self {
        let answered = self.output.answered_length(self.stream);
        let limit = (answered < self.output.end(self.stream)).then_some(answered);
        Self { limit, ..self }
    }

    /// Reads until `stop` says that nobody wants the result any more.
    pub fn until(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub fn page(&self, request: PageRequest) -> io::Result<Page> {
        if self.is_binary() {
            return self.binary_page(request);
        }
        let tail = self.tail();
        let mut builder = PageBuilder::new(request);
        if self.shows_bytes_as_they_are() {
            let prefix = self.prefix_length();
            let room = request.room.size.saturating_add(8);
            let mut bytes = self.read(request.offset, room)?;
            if request.offset + (bytes.len() as u64) < prefix {
                bytes.truncate(whole_characters(&bytes).len());
            }
            let skip = partial_character(&bytes).min(bytes.len());
            if !bytes.is_empty() {
                builder.begin_part(request.offset + skip as u64);
                // Checking is much faster than replacing what is not valid, and nearly all of it is.
                match std::str::from_utf8(&bytes[skip..]) {
                    Ok(text) => builder.push(text),
                    Err(_) => builder.push(&String::from_utf8_lossy(&bytes[skip..])),
                }
            }
            builder.total = prefix;
        } else {
            let prefix = self.rendered_prefix_length()?;
            let from = self.output.checkpoint_before(self.stream, self.rendering, request.offset);
            builder.total = from.rendered;
            let mut rendered = RenderedBlocks::new(self, from);
            while !builder.full
                && let Some(text) = rendered.next()?
            {
                builder.feed(text);
            }
            builder.total = prefix;
        }
        if let Some(tail) = tail {
            builder.feed_tail(&tail);
        }
        Ok(Page { running: self.is_running(), ..builder.finish() })
    }

    /// The length of the text to see, so far.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.rendered_prefix_length()? + self.text_tail().end)
    }

    /// The offset at which the last `bytes` of the text begin. Never within what was lost, as a single notice
    /// stands for all of that.
    pub fn offset_of_last(&self, bytes: u64) -> io::Result<u64> {
        let (prefix, tail) = (self.rendered_prefix_length()?, self.text_tail());
        let at = (prefix + tail.end).saturating_sub(bytes);
        Ok(if at < prefix + tail.lost { at.min(prefix) } else { at })
    }

    /// The readable text beyond the cut. Binary output has none.
    fn text_tail(&self) -> Tail {
        match self.is_binary() {
            true => Tail::default(),
            false => self.tail().unwrap_or_default(),
        }
    }

    /// The length of the text in the kept part.
    fn rendered_prefix_length(&self) -> io::Result<u64> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(self.prefix_length());
        }
        let finished = self.limit.is_none() && self.output.is_finished();
        if finished && let Some(length) = self.output.cached_length(self.stream, self.rendering) {
            return Ok(length);
        }
        let from = self.output.checkpoint_before(self.stream, self.rendering, u64::MAX);
        let mut length = from.rendered;
        let mut rendered = RenderedBlocks::new(self, from);
        while let Some(text) = rendered.next()? {
            length += text.len() as u64;
        }
        if finished {
            self.output.cache_length(self.stream, self.rendering, length);
        }
        Ok(length)
    }

    /// What can be read beyond the cut, if the stream is cut before the place where reading ends.
    pub fn tail(&self) -> Option<Tail> {
        let cut = self.output.cut(self.stream)?;
        let end = self.extent();
        if end <= cut {
            return None;
        }
        let piece = self.output.read_next(self.stream, cut, usize::MAX).ok()?;
        let length = usize::try_from(end.saturating_sub(piece.at)).unwrap_or(usize::MAX);
        let bytes = &piece.bytes[..piece.bytes.len().min(length)];
        let last = self.output.read_at(self.stream, cut.saturating_sub(1), 1).ok()?;
        let in_line = cut > 0 && last != b"\n";
        Some(Tail { in_line, ..Tail::new(self.rendering, cut, (piece.at, bytes)) })
    }

    /// The whole text, from the start.
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::new(self)
    }

    pub fn is_running(&self) -> bool {
        !self.output.is_finished()
    }

    pub fn is_binary(&self) -> bool {
        self.output.content_kind(self.stream).binary
    }

    /// Whether the rendering shows the raw bytes unchanged.
    pub(super) fn shows_bytes_as_they_are(&self) -> bool {
        let kind = self.output.content_kind(self.stream);
        // An incomplete character at the very end is shown as U+FFFD.
        let whole = !kind.ends_mid_character() || !self.output.is_finished();
        kind.plain && whole && self.rendering.newline == Newline::Lf
    }

    /// Reads raw bytes of the kept part.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.stop.check()?;
        let there = self.prefix_length().saturating_sub(offset);
        let limit = limit.min(usize::try_from(there).unwrap_or(usize::MAX));
        self.output.read_at(self.stream, offset, limit)
    }

    /// How much of the kept part to read, in raw bytes.
    fn prefix_length(&self) -> u64 {
        let extent = self.extent();
        self.output.cut(self.stream).map_or(extent, |cut| cut.min(extent))
    }

    /// Where reading ends, in raw bytes.
    fn extent(&self) -> u64 {
        self.limit.unwrap_or_else(|| self.output.stable_length(self.stream))
    }

    /// Whether a program currently draws on the screen, which the rendering leaves out.
    pub fn is_drawing(&self) -> io::Result<bool> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(false);
        }
        if let Some(tail) = self.tail() {
            return Ok(tail.drawing);
        }
        let from = self.output.checkpoint_before(self.stream, self.rendering, u64::MAX);
        let mut rendered = RenderedBlocks::new(self, from);
        while rendered.next()?.is_some() {}
        Ok(rendered.is_drawing())
    }

    /// Waits for the turn to do a lookup that uses much memory.
    pub fn lookup_turn(&self) -> MutexGuard<'_, ()> {
        self.output.lookups().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn binary_page(&self, request: PageRequest) -> io::Result<Page> {
        let total = self.output.end(self.stream);
        let limit = match request.room.measure {
            Measure::Bytes => request.room.size,
            // They are sent as base64.
            Measure::Quoted | Measure::QuotedTwice => (request.room.size / 4 * 3).max(1),
        };
        self.stop.check()?;
        let Piece { at: start, bytes, .. } =
            self.output.read_next(self.stream, request.offset, limit)?;
        let end = start + bytes.len() as u64;
        let running = self.is_running();
        Ok(Page {
            data: Data::Binary(bytes),
            start,
            end,
            total,
            running,
            in_parts: false,
            left_out: None,
        })
    }
}
