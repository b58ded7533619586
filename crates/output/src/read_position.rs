//! Continuing to read an output that grows.
//!
//! Complete lines never change, but a program can still overwrite the last one. A reader has to see that line at
//! once, as it may be a prompt. A [`ReadPosition`] therefore says how much of an unfinished line the reader got,
//! with a fingerprint of it. If the line now starts with the same text, reading continues behind it; if not, at the
//! start of the line. So complete lines are returned once, and the last text returned is what a terminal shows.
//!
//! A position contains everything needed to continue: a cursor carries it, and nothing is remembered per reader.

use crate::error::Error;
use crate::page::{Data, Page, PageRequest, Reader};
use crate::room::Room;
use crate::search::Filter;

/// The longest unfinished line that is compared.
const MAX_LINE: u64 = 16 << 10;

/// How far somebody has read a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadPosition {
    pub offset: u64,
    /// How many bytes before the offset belong to an unfinished line.
    pub line: u64,
    /// The fingerprint of those bytes.
    pub fingerprint: u64,
}

impl ReadPosition {
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// The position after reading a page with this text.
    fn after(self, page: &Page, text: &str) -> Self {
        let before = if page.start == self.offset { self } else { Self::at(page.start) };
        let (line, before, rest) = match text.rfind('\n') {
            Some(end) => (0, 0, &text[end + 1..]),
            None => (before.line, before.fingerprint, text),
        };
        let (offset, line) = (page.end, line + rest.len() as u64);
        match line <= MAX_LINE {
            true => Self { offset, line, fingerprint: fingerprint(before, rest) },
            false => Self::at(offset),
        }
    }
}

impl Reader {
    /// Where to continue: at the offset, or at the start of a line that was overwritten.
    pub fn resume(&self, filter: &Filter, from: ReadPosition) -> Result<u64, Error> {
        let start = from.offset.saturating_sub(from.line);
        if start == from.offset || self.is_binary() {
            return Ok(from.offset);
        }
        // No cursor of ours has more.
        let request = PageRequest::bytes(start, from.line.min(MAX_LINE) as usize);
        // A view has the offsets of the output, but another text.
        let filter = if let Filter::View(_) = filter { &Filter::Everything } else { filter };
        let Page { data, end, .. } = filter.page(self, request)?;
        let same = match data {
            // Beyond a cut, a complete line may take up fewer bytes of offset than it has.
            Data::Text(text) => {
                end == from.offset
                    && text.len() as u64 == from.line
                    && fingerprint(0, &text) == from.fingerprint
            }
            Data::Binary(_) => true,
        };
        Ok(if same { from.offset } else { start })
    }

    /// Reads what follows a position; returns it with the position behind it.
    pub fn read_on(
        &self,
        filter: &Filter,
        from: ReadPosition,
        room: Room,
    ) -> Result<(Page, ReadPosition), Error> {
        let offset = self.resume(filter, from)?;
        let request = PageRequest { offset, room, limit_lines: usize::MAX };
        let page = filter.page(self, request)?;
        let next = match &page.data {
            Data::Text(text) if page.left_out.is_none() => from.after(&page, text),
            _ => ReadPosition::at(page.end),
        };
        Ok((page, next))
    }
}

/// Extends a hash of a text (FNV-1) by more text. Different texts almost never have the same one.
fn fingerprint(before: u64, text: &str) -> u64 {
    text.bytes()
        .fold(before, |hash, byte| hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(byte))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::output::Output;
    use crate::render::{Renderer, Rendering};
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    /// Somebody who reads an output again and again.
    struct Listener {
        output: Output,
        rendering: Rendering,
        at: ReadPosition,
        heard: String,
        _folder: tempfile::TempDir,
    }

    impl Listener {
        fn new(rendering: Rendering) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
            let output = Output::new(spill.account().quota(None));
            Self {
                output,
                rendering,
                at: ReadPosition::default(),
                heard: String::new(),
                _folder: folder,
            }
        }

        fn print(&self, bytes: &[u8]) {
            self.output.append(Stream::Stdout, bytes);
        }

        fn listen(&mut self, limit: usize) -> String {
            let reader = Reader::new(self.output.clone(), Stream::Stdout, self.rendering).live();
            let (page, next) =
                reader.read_on(&Filter::Everything, self.at, Room::bytes(limit)).unwrap();
            let Data::Text(text) = page.data else { panic!("text") };
            let again = &self.heard[page.start as usize..];
            assert!(!again.contains('\n'), "complete lines are returned once: {again:?}");
            self.heard.truncate(page.start as usize);
            self.heard.push_str(&text);
            self.at = next;
            text
        }
    }

    fn plain() -> Listener {
        Listener::new(Rendering::default())
    }

    #[test]
    fn an_overwritten_line_is_returned_again_from_its_start() {
        let mut listener = plain();
        for (printed, returned) in [
            ("one\n\rprogress 10%", "one\nprogress 10%"),
            ("\rprogress 50%", "progress 50%"),
            ("", ""),
            ("\r\x1b[K", ""),
            ("\r\x1b[Kcomplete\nnext", "complete\nnext"),
        ] {
            listener.print(printed.as_bytes());
            assert_eq!(listener.listen(99), returned);
        }
    }

    #[test]
    fn a_prompt_is_returned_at_once_and_not_again_when_its_line_continues() {
        let mut listener = plain();
        for (printed, returned) in [
            (">>> ", ">>> "),
            ("1 + 1", "1 + 1"),
            ("\r\n2\r\n>>> ", "\n2\n>>> "),
            ("\r\n", "\n"),
            ("Password: ", "Password: "),
            ("\r\nwelcome\r\n", "\nwelcome\n"),
        ] {
            listener.print(printed.as_bytes());
            assert_eq!(listener.listen(99), returned);
        }
    }

    #[test]
    fn an_incomplete_character_is_returned_once_it_is_complete() {
        let mut listener = plain();
        listener.print(b"a\xc3");
        assert_eq!(listener.listen(99), "a");
        listener.print(b"\xa4b");
        assert_eq!(listener.listen(99), "\u{e4}b");
    }

    #[test]
    fn a_long_line_is_returned_in_pages() {
        let mut listener = plain();
        listener.print("x".repeat(40_000).as_bytes());
        let returned: String = (0..5).map(|_| listener.listen(9_000)).collect();
        assert_eq!(returned.len(), 40_000);
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
        fn complete_lines_are_returned_once_and_the_last_one_as_a_terminal_shows_it(
            steps in vec((printed(), drawn(), printed(), any::<bool>(), 1_usize..9), 0..12),
            screen_rows in proptest::option::of(1_u16..4),
        ) {
            let rendering = Rendering { screen_rows, ..Rendering::default() };
            let mut listener = Listener::new(rendering);
            let mut all = Vec::new();
            for (before, drawn, after, cut, limit) in steps {
                let mut bytes = [before, drawn, after].concat();
                if cut {
                    // Cut a character or control sequence in the middle.
                    bytes.pop();
                }
                listener.print(&bytes);
                all.extend(bytes);
                listener.listen(limit);
            }
            listener.output.finish();
            while !listener.listen(9).is_empty() {}
            let (mut shown, mut renderer) = (String::new(), Renderer::new(rendering));
            renderer.feed(&all, &mut shown);
            renderer.finish(&mut shown);
            prop_assert_eq!(&listener.heard, &shown);
        }
    }
}
