//! The newest lines of a stream that is cut.
//!
//! The offset of a line beyond the cut is the number of raw bytes between the cut and the line. Neither rendering
//! nor the loss of earlier lines changes that, so cursors stay valid.

use crate::render::{Renderer, Rendering};
use crate::text::after_cut;

/// What can be read beyond a cut.
#[derive(Debug, Default)]
pub struct Tail {
    /// Lines in order. The last one may be unfinished.
    pub lines: Vec<Line>,
    /// The offset behind them.
    pub end: u64,
    /// How many bytes are missing before them.
    pub lost: u64,
    /// Whether the kept part ends in the middle of a line.
    pub in_line: bool,
    /// Whether a program draws on the screen.
    pub drawing: bool,
}

/// A rendered line.
#[derive(Debug)]
pub struct Line {
    /// Its offset, counted from the cut.
    pub offset: u64,
    /// How much of the offsets it takes up. Its text may be longer, because control sequences can produce blanks.
    pub length: u64,
    pub text: String,
}

impl Tail {
    /// Renders bytes that begin at `at`, in a stream that is cut at `cut`.
    pub fn new(rendering: Rendering, cut: u64, (at, bytes): (u64, &[u8])) -> Self {
        let lost = at - cut;
        let skip = match lost {
            0 => 0,
            _ => bytes.len() - after_cut(bytes).len(),
        };
        let mut tail =
            Self { lost: lost + skip as u64, end: lost + skip as u64, ..Self::default() };
        let mut renderer = Renderer::new(rendering);
        for line in bytes[skip..].split_inclusive(|byte| *byte == b'\n') {
            let mut text = String::new();
            renderer.feed(line, &mut text);
            let is_whole = line.ends_with(b"\n");
            if !is_whole {
                renderer.finish(&mut text);
            }
            let length = if is_whole { line.len() } else { text.len() } as u64;
            tail.lines.push(Line { offset: tail.end, length, text });
            tail.end += length;
        }
        tail.drawing = renderer.is_drawing();
        tail
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::output::Output;
    use crate::page::{Data, PageRequest, Reader};
    use crate::read_position::ReadPosition;
    use crate::render::Rendering;
    use crate::room::Room;
    use crate::search::Filter;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    #[test]
    fn lines_that_render_longer_than_their_bytes_are_returned_once() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        let (mut printed, mut returned, mut offset) = (0, String::new(), 0);
        let reader = Reader::new(output.clone(), Stream::Stdout, Rendering::default());
        for _ in 0..4 {
            let lines: String =
                (printed..printed + 2_000).map(|n| format!("{n:06}\x1b[60Gok\n")).collect();
            printed += 2_000;
            output.append(Stream::Stdout, lines.as_bytes());
            loop {
                let page = reader.page(PageRequest::bytes(offset, 10_000)).unwrap();
                let Data::Text(text) = page.data else { panic!("text") };
                offset = page.end;
                if text.is_empty() {
                    break;
                }
                returned.push_str(&text);
            }
        }
        let numbers: Vec<u32> =
            returned.lines().filter_map(|line| line.get(..6)?.parse().ok()).collect();
        assert_eq!(numbers, (0..printed).collect::<Vec<_>>(), "each was read before it was lost");
        assert!(returned.ends_with("ok\n"));
    }

    #[test]
    fn text_after_a_prompt_that_renders_longer_than_its_bytes_is_returned() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, &b"lost\n".repeat(40_000));
        let mut at = ReadPosition::default();
        let mut returned = |printed: &str| {
            output.append(Stream::Stdout, printed.as_bytes());
            let reader = Reader::new(output.clone(), Stream::Stdout, Rendering::default()).live();
            let (page, next) =
                reader.read_on(&Filter::Everything, at, Room::bytes(1 << 20)).unwrap();
            at = next;
            let Data::Text(text) = page.data else { panic!("text") };
            text
        };
        assert!(returned("$ \x1b[60Gclock").ends_with("clock"));
        let then = returned("\none\ntwo\n");
        assert!(then.ends_with("clock\none\ntwo\n"), "{then:?}");
        assert_eq!(returned("three\n"), "three\n");
    }

    #[test]
    fn the_last_bytes_never_begin_within_lost_output() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, &b"lost\n".repeat(40_000));
        let reader = Reader::new(output, Stream::Stdout, Rendering::default()).live();
        let kept = 64 << 10;
        assert_eq!(reader.offset_of_last(1_000).unwrap(), 199_000);
        assert_eq!(reader.offset_of_last(kept + 100).unwrap(), kept);
        assert_eq!(reader.offset_of_last(199_000).unwrap(), 1_000);
    }
}
