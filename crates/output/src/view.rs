//! Shorter forms of kept output, one page at a time.
//!
//! A page of a view stands for a part of the output: its offsets are those of the output, not of what is shown. So each
//! page is made from where the last one ended, and never from the start.

use std::io::{self, Read};

use mcpz_view::{Level, Shown, errors, folded};

use crate::page::{Data, LeftOut, Page, PageRequest, Reader};
use crate::room::Measure;

/// How much is read at a time. More would not stay in the cache, and be given back to the system after each read.
const BLOCK: usize = 64 << 10;

/// Outputs this long take a noticeable time.
const LONG: u64 = 1 << 20;

/// How much of a long output is looked at before.
const SAMPLE: usize = 16 << 10;

/// A shorter form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Runs of lines that are alike become two lines and a count.
    Folded,
    /// Lines that look like errors or warnings, with lines around them.
    Errors,
}

impl Reader {
    /// All of the text. Fails if the output is not text.
    pub fn text(&self) -> Text<'_> {
        Text::new(self, 0)
    }

    /// A page of a view. Fails if the output is not text.
    pub fn view(&self, view: View, request: PageRequest) -> io::Result<Page> {
        let offset = request.offset;
        let first_line = match view {
            View::Folded => 1,
            View::Errors => 1 + self.lines_before(offset)?,
        };
        let total = self.length()?;
        let mut size = self.likely_size(request, total)?;
        let shown = loop {
            let text = Text::new(self, offset);
            let shown = match view {
                View::Folded => folded(text, size)?,
                View::Errors => errors(text, first_line, Level::Warning, size)?,
            };
            // Characters that are escaped take more room than expected.
            let needed = request.room.measure.of(&shown.text);
            if needed <= request.room.size || size <= 1 {
                break shown;
            }
            size = (size * request.room.size / needed).min(size - 1).max(1);
        };
        let Shown { text, consumed, lines, omitted, omitted_bytes } = shown;
        let page = |text, left_out| Page {
            data: Data::Text(text),
            start: offset,
            end: offset + consumed,
            total,
            running: self.is_running(),
            in_parts: false,
            left_out: Some(left_out),
        };
        // Where nearly every line is shown with its number, the lines themselves are shorter.
        if text.len() as u64 > consumed {
            let mut whole = String::new();
            Text::new(self, offset).take(consumed).read_to_string(&mut whole)?;
            if request.room.fits(&whole) {
                return Ok(page(whole, LeftOut { lines, ..LeftOut::default() }));
            }
        }
        Ok(page(text, LeftOut { lines, omitted, bytes: omitted_bytes }))
    }

    /// How long the text of a page can be. To try again is to go through a long output again, so that for one it is
    /// estimated how many characters will be escaped, from the first ones, with a little to spare.
    fn likely_size(&self, request: PageRequest, total: u64) -> io::Result<usize> {
        let PageRequest { offset, room, .. } = request;
        if room.measure == Measure::Bytes || total.saturating_sub(offset) <= LONG {
            return Ok(room.size);
        }
        let Data::Text(sample) = self.page(PageRequest::bytes(offset, SAMPLE))?.data else {
            return Ok(room.size);
        };
        let needed = room.measure.of(&sample).max(1);
        Ok((room.size * sample.len() / needed * 15 / 16).max(1))
    }

    fn lines_before(&self, offset: u64) -> io::Result<u64> {
        let mut text = Text::new(self, 0).take(offset);
        let (mut block, mut lines) = (vec![0; BLOCK.min(offset as usize)], 0);
        loop {
            let read = text.read(&mut block)?;
            if read == 0 {
                return Ok(lines);
            }
            lines += memchr::memchr_iter(b'\n', &block[..read]).count() as u64;
        }
    }
}

/// The text of an output from an offset on.
pub struct Text<'a> {
    reader: &'a Reader,
    offset: u64,
    block: Vec<u8>,
    /// How much of the block was read.
    at: usize,
}

impl<'a> Text<'a> {
    pub fn new(reader: &'a Reader, offset: u64) -> Self {
        Self { reader, offset, block: Vec::new(), at: 0 }
    }
}

impl Read for Text<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let page = self.reader.page(PageRequest::bytes(self.offset, BLOCK))?;
            self.offset = page.end;
            self.at = 0;
            self.block = match page.data {
                Data::Text(text) => text.into_bytes(),
                Data::Binary(_) => return Err(io::ErrorKind::InvalidData.into()),
            };
        }
        let length = into.len().min(self.block.len() - self.at);
        into[..length].copy_from_slice(&self.block[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
pub mod tests {
    use std::fmt::Write;
    use std::sync::Arc;

    use super::*;
    use crate::output::Output;
    use crate::render::Rendering;
    use crate::room::Room;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    pub fn reader(text: &str) -> Reader {
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, text.as_bytes());
        output.finish();
        Reader::new(output, Stream::Stdout, Rendering::default())
    }

    fn text(page: &Page) -> &str {
        match &page.data {
            Data::Text(text) => text,
            Data::Binary(_) => panic!("it is text"),
        }
    }

    #[test]
    fn pages_of_a_view_follow_each_other_and_stand_for_the_whole() {
        let mut log = String::new();
        for number in 0..5000 {
            let _ = writeln!(log, "2026-11-18 {number:05} request {number} served");
            if number % 1000 == 500 {
                let _ = writeln!(log, "error: \"disk\" is full ({number})");
            }
        }
        let reader = reader(&log);
        for view in [View::Folded, View::Errors] {
            let (mut offset, mut errors, mut lines) = (0, 0, 0);
            loop {
                let room = Room { size: 400, measure: Measure::QuotedTwice };
                let request = PageRequest { offset, room, limit_lines: usize::MAX };
                let page = reader.view(view, request).unwrap();
                assert!(room.fits(text(&page)), "{page:?}");
                assert!(page.end > page.start, "{page:?}");
                errors += text(&page).matches("is full").count();
                lines += page.left_out.unwrap().lines;
                offset = page.end;
                if page.next().is_none() {
                    break;
                }
            }
            assert_eq!((offset, lines), (log.len() as u64, 5005), "{view:?}");
            assert_eq!(errors, 5, "{view:?}");
        }
    }

    #[test]
    fn a_page_of_a_long_output_fits_although_later_lines_are_escaped_more() {
        let quoted = "\"\\\"".repeat(10);
        let lines = (0..90_000).map(|n| match n % 1000 {
            0 if n > 5000 => format!("{quoted} {}\n", "x".repeat(n / 1000)),
            _ => format!("request {n} served\n"),
        });
        let log: String = lines.collect();
        assert!(log.len() as u64 > LONG);
        let reader = reader(&log);
        let (mut offset, mut quotes) = (0, 0);
        while offset < log.len() as u64 {
            let room = Room { size: 1500, measure: Measure::QuotedTwice };
            let request = PageRequest { offset, room, limit_lines: usize::MAX };
            let page = reader.view(View::Folded, request).unwrap();
            assert!(room.fits(text(&page)) && page.end > page.start, "{page:?}");
            quotes += text(&page).matches(&quoted).count();
            offset = page.end;
        }
        assert_eq!(quotes, 84);
    }

    #[test]
    fn a_view_of_errors_that_hides_nothing_is_the_text() {
        let log = "a.c:3:5: error: no \"x\"\n    3 | x\n".repeat(60);
        let room = Room { size: 1500, measure: Measure::QuotedTwice };
        let reader = reader(&log);
        let (mut offset, mut read) = (0, String::new());
        while offset < log.len() as u64 {
            let request = PageRequest { offset, room, limit_lines: usize::MAX };
            let page = reader.view(View::Errors, request).unwrap();
            assert!(room.fits(text(&page)), "{page:?}");
            assert_eq!(page.left_out.map(|it| it.omitted), Some(0), "{page:?}");
            read.push_str(text(&page));
            offset = page.end;
        }
        assert_eq!(read, log);
    }

    #[test]
    fn line_numbers_of_errors_go_on_from_page_to_page() {
        let log = format!("{}error: late\n", "fine\n".repeat(2000));
        let reader = reader(&log);
        let request = PageRequest::bytes(5 * 1000, 4000);
        let page = reader.view(View::Errors, request).unwrap();
        assert!(text(&page).contains("2001:error: late"), "{page:?}");
    }
}
