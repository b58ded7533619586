//! Kept output, a page at a time.
//!
//! A page is asked for by its offset in what the reader sees, which can be something else than the
//! bytes as they came (see [`View`]). Offsets never move.

mod seen;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::output::{Output, Stream};
use crate::render::{Newline, View};
use crate::room::{Measure, Room};
use crate::text::{NEAR, partial_character, whole_characters};

pub(crate) use seen::{Mark, Seen};

use seen::Rendered;

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: u64,
    /// How much of it may be told. A page that is not limited to an exact number of bytes ends with
    /// a line, if one ends nearby.
    pub room: Room,
    pub limit_lines: usize,
}

impl PageRequest {
    /// At most so many bytes, of any number of lines.
    pub fn bytes(offset: u64, limit: usize) -> Self {
        Self { offset, room: Room::bytes(limit), limit_lines: usize::MAX }
    }
}

/// A part of an output, from `start` to just before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub data: Data,
    pub start: u64,
    pub end: u64,
    /// How much there is in all, so far.
    pub total: u64,
    /// Whether more may come.
    pub running: bool,
    /// Whether lines that are too long were searched in parts: a match across two was not found.
    pub in_parts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    Text(String),
    /// The output is no text; offsets count its bytes as they came.
    Binary(Vec<u8>),
}

impl Page {
    /// Where the next page begins, if there is one.
    pub fn next(&self) -> Option<u64> {
        (self.end < self.total || self.running).then_some(self.end)
    }

    /// How many lines the page has; a last one without an end counts.
    pub fn lines(&self) -> u64 {
        match &self.data {
            Data::Text(text) => text.lines().count() as u64,
            Data::Binary(_) => 0,
        }
    }
}

/// Tells a reader that nobody wants any more what it reads.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails when it was told.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::other("nobody wants it any more")),
            false => Ok(()),
        }
    }
}

/// One stream of a run, as somebody sees it. Reading may block: the disk is asked.
#[derive(Debug, Clone)]
pub struct Reader {
    output: Output,
    stream: Stream,
    view: View,
    stop: Stop,
    /// How much is read, if that is not only what can be seen no other way any more.
    live: Option<u64>,
}

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

    /// Reads only as long as somebody wants it.
    pub fn until(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub fn page(&self, request: PageRequest) -> io::Result<Page> {
        if self.is_binary() {
            return self.binary_page(request);
        }
        let mut cutter = Cutter::new(request);
        if self.shows_bytes_as_they_are() {
            let total = self.extent();
            let room = request.room.size.saturating_add(8);
            let mut bytes = self.read(request.offset, room)?;
            if request.offset + (bytes.len() as u64) < total {
                bytes.truncate(whole_characters(&bytes).len());
            }
            let skip = partial_character(&bytes).min(bytes.len());
            cutter.start = (request.offset + skip as u64).min(total);
            cutter.take(&String::from_utf8_lossy(&bytes[skip..]));
            cutter.total = total;
            return Ok(Page { running: self.is_running(), ..cutter.page() });
        }
        let total = self.length()?;
        let from = self.output.mark_before(self.stream, self.view, request.offset);
        cutter.total = from.seen;
        let mut rendered = Rendered::new(self, from);
        while !cutter.full
            && let Some(text) = rendered.next()?
        {
            cutter.pass(text);
        }
        cutter.total = total;
        Ok(Page { running: self.is_running(), ..cutter.page() })
    }

    /// How much there is to see, so far.
    pub fn length(&self) -> io::Result<u64> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(self.extent());
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

    /// All that is seen, from the beginning on.
    pub(crate) fn seen(&self) -> Seen<'_> {
        Seen::new(self)
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.output.is_finished()
    }

    pub fn is_binary(&self) -> bool {
        self.output.nature(self.stream).binary
    }

    /// Whether what is seen is what came, byte for byte.
    fn shows_bytes_as_they_are(&self) -> bool {
        let nature = self.output.nature(self.stream);
        // A character that is cut off at the very end is shown as something else.
        let whole = !nature.is_cut() || !self.output.is_finished();
        nature.plain && whole && self.view.newline == Newline::Lf
    }

    /// Bytes as they came, at most so many.
    fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.stop.check()?;
        let there = self.extent().saturating_sub(offset);
        let limit = limit.min(usize::try_from(there).unwrap_or(usize::MAX));
        self.output.read_at(self.stream, offset, limit)
    }

    /// How much is read, in bytes as they came.
    fn extent(&self) -> u64 {
        self.live.unwrap_or_else(|| self.output.settled_length(self.stream))
    }

    /// Whether a program uses all of the screen now, which the view leaves out.
    pub(crate) fn draws(&self) -> io::Result<bool> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(false);
        }
        let from = self.output.mark_before(self.stream, self.view, u64::MAX);
        let mut rendered = Rendered::new(self, from);
        while rendered.next()?.is_some() {}
        Ok(rendered.draws())
    }

    /// The right to look something up that takes much memory.
    pub(crate) fn lookup_turn(&self) -> MutexGuard<'_, ()> {
        self.output.lookups().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn binary_page(&self, request: PageRequest) -> io::Result<Page> {
        let total = self.output.kept_length(self.stream);
        let start = request.offset.min(total);
        let limit = match request.room.measure {
            Measure::Bytes => request.room.size,
            // They are told in base64.
            Measure::Quoted | Measure::QuotedTwice => (request.room.size / 4 * 3).max(1),
        };
        let bytes = self.read(start, limit)?;
        let end = start + bytes.len() as u64;
        let running = self.is_running();
        Ok(Page { data: Data::Binary(bytes), start, end, total, running, in_parts: false })
    }
}

/// Collects a page until a limit is reached.
pub(crate) struct Cutter {
    request: PageRequest,
    start: u64,
    text: String,
    /// What is left of the room.
    left: Room,
    lines: usize,
    full: bool,
    /// How much there is, on the page, before it and after.
    total: u64,
}

impl Cutter {
    pub fn new(request: PageRequest) -> Self {
        let (start, text) = (request.offset, String::new());
        Self { request, start, text, left: request.room, lines: 0, full: false, total: 0 }
    }

    /// Lets the next part of all there is pass by, and takes what belongs on the page.
    pub fn pass(&mut self, text: &str) {
        let before = self.total;
        self.total += text.len() as u64;
        if self.full || self.total <= self.request.offset {
            return;
        }
        let skip = ceil_boundary(text, self.request.offset.saturating_sub(before) as usize);
        if self.text.is_empty() {
            self.start = before + skip as u64;
        }
        self.take(&text[skip..]);
    }

    /// Takes what still fits.
    fn take(&mut self, text: &str) {
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
        let start = self.start.min(self.total);
        let end = start + self.text.len() as u64;
        let (data, total) = (Data::Text(self.text), self.total);
        Page { data, start, end, total, running: false, in_parts: false }
    }
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::seen::MARK_DISTANCE;
    use super::*;
    use crate::render::Renderer;
    use crate::spill::{Spill, SpillSettings};

    fn output(folder: &std::path::Path, pieces: &[&[u8]]) -> Output {
        let output =
            Output::new(Arc::new(Spill::new(SpillSettings::new(folder))).account().quota(None));
        for piece in pieces {
            output.append(Stream::Stdout, piece);
        }
        output.finish();
        output
    }

    fn reader(output: &Output, view: View) -> Reader {
        Reader::new(output.clone(), Stream::Stdout, view)
    }

    /// All pages of an output, one after the other.
    fn pages(reader: &Reader, limit_bytes: usize, limit_lines: usize) -> Vec<Page> {
        let mut pages = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = reader
                .page(PageRequest { limit_lines, ..PageRequest::bytes(offset, limit_bytes) })
                .unwrap();
            assert!(page.end > offset || page.total == offset, "pages get on");
            next = page.next();
            pages.push(page);
        }
        pages
    }

    fn joined(pages: &[Page]) -> String {
        let text = |page: &Page| match &page.data {
            Data::Text(text) => text.clone(),
            Data::Binary(_) => panic!("text"),
        };
        pages.iter().map(text).collect()
    }

    #[test]
    fn pages_end_at_the_limit_that_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let reader = reader(&output(folder.path(), &[b"one\ntwo\nthree\nfour\n"]), View::default());
        let by_lines = pages(&reader, 100, 2);
        assert_eq!(by_lines.iter().map(Page::lines).collect::<Vec<_>>(), [2, 2]);
        assert_eq!((by_lines[1].start, by_lines[1].end, by_lines[1].total), (8, 19, 19));
        let by_bytes = pages(&reader, 5, 100);
        assert_eq!(by_bytes.iter().map(|page| page.end).collect::<Vec<_>>(), [5, 10, 15, 19]);
    }

    #[test]
    fn what_was_seen_while_it_ran_stays_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        for (before, after, whole) in [
            (&b"one\nprogress 100"[..], &b"\r\x1b[Kok\nlast\n"[..], "one\nok\nlast\n"),
            (b"a\xc3", b"\xa4b\n", "a\u{e4}b\n"),
            (b"one\ntwo", b" three\n", "one\ntwo three\n"),
        ] {
            let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
            let output = Output::new(spill.account().quota(None));
            let reader = reader(&output, View::default());
            let wanted = |offset| PageRequest::bytes(offset, 99);
            output.append(Stream::Stdout, before);
            let first = reader.page(wanted(0)).unwrap();
            assert_eq!(first.next(), Some(first.end), "there is more to come");
            output.append(Stream::Stdout, after);
            output.finish();
            let second = reader.page(wanted(first.end)).unwrap();
            assert_eq!(second.next(), None);
            assert_eq!(joined(&[first, second]), whole);
        }
    }

    #[test]
    fn a_page_beyond_the_end_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let reader = reader(&output(folder.path(), &[b"one\n"]), View::default());
        let request = PageRequest::bytes(99, 10);
        let page = reader.page(request).unwrap();
        assert_eq!((page.start, page.end, page.total, page.next()), (4, 4, 4, None));
    }

    #[test]
    fn what_nobody_wants_any_more_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let output = output(folder.path(), &[&b"red\r\n".repeat(500_000)]);
        let reader = reader(&output, View::default()).until(stop.clone());
        let mut seen = reader.seen();
        assert!(seen.next().unwrap().is_some());
        stop.stop();
        assert!(seen.next().is_err() && reader.length().is_err());
    }

    #[test]
    fn binary_output_is_paged_as_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let reader = reader(&output(folder.path(), &[b"\x00\x01\xff\r\n"]), View::default());
        let page = reader.page(PageRequest::bytes(1, 3)).unwrap();
        assert_eq!(page.data, Data::Binary(vec![1, 255, b'\r']));
        assert_eq!(page.next(), Some(4));
    }

    #[test]
    fn pages_of_a_rendered_output_cost_no_more_than_its_first_reading() {
        let folder = tempfile::tempdir().unwrap();
        let line = b"\x1b[1m0123456789\x1b[0m progress 1%\rprogress 2%\n";
        let bytes = line.repeat(100_000);
        let output = output(folder.path(), &[&bytes]);
        let reader = reader(&output, View::default());
        let whole = crate::text::plain(&bytes);
        assert_eq!(reader.length().unwrap(), whole.len() as u64);
        let last = whole.len() as u64 - 100;
        let mark = output.mark_before(Stream::Stdout, View::default(), last);
        assert!(last - mark.seen < 2 * MARK_DISTANCE);
        let request = PageRequest::bytes(last, 1000);
        let page = reader.page(request).unwrap();
        assert_eq!(joined(&[page]), whole[whole.len() - 100..]);
    }

    proptest! {
        #[test]
        fn pages_give_every_byte_once_whatever_the_output_and_the_limits(
            // Mostly text: what is not is shown as it came.
            pieces in vec(vec(prop_oneof![
                1 => any::<u8>().prop_filter("text", |b| *b != 0), 3 => Just(b'\n'),
                20 => Just(b'a'), 2 => Just(b'\r'), 1 => Just(0xc3), 1 => Just(0xa4)], 0..60), 0..8),
            limit_bytes in 1_usize..40,
            limit_lines in 1_usize..5,
            ansi_strip in any::<bool>(),
            crlf in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let newline = if crlf { Newline::CrLf } else { Newline::Lf };
            let view = View { ansi_strip, newline, ..View::default() };
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let output = output(folder.path(), &pieces);
            prop_assume!(!reader(&output, view).is_binary());
            let mut whole = String::new();
            let mut renderer = Renderer::new(view);
            renderer.feed(&pieces.concat(), &mut whole);
            renderer.finish(&mut whole);
            let pages = pages(&reader(&output, view), limit_bytes, limit_lines);
            prop_assert_eq!(joined(&pages), whole.clone());
            prop_assert!(pages.iter().all(|page| page.total == whole.len() as u64));
            prop_assert!(pages.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(pages.iter().all(|page| page.lines() as usize <= limit_lines + 1));
        }

        #[test]
        fn a_page_from_anywhere_is_whole_characters(
            text in "[a-zä日🦀\n]{1,100}", offset in 0_u64..120, limit_bytes in 1_usize..20,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let reader = reader(&output(folder.path(), &[text.as_bytes()]), View::default());
            let page = reader.page(PageRequest::bytes(offset, limit_bytes)).unwrap();
            let (start, end) = (page.start as usize, page.end as usize);
            prop_assert_eq!(joined(&[page]), &text[start..end]);
        }
    }
}
