//! The newest lines of an output that could not be kept to its end.
//!
//! A line beyond the cut is placed by the number of bytes printed between the cut and the line. Rendering does not
//! change that, nor does the loss of earlier lines, so cursors stay valid.

use crate::render::{Renderer, View};
use crate::text::after_cut;

/// What can be read beyond the place where an output is cut.
#[derive(Debug, Default)]
pub struct Newest {
    /// Lines in order. The last one may have no end.
    pub lines: Vec<Line>,
    /// Where they end.
    pub end: u64,
    /// How many bytes are missing before them.
    pub lost: u64,
    /// Whether a line was cut there.
    pub in_line: bool,
    /// Whether a program uses all of the screen.
    pub draws: bool,
}

/// A line as it is seen.
#[derive(Debug)]
pub struct Line {
    /// Counted from the cut.
    pub place: u64,
    /// How many places it takes. It may be seen longer than that, as blanks are made of a control sequence.
    pub length: u64,
    pub text: String,
}

impl Newest {
    /// What there is to see of bytes that came from `at` on, in an output that is kept up to `cut`.
    pub fn new(view: View, cut: u64, (at, bytes): (u64, &[u8])) -> Self {
        let lost = at - cut;
        let skip = match lost {
            0 => 0,
            _ => bytes.len() - after_cut(bytes).len(),
        };
        let mut newest =
            Self { lost: lost + skip as u64, end: lost + skip as u64, ..Self::default() };
        let mut renderer = Renderer::new(view);
        for line in bytes[skip..].split_inclusive(|byte| *byte == b'\n') {
            let mut text = String::new();
            renderer.feed(line, &mut text);
            let is_whole = line.ends_with(b"\n");
            if !is_whole {
                renderer.finish(&mut text);
            }
            let length = if is_whole { line.len() } else { text.len() } as u64;
            newest.lines.push(Line { place: newest.end, length, text });
            newest.end += length;
        }
        newest.draws = renderer.draws();
        newest
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::output::Output;
    use crate::page::{Data, PageRequest, Reader};
    use crate::reading::Point;
    use crate::render::View;
    use crate::room::Room;
    use crate::search::Filter;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    #[test]
    fn lines_that_are_seen_longer_than_they_came_are_told_once() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        let (mut printed, mut told, mut offset) = (0, String::new(), 0);
        let reader = Reader::new(output.clone(), Stream::Stdout, View::default());
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
                told.push_str(&text);
            }
        }
        let numbers: Vec<u32> =
            told.lines().filter_map(|line| line.get(..6)?.parse().ok()).collect();
        assert_eq!(numbers, (0..printed).collect::<Vec<_>>(), "each was read before it was lost");
        assert!(told.ends_with("ok\n"));
    }

    #[test]
    fn what_follows_a_prompt_that_is_seen_longer_than_it_came_is_told() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, &b"lost\n".repeat(40_000));
        let mut at = Point::default();
        let mut told = |printed: &str| {
            output.append(Stream::Stdout, printed.as_bytes());
            let reader = Reader::new(output.clone(), Stream::Stdout, View::default()).live();
            let (page, next) =
                reader.read_on(&Filter::Everything, at, Room::bytes(1 << 20)).unwrap();
            at = next;
            let Data::Text(text) = page.data else { panic!("text") };
            text
        };
        assert!(told("$ \x1b[60Gclock").ends_with("clock"));
        let then = told("\none\ntwo\n");
        assert!(then.ends_with("clock\none\ntwo\n"), "{then:?}");
        assert_eq!(told("three\n"), "three\n");
    }

    #[test]
    fn the_last_bytes_do_not_begin_within_what_was_lost() {
        let spill = Arc::new(Spill::new(SpillSettings::new("/dev/null/nowhere")));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, &b"lost\n".repeat(40_000));
        let reader = Reader::new(output, Stream::Stdout, View::default()).live();
        let kept = 64 << 10;
        assert_eq!(reader.last(1_000).unwrap(), 199_000);
        assert_eq!(reader.last(kept + 100).unwrap(), kept);
        assert_eq!(reader.last(199_000).unwrap(), 1_000);
    }
}
