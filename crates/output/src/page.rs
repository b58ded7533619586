//! Kept output, one page at a time.
//!
//! A page is requested by its offset in the text that the reader's [`Rendering`] shows, which may differ
//! from the raw bytes. Offsets never move. While a command runs, only its complete lines are shown, because it can
//! still overwrite an unfinished one.
//!
//!     raw bytes ─┬─ plain text ───────────────────────────▶ one read ──┬─▶ PageBuilder ─▶ Page
//!                ├─ other text ─▶ rendered from a checkpoint on ───────┤
//!                └─ beyond a cut ─▶ Tail: the newest lines ────────────┘

mod blocks;
mod builder;
mod reader;
mod tail;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::Output;
use crate::render::Rendering;
use crate::room::Room;
use crate::stream::Stream;

pub use blocks::Blocks;
pub use builder::PageBuilder;
pub use tail::Tail;

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: u64,
    /// The size of the page. Unless it counts plain bytes, the page ends with a complete line if one ends nearby.
    pub room: Room,
    pub limit_lines: usize,
}

impl PageRequest {
    /// Up to `limit` bytes, in any number of lines.
    pub fn bytes(offset: u64, limit: usize) -> Self {
        Self { offset, room: Room::bytes(limit), limit_lines: usize::MAX }
    }
}

/// Part of an output, from `start` to just before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub data: Data,
    pub start: u64,
    pub end: u64,
    /// The length of the output, so far.
    pub total: u64,
    /// Whether more may come.
    pub running: bool,
    /// Whether lines were too long to search as a whole: a match across two parts was not found.
    pub in_parts: bool,
    /// What a view left out.
    pub left_out: Option<LeftOut>,
}

/// How many lines a page stands for, how many of them it does not show as they were, and how many bytes not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub lines: u64,
    pub omitted: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    Text(String),
    /// The output is not text. Offsets count its raw bytes.
    Binary(Vec<u8>),
}

impl Page {
    /// Where the next page begins, if there is one.
    pub fn next(&self) -> Option<u64> {
        (self.end < self.total || self.running).then_some(self.end)
    }

    /// The number of lines on the page, including an unfinished last one.
    pub fn lines(&self) -> u64 {
        match &self.data {
            Data::Text(text) => text.lines().count() as u64,
            Data::Binary(_) => 0,
        }
    }
}

/// Tells a reader to stop, because nobody wants the result any more.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if the reader was told to stop.
    pub fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the read was cancelled")),
            false => Ok(()),
        }
    }
}

/// One stream of a run, as a rendering shows it. Reading may block on the disk.
#[derive(Debug, Clone)]
pub struct Reader {
    output: Output,
    stream: Stream,
    rendering: Rendering,
    stop: Stop,
    /// How many raw bytes to read, if not just the stable ones.
    limit: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::blocks::CHECKPOINT_DISTANCE;
    use super::*;
    use crate::output::Output;
    use crate::render::{Newline, Renderer, Rendering};
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    fn output(folder: &std::path::Path, pieces: &[&[u8]]) -> Output {
        let output =
            Output::new(Arc::new(Spill::new(SpillSettings::new(folder))).account().quota(None));
        for piece in pieces {
            output.append(Stream::Stdout, piece);
        }
        output.finish();
        output
    }

    fn reader(output: &Output, rendering: Rendering) -> Reader {
        Reader::new(output.clone(), Stream::Stdout, rendering)
    }

    /// All pages of an output, in order.
    fn pages(reader: &Reader, limit_bytes: usize, limit_lines: usize) -> Vec<Page> {
        let mut pages = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = reader
                .page(PageRequest { limit_lines, ..PageRequest::bytes(offset, limit_bytes) })
                .unwrap();
            assert!(page.end > offset || page.total == offset, "pages make progress");
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
        let reader =
            reader(&output(folder.path(), &[b"one\ntwo\nthree\nfour\n"]), Rendering::default());
        let by_lines = pages(&reader, 100, 2);
        assert_eq!(by_lines.iter().map(Page::lines).collect::<Vec<_>>(), [2, 2]);
        assert_eq!((by_lines[1].start, by_lines[1].end, by_lines[1].total), (8, 19, 19));
        let by_bytes = pages(&reader, 5, 100);
        assert_eq!(by_bytes.iter().map(|page| page.end).collect::<Vec<_>>(), [5, 10, 15, 19]);
    }

    #[test]
    fn pages_of_a_running_command_stay_valid_after_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        for (before, after, whole) in [
            (&b"one\nprogress 100"[..], &b"\r\x1b[Kok\nlast\n"[..], "one\nok\nlast\n"),
            (b"a\xc3", b"\xa4b\n", "a\u{e4}b\n"),
            (b"one\ntwo", b" three\n", "one\ntwo three\n"),
        ] {
            let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
            let output = Output::new(spill.account().quota(None));
            let reader = reader(&output, Rendering::default());
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
        let reader = reader(&output(folder.path(), &[b"one\n"]), Rendering::default());
        let request = PageRequest::bytes(99, 10);
        let page = reader.page(request).unwrap();
        assert_eq!((page.start, page.end, page.total, page.next()), (4, 4, 4, None));
    }

    #[test]
    fn a_stopped_reader_does_not_read_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let output = output(folder.path(), &[&b"red\r\n".repeat(500_000)]);
        let reader = reader(&output, Rendering::default()).until(stop.clone());
        let mut blocks = reader.blocks();
        assert!(blocks.next().unwrap().is_some());
        stop.stop();
        assert!(blocks.next().is_err() && reader.length().is_err());
    }

    #[test]
    fn binary_output_is_paged_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let reader = reader(&output(folder.path(), &[b"\x00\x01\xff\r\n"]), Rendering::default());
        let page = reader.page(PageRequest::bytes(1, 3)).unwrap();
        assert_eq!(page.data, Data::Binary(vec![1, 255, b'\r']));
        assert_eq!(page.next(), Some(4));
    }

    #[test]
    fn pages_of_cut_binary_output_skip_what_was_lost() {
        let output = Output::new(
            Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere"))).account().quota(None),
        );
        output.append(Stream::Stdout, &[0; 300_000]);
        output.append(Stream::Stdout, &[1, 2, 3]);
        let reader = reader(&output, Rendering::default());
        let at = |offset| reader.page(PageRequest::bytes(offset, 1 << 20)).unwrap();
        let (first, last) = (at(0), at(65_536));
        assert_eq!((first.end, first.next()), (65_536, Some(65_536)));
        assert_eq!((last.start, last.end, last.total), (300_003 - 65_536, 300_003, 300_003));
        assert_eq!(at(300_001).data, Data::Binary(vec![2, 3]));
    }

    #[test]
    fn pages_of_a_rendered_output_cost_no_more_than_its_first_reading() {
        let folder = tempfile::tempdir().unwrap();
        let line = b"\x1b[1m0123456789\x1b[0m progress 1%\rprogress 2%\n";
        let bytes = line.repeat(100_000);
        let output = output(folder.path(), &[&bytes]);
        let reader = reader(&output, Rendering::default());
        let whole = crate::text::plain(&bytes);
        assert_eq!(reader.length().unwrap(), whole.len() as u64);
        let last = whole.len() as u64 - 100;
        let checkpoint = output.checkpoint_before(Stream::Stdout, Rendering::default(), last);
        assert!(last - checkpoint.rendered < 2 * CHECKPOINT_DISTANCE);
        let request = PageRequest::bytes(last, 1000);
        let page = reader.page(request).unwrap();
        assert_eq!(joined(&[page]), whole[whole.len() - 100..]);
    }

    proptest! {
        #[test]
        fn pages_return_every_byte_once(
            // Mostly text, because binary output is not rendered.
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
            let rendering = Rendering { ansi_strip, newline, ..Rendering::default() };
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let output = output(folder.path(), &pieces);
            prop_assume!(!reader(&output, rendering).is_binary());
            let mut whole = String::new();
            let mut renderer = Renderer::new(rendering);
            renderer.feed(&pieces.concat(), &mut whole);
            renderer.finish(&mut whole);
            let pages = pages(&reader(&output, rendering), limit_bytes, limit_lines);
            prop_assert_eq!(joined(&pages), whole.clone());
            prop_assert!(pages.iter().all(|page| page.total == whole.len() as u64));
            prop_assert!(pages.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(pages.iter().all(|page| page.lines() as usize <= limit_lines + 1));
        }

        #[test]
        fn a_line_of_cut_output_is_returned_once_or_not_at_all(
            bursts in vec((1_usize..4_000, any::<bool>()), 1..12),
            colour in prop_oneof![Just(""), Just("\x1b[31m\x1b[0m")],
            limit_bytes in 1_000_usize..200_000,
        ) {
            let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
            let output = Output::new(spill.account().quota(None));
            let reader = reader(&output, Rendering::default());
            let (mut number, mut offset, mut returned) = (0, 0, String::new());
            for (lines, read) in bursts {
                let lines = (number..number + lines).map(|number| format!("{colour}{number:09}\n"));
                let text: String = lines.collect();
                number += text.lines().count();
                output.append(Stream::Stdout, text.as_bytes());
                if !read {
                    continue;
                }
                loop {
                    let page = reader.page(PageRequest::bytes(offset, limit_bytes)).unwrap();
                    prop_assert!(page.start >= offset && page.end >= page.start);
                    offset = page.end;
                    let Data::Text(text) = page.data else { panic!("text") };
                    if text.is_empty() {
                        break;
                    }
                    returned.push_str(&text);
                }
                let last = format!("{:09}\n", number - 1);
                prop_assert!(returned.ends_with(&last));
            }
            let lines = returned.lines().filter(|line| line.starts_with('0'));
            let (returned, cut): (Vec<_>, Vec<_>) = lines.partition(|line| line.len() == 9);
            prop_assert!(cut.len() <= 1, "at the cut");
            let wrong = returned.windows(2).find(|pair| pair[0] >= pair[1]);
            prop_assert_eq!(wrong, None);
        }

        #[test]
        fn a_page_from_any_offset_has_whole_characters(
            text in "[a-zä日🦀\n]{1,100}", offset in 0_u64..120, limit_bytes in 1_usize..20,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let reader = reader(&output(folder.path(), &[text.as_bytes()]), Rendering::default());
            let page = reader.page(PageRequest::bytes(offset, limit_bytes)).unwrap();
            let (start, end) = (page.start as usize, page.end as usize);
            prop_assert_eq!(joined(&[page]), &text[start..end]);
        }
    }
}
