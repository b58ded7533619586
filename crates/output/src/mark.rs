//! Where rendering can go on from: a line that was passed before.

use crate::render::Canvas;

/// A line's beginning, in what came and in what is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub raw: u64,
    pub seen: u64,
    /// What a program uses the screen for there, in a view for which that matters.
    pub canvas: Canvas,
}
