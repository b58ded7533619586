//! A line where rendering can resume.

use crate::render::DrawingState;

/// The start of a line, as an offset in the raw bytes and in the rendered text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    pub raw: u64,
    pub rendered: u64,
    /// How the program uses the screen there. Only views with `screen_rows` need it.
    pub drawing: DrawingState,
}
