//! Tells what a program prints in lines from what it draws.
//!
//! A full-screen program switches to the terminal's alternate screen, or moves the cursor to a row and writes
//! there. It draws until it switches back, erases the screen, or lines scroll off the last row as printed lines do.
//!
//!     printing ── cursor moved to a row ──▶ drawing ── erased, or a newline in the last row ──▶ printing
//!        ├── cursor saved … drawing … cursor restored ──▶ printing, where it was
//!        └── alternate screen ──▶ drawing ── main screen ──▶ printing, where it was
//!
//! Moving up by some rows is not drawing: several progress bars at once do that, and their last state would be on
//! the screen alone. The state outlives a line, so checkpoints include it.

/// How a program uses the screen, at some point of its output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrawingState {
    /// Whether the alternate screen is shown.
    alternate: bool,
    /// The row of the cursor, since a program moved it there.
    row: Option<u16>,
    /// The row when the cursor was saved.
    saved: Option<u16>,
    /// Whether anything was written since the screen was empty.
    written: bool,
    /// Whether the cursor is in the top left corner.
    home: bool,
}

impl DrawingState {
    pub fn is_drawing(&self) -> bool {
        self.alternate || self.row.is_some()
    }

    pub fn note_written(&mut self) {
        (self.written, self.home) = (true, false);
    }

    pub fn switch_screen(&mut self, alternate: bool) {
        self.alternate = alternate;
    }

    /// Moves the cursor. The top left corner of an empty screen is where printing starts.
    pub fn move_to(&mut self, row: u16, column: u16) {
        if !self.alternate {
            self.home = row <= 1 && column <= 1;
            self.row = (self.written || !self.home).then_some(row.max(1));
        }
    }

    pub fn move_by(&mut self, rows: i32) {
        let moved = |row: u16| (i32::from(row) + rows).clamp(1, u16::MAX.into()) as u16;
        self.row = self.row.map(moved);
    }

    /// Erases the whole screen, or everything after the cursor. Returns whether printing starts again.
    pub fn erase(&mut self, all: bool) -> bool {
        if self.alternate || !(all || self.home) {
            return false;
        }
        (self.written, self.row) = (false, None);
        true
    }

    pub fn save(&mut self) {
        self.saved = self.row;
    }

    pub fn restore(&mut self) {
        self.row = self.saved;
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Handles a newline while the program draws. Returns whether it prints from here on.
    pub fn end_line(&mut self, rows: u16) -> bool {
        self.home = false;
        match self.row.filter(|_| !self.alternate) {
            Some(row) if row >= rows => self.row = None,
            Some(row) => self.row = Some(row + 1),
            None => {}
        }
        !self.is_drawing()
    }
}
