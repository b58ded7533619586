//! Kept output, a page at a time.
//!
//! A page is asked for by its offset in what the reader sees. Where that differs from the bytes as
//! they came (see [`View`]), the output is rendered from the nearest line that was passed before:
//! marks are left on the way, so no page costs more than its first reading.
//!
//!     raw bytes ─▶ Renderer ─▶ what the reader sees ─▶ page
//!        ▲ marks: (raw offset, seen offset) at the beginning of a line

use std::io;
use std::ops::ControlFlow;

use crate::output::{Output, Stream};
use crate::render::{Newline, Renderer, View};
use crate::text::{partial_character, whole_characters};

/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// How far marks are apart, in raw bytes.
const MARK_DISTANCE: u64 = 1 << 20;

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: u64,
    pub limit_bytes: usize,
    pub limit_lines: usize,
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
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    Text(String),
    /// The output is no text; offsets count its bytes as they came.
    Binary(Vec<u8>),
}

impl Page {
    /// A page of a text that is at hand.
    pub fn of_text(text: &str, request: PageRequest) -> Self {
        let mut cutter = Cutter::new(request);
        let at = ceil_boundary(text, (request.offset as usize).min(text.len()));
        cutter.start = at as u64;
        let _ = cutter.take(&text[at..]);
        cutter.page(text.len() as u64)
    }

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

/// A line's beginning, in what came and in what is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub raw: u64,
    pub seen: u64,
}

/// One stream of a run, as somebody sees it. Reading may block: the disk is asked.
#[derive(Debug, Clone)]
pub struct Reader {
    output: Output,
    stream: Stream,
    view: View,
}

impl Reader {
    pub fn new(output: Output, stream: Stream, view: View) -> Self {
        Self { output, stream, view }
    }

    pub fn page(&self, request: PageRequest) -> io::Result<Page> {
        if self.is_binary() {
            return self.binary_page(request);
        }
        let mut cutter = Cutter::new(request);
        if self.shows_bytes_as_they_are() {
            let total = self.output.settled_length(self.stream);
            let room = request.limit_bytes.saturating_add(8);
            let mut bytes = self.read(request.offset, room)?;
            if request.offset + (bytes.len() as u64) < total {
                bytes.truncate(whole_characters(&bytes).len());
            }
            let skip = partial_character(&bytes).min(bytes.len());
            cutter.start = (request.offset + skip as u64).min(total);
            let _ = cutter.take(&String::from_utf8_lossy(&bytes[skip..]));
            return Ok(Page { running: self.is_running(), ..cutter.page(total) });
        }
        let total = self.length()?;
        let from = self.output.mark_before(self.stream, self.view, request.offset);
        let mut at = from.seen;
        self.walk(from, &mut |text| {
            let skip = request.offset.saturating_sub(at).min(text.len() as u64) as usize;
            let skip = ceil_boundary(text, skip);
            at += text.len() as u64;
            if skip == text.len() && cutter.text.is_empty() {
                cutter.start = at;
                return ControlFlow::Continue(());
            }
            if cutter.text.is_empty() {
                cutter.start = at - (text.len() - skip) as u64;
            }
            cutter.take(&text[skip..])
        })?;
        Ok(Page { running: self.is_running(), ..cutter.page(total) })
    }

    /// How much there is to see, so far.
    pub fn length(&self) -> io::Result<u64> {
        if self.is_binary() || self.shows_bytes_as_they_are() {
            return Ok(self.output.settled_length(self.stream));
        }
        if let Some(length) = self.output.known_length(self.stream, self.view) {
            return Ok(length);
        }
        let finished = self.output.is_finished();
        let from = self.output.mark_before(self.stream, self.view, u64::MAX);
        let mut length = from.seen;
        self.walk(from, &mut |text| {
            length += text.len() as u64;
            ControlFlow::Continue(())
        })?;
        if finished {
            self.output.note_length(self.stream, self.view, length);
        }
        Ok(length)
    }

    fn is_running(&self) -> bool {
        !self.output.is_finished()
    }

    pub fn is_binary(&self) -> bool {
        self.output.nature(self.stream).binary
    }

    /// Passes on all that is seen, from a mark on, until the visitor has enough.
    pub(crate) fn walk(
        &self,
        from: Mark,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut renderer = Renderer::new(self.view);
        let mut mark = from;
        let mut raw = from.raw;
        let mut text = String::new();
        loop {
            let bytes = self.read(raw, BLOCK)?;
            if bytes.is_empty() {
                break;
            }
            raw += bytes.len() as u64;
            let lines = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
            text.clear();
            renderer.feed(&bytes[..lines], &mut text);
            mark.seen += text.len() as u64;
            if lines > 0 {
                mark.raw = raw - (bytes.len() - lines) as u64;
                self.output.leave_mark(self.stream, self.view, mark, MARK_DISTANCE);
            }
            let rendered = text.len();
            renderer.feed(&bytes[lines..], &mut text);
            mark.seen += (text.len() - rendered) as u64;
            if visit(&text).is_break() {
                return Ok(());
            }
        }
        text.clear();
        renderer.finish(&mut text);
        let _ = visit(&text);
        Ok(())
    }

    /// Whether what is seen is what came, byte for byte.
    pub(crate) fn shows_bytes_as_they_are(&self) -> bool {
        let nature = self.output.nature(self.stream);
        // A character that is cut off at the very end is shown as something else.
        let whole = !nature.is_cut() || !self.output.is_finished();
        nature.plain && whole && self.view.newline == Newline::Lf
    }

    /// Bytes as they came, at most so many.
    pub(crate) fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        let settled = self.output.settled_length(self.stream).saturating_sub(offset);
        let limit = limit.min(usize::try_from(settled).unwrap_or(usize::MAX));
        self.output.read_at(self.stream, offset, limit)
    }

    fn binary_page(&self, request: PageRequest) -> io::Result<Page> {
        let total = self.output.kept_length(self.stream);
        let start = request.offset.min(total);
        let bytes = self.read(start, request.limit_bytes)?;
        let end = start + bytes.len() as u64;
        Ok(Page { data: Data::Binary(bytes), start, end, total, running: self.is_running() })
    }
}

/// Collects a page until a limit is reached.
pub(crate) struct Cutter {
    request: PageRequest,
    pub start: u64,
    text: String,
    lines: usize,
}

impl Cutter {
    pub fn new(request: PageRequest) -> Self {
        Self { request, start: request.offset, text: String::new(), lines: 0 }
    }

    /// Takes what still fits. Breaks when the page is full.
    pub fn take(&mut self, text: &str) -> ControlFlow<()> {
        let room = self.request.limit_bytes - self.text.len();
        let mut end = floor_boundary(text, room);
        let mut full = end < text.len();
        // A page has at least one character, or reading would never get on.
        if full && end == 0 && self.text.is_empty() {
            end = text.chars().next().map_or(0, char::len_utf8);
        }
        for at in memchr::memchr_iter(b'\n', &text.as_bytes()[..end]) {
            self.lines += 1;
            if self.lines == self.request.limit_lines {
                (end, full) = (at + 1, true);
                break;
            }
        }
        self.text.push_str(&text[..end]);
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub fn page(self, total: u64) -> Page {
        let start = self.start.min(total);
        let end = start + self.text.len() as u64;
        Page { data: Data::Text(self.text), start, end, total, running: false }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

pub(crate) fn ceil_boundary(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::spill::{Spill, SpillSettings};

    fn output(folder: &std::path::Path, pieces: &[&[u8]]) -> Output {
        let output = Output::new(Arc::new(Spill::new(SpillSettings::new(folder))).quota(None));
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
            let page = reader.page(PageRequest { offset, limit_bytes, limit_lines }).unwrap();
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
            let output = Output::new(spill.quota(None));
            let reader = reader(&output, View::default());
            let wanted = |offset| PageRequest { offset, limit_bytes: 99, limit_lines: 99 };
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
        let request = PageRequest { offset: 99, limit_bytes: 10, limit_lines: 10 };
        let page = reader.page(request).unwrap();
        assert_eq!((page.start, page.end, page.total, page.next()), (4, 4, 4, None));
    }

    #[test]
    fn binary_output_is_paged_as_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let reader = reader(&output(folder.path(), &[b"\x00\x01\xff\r\n"]), View::default());
        let page = reader.page(PageRequest { offset: 1, limit_bytes: 3, limit_lines: 9 }).unwrap();
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
        let request = PageRequest { offset: last, limit_bytes: 1000, limit_lines: 100 };
        let page = reader.page(request).unwrap();
        assert_eq!(joined(&[page]), whole[whole.len() - 100..]);
    }

    proptest! {
        #[test]
        fn pages_give_every_byte_once_whatever_the_output_and_the_limits(
            pieces in vec(vec(prop_oneof![any::<u8>().prop_filter("text", |b| *b != 0),
                Just(b'\n'), Just(b'a'), Just(b'\r'), Just(0xc3), Just(0xa4)], 0..60), 0..8),
            limit_bytes in 1_usize..40,
            limit_lines in 1_usize..5,
            ansi_strip in any::<bool>(),
            crlf in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let newline = if crlf { Newline::CrLf } else { Newline::Lf };
            let view = View { ansi_strip, newline };
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let output = output(folder.path(), &pieces);
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
            let page = reader.page(PageRequest { offset, limit_bytes, limit_lines: 99 }).unwrap();
            let (start, end) = (page.start as usize, page.end as usize);
            prop_assert_eq!(joined(&[page]), &text[start..end]);
        }
    }
}
