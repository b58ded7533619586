//! The newest of an output that could not be kept to its end.
//!
//! Each of its lines has a place in what the reader sees: as far behind the last that was kept as it was
//! printed behind that. Whatever was lost in between, and however it would have been shown, that place
//! never moves.

use crate::render::{Renderer, View};
use crate::text::after_cut;

/// What can be read beyond the place where an output is cut.
#[derive(Debug, Default)]
pub struct Newest {
    /// Lines and their places, counted from the cut. The last one may have no end.
    pub lines: Vec<(u64, String)>,
    /// Where they end.
    pub end: u64,
    /// How many bytes are missing before them.
    pub lost: u64,
    /// Whether a line was cut there.
    pub in_line: bool,
    /// Whether a program uses all of the screen.
    pub draws: bool,
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
            let shown = text.len() as u64;
            newest.lines.push((newest.end, text));
            newest.end += if is_whole { line.len() as u64 } else { shown };
        }
        newest.draws = renderer.draws();
        newest
    }
}
