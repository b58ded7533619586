//! What a program prints in lines, told apart from what it draws.
//!
//! A program that uses the whole screen of a terminal switches to the other one of its two screens, or
//! sends the cursor to a row and writes there. That is drawn, again and again, until the program switches
//! back, erases all, or lines leave the last row at the bottom as they do when they are printed.
//!
//!     printed ── cursor sent to a row ──▶ drawn ── erased, or a line's end in the last row ──▶ printed
//!        ├── cursor saved … drawn … cursor restored ──▶ printed, where it was
//!        └── other screen ──▶ drawn ── first screen ──▶ printed, where it was

/// What the screen is used for at some place of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Canvas {
    /// The other screen is shown.
    other: bool,
    /// The row of the cursor, since it was sent there.
    row: Option<u16>,
    /// The same, when it was saved.
    saved: Option<u16>,
    /// Whether anything was written since the screen was empty.
    written: bool,
    /// Whether the cursor is where the screen begins.
    home: bool,
}

impl Canvas {
    pub fn is_drawn(&self) -> bool {
        self.other || self.row.is_some()
    }

    pub fn note_written(&mut self) {
        (self.written, self.home) = (true, false);
    }

    pub fn show_other(&mut self, other: bool) {
        self.other = other;
    }

    /// The cursor is sent to a place. The first one of an empty screen is where lines begin.
    pub fn send_to(&mut self, row: u16, column: u16) {
        if !self.other {
            self.home = row <= 1 && column <= 1;
            self.row = (self.written || !self.home).then_some(row.max(1));
        }
    }

    pub fn move_by(&mut self, rows: i32) {
        let moved = |row: u16| (i32::from(row) + rows).clamp(1, u16::MAX.into()) as u16;
        self.row = self.row.map(moved);
    }

    /// All of the screen is erased, or all behind the cursor. True if lines begin again.
    pub fn erase(&mut self, all: bool) -> bool {
        if self.other || !(all || self.home) {
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

    /// A line's end while something is drawn. True if lines are printed from here on.
    pub fn end_line(&mut self, rows: u16) -> bool {
        self.home = false;
        match self.row.filter(|_| !self.other) {
            Some(row) if row >= rows => self.row = None,
            Some(row) => self.row = Some(row + 1),
            None => {}
        }
        !self.is_drawn()
    }
}
