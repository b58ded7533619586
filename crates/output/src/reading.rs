//! Reading on where one was, in an output that grows.
//!
//! Whole lines stay as they are, but the last one may have no end yet and be written over. Somebody
//! who was told of it, as a prompt must be told at once, goes on behind it if it only has grown, and
//! is told of it again from its beginning if it has not. So lines that have ended are told once, and
//! what was told last is what a terminal shows.

use crate::error::Error;
use crate::page::{Data, Page, PageRequest, Reader};
use crate::room::Room;
use crate::search::Filter;

/// The longest line without an end that is looked at again.
const MAX_LINE: u64 = 16 << 10;

/// How far somebody was told of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    pub offset: u64,
    /// How much of the last line was told, if it had no end.
    pub line: u64,
    /// What that was like.
    pub print: u64,
}

impl Point {
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Where one is after being told a page with this text.
    fn after(self, page: &Page, text: &str) -> Self {
        let before = if page.start == self.offset { self } else { Self::at(page.start) };
        let (line, print, rest) = match text.rfind('\n') {
            Some(end) => (0, 0, &text[end + 1..]),
            None => (before.line, before.print, text),
        };
        let (offset, line) = (page.end, line + rest.len() as u64);
        match line <= MAX_LINE {
            true => Self { offset, line, print: print_of(print, rest) },
            false => Self::at(offset),
        }
    }
}

impl Reader {
    /// Where to go on: behind what was told, or at the beginning of a line that was written over.
    pub fn resume(&self, filter: &Filter, from: Point) -> Result<u64, Error> {
        let start = from.offset.saturating_sub(from.line);
        if start == from.offset || self.is_binary() {
            return Ok(from.offset);
        }
        // No cursor of ours has more.
        let request = PageRequest::bytes(start, from.line.min(MAX_LINE) as usize);
        let Page { data, end, .. } = filter.page(self, request)?;
        let same = match data {
            // Beyond a cut, a line that has ended may take fewer places than it has characters.
            Data::Text(text) => {
                end == from.offset
                    && text.len() as u64 == from.line
                    && print_of(0, &text) == from.print
            }
            Data::Binary(_) => true,
        };
        Ok(if same { from.offset } else { start })
    }

    /// What there is to tell after a point, and where that ends.
    pub fn read_on(
        &self,
        filter: &Filter,
        from: Point,
        room: Room,
    ) -> Result<(Page, Point), Error> {
        let offset = self.resume(filter, from)?;
        let request = PageRequest { offset, room, limit_lines: usize::MAX };
        let page = filter.page(self, request)?;
        let next = match &page.data {
            Data::Text(text) => from.after(&page, text),
            Data::Binary(_) => Point::at(page.end),
        };
        Ok((page, next))
    }
}

/// A number for a text, which another one hardly has, and that goes on with the text (FNV-1).
fn print_of(before: u64, text: &str) -> u64 {
    text.bytes()
        .fold(before, |print, byte| print.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(byte))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::output::Output;
    use crate::render::{Renderer, View};
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    /// Somebody who is told of an output again and again.
    struct Listener {
        output: Output,
        view: View,
        at: Point,
        heard: String,
        _folder: tempfile::TempDir,
    }

    impl Listener {
        fn new(view: View) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
            let output = Output::new(spill.account().quota(None));
            Self { output, view, at: Point::default(), heard: String::new(), _folder: folder }
        }

        fn print(&self, bytes: &[u8]) {
            self.output.append(Stream::Stdout, bytes);
        }

        fn listen(&mut self, limit: usize) -> String {
            let reader = Reader::new(self.output.clone(), Stream::Stdout, self.view).live();
            let (page, next) =
                reader.read_on(&Filter::Everything, self.at, Room::bytes(limit)).unwrap();
            let Data::Text(text) = page.data else { panic!("text") };
            let again = &self.heard[page.start as usize..];
            assert!(!again.contains('\n'), "lines are told once: {again:?}");
            self.heard.truncate(page.start as usize);
            self.heard.push_str(&text);
            self.at = next;
            text
        }
    }

    fn plain() -> Listener {
        Listener::new(View::default())
    }

    #[test]
    fn a_line_that_was_written_over_is_told_again_from_its_beginning() {
        let mut listener = plain();
        for (printed, told) in [
            ("one\n\rprogress 10%", "one\nprogress 10%"),
            ("\rprogress 50%", "progress 50%"),
            ("", ""),
            ("\r\x1b[K", ""),
            ("\r\x1b[Kcomplete\nnext", "complete\nnext"),
        ] {
            listener.print(printed.as_bytes());
            assert_eq!(listener.listen(99), told);
        }
    }

    #[test]
    fn a_prompt_is_told_at_once_and_not_again_when_its_line_goes_on() {
        let mut listener = plain();
        for (printed, told) in [
            (">>> ", ">>> "),
            ("1 + 1", "1 + 1"),
            ("\r\n2\r\n>>> ", "\n2\n>>> "),
            ("\r\n", "\n"),
            ("Password: ", "Password: "),
            ("\r\nwelcome\r\n", "\nwelcome\n"),
        ] {
            listener.print(printed.as_bytes());
            assert_eq!(listener.listen(99), told);
        }
    }

    #[test]
    fn a_character_that_has_come_in_part_is_told_when_it_is_whole() {
        let mut listener = plain();
        listener.print(b"a\xc3");
        assert_eq!(listener.listen(99), "a");
        listener.print(b"\xa4b");
        assert_eq!(listener.listen(99), "\u{e4}b");
    }

    #[test]
    fn a_long_line_is_told_in_pages() {
        let mut listener = plain();
        listener.print("x".repeat(40_000).as_bytes());
        let told: String = (0..5).map(|_| listener.listen(9_000)).collect();
        assert_eq!(told.len(), 40_000);
        listener.print(b"y\n");
        assert_eq!(listener.listen(9_000), "y\n");
    }

    fn printed() -> impl Strategy<Value = Vec<u8>> {
        let parts = ["a", "bc", "\n", "\r", "\x08", "\t", "\x1b[K", "\x1b[2C", "é", "\x1b[1m"];
        vec(prop::sample::select(parts.to_vec()), 0..8)
            .prop_map(|parts| parts.concat().into_bytes())
    }

    fn drawn() -> impl Strategy<Value = Vec<u8>> {
        let parts = [
            "\x1b[H",
            "\x1b[2;3H",
            "\x1b[J",
            "\x1b[2J",
            "\x1b[?1049h",
            "\x1b[?1049l",
            "\x1b7",
            "\x1b8",
            "\x1b[A",
            "\x1bc",
        ];
        vec(prop::sample::select(parts.to_vec()), 0..3)
            .prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn lines_are_told_once_and_the_last_is_what_a_terminal_shows(
            steps in vec((printed(), drawn(), printed(), any::<bool>(), 1_usize..9), 0..12),
            screen_rows in proptest::option::of(1_u16..4),
        ) {
            let view = View { screen_rows, ..View::default() };
            let mut listener = Listener::new(view);
            let mut all = Vec::new();
            for (before, drawn, after, cut, limit) in steps {
                let mut bytes = [before, drawn, after].concat();
                if cut {
                    // In the middle of a character or a sequence.
                    bytes.pop();
                }
                listener.print(&bytes);
                all.extend(bytes);
                listener.listen(limit);
            }
            listener.output.finish();
            while !listener.listen(9).is_empty() {}
            let (mut shown, mut renderer) = (String::new(), Renderer::new(view));
            renderer.feed(&all, &mut shown);
            renderer.finish(&mut shown);
            prop_assert_eq!(&listener.heard, &shown);
        }
    }
}
