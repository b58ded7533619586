//! Shorter forms of kept output, one page at a time.
//!
//! A page of a view stands for a part of the output: its offsets are those of the output, not of what is shown. So each
//! page is made from where the last one ended, and never from the start.

use std::io::{self, Read};

use mcpz_view::{Shown, errors, folded};

use crate::page::{Data, LeftOut, Page, PageRequest, Reader};

/// How much is read at a time.
const BLOCK: usize = 256 << 10;

/// A shorter form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Runs of lines that are alike become two lines and a count.
    Folded,
    /// Lines that look like errors or warnings, with lines around them.
    Errors,
}

impl Reader {
    /// A page of a view. Fails if the output is not text.
    pub fn view(&self, view: View, request: PageRequest) -> io::Result<Page> {
        let offset = request.offset;
        let first_line = match view {
            View::Folded => 1,
            View::Errors => 1 + self.lines_before(offset)?,
        };
        let mut size = request.room.size;
        let shown = loop {
            let text = Text::new(self, offset);
            let shown = match view {
                View::Folded => folded(text, size)?,
                View::Errors => errors(text, first_line, size)?,
            };
            // Characters that are escaped take more room.
            let needed = request.room.measure.of(&shown.text);
            if needed <= request.room.size || size <= 1 {
                break shown;
            }
            size = (size * request.room.size / needed).min(size - 1).max(1);
        };
        let Shown { text, consumed, lines, omitted } = shown;
        Ok(Page {
            data: Data::Text(text),
            start: offset,
            end: offset + consumed,
            total: self.length()?,
            running: self.is_running(),
            in_parts: false,
            left_out: Some(LeftOut { lines, omitted }),
        })
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
mod tests {
    use std::fmt::Write;
    use std::sync::Arc;

    use super::*;
    use crate::output::Output;
    use crate::render::Rendering;
    use crate::room::{Measure, Room};
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    fn reader(text: &str) -> Reader {
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
    fn line_numbers_of_errors_go_on_from_page_to_page() {
        let log = format!("{}error: late\n", "fine\n".repeat(2000));
        let reader = reader(&log);
        let request = PageRequest::bytes(5 * 1000, 4000);
        let page = reader.view(View::Errors, request).unwrap();
        assert!(text(&page).contains("2001:error: late"), "{page:?}");
    }
}
