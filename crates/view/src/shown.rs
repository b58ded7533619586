//! What is shown of an output, as it is written: never more than there is room for, but for a few bytes.

use std::fmt::Write;
use std::ops::{Add, Sub};

use crate::lines::Line;

/// A shorter form of an output, or of its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// How many bytes of the output this text stands for. They end at a line; the next page begins there.
    pub consumed: u64,
    /// How many lines of the output this text stands for.
    pub lines: u64,
    /// How many of them are not in the text as they were.
    pub omitted: u64,
    /// How many of the bytes are not in the text.
    pub omitted_bytes: u64,
}

/// The room a cut line leaves for the note that says so; a line this short is never cut.
const CUT_NOTE: usize = 40;

/// How many bytes of a line fit, as text, into some room.
fn fitting(bytes: &[u8], room: usize) -> usize {
    let (mut taken, mut left) = (0, room);
    for chunk in bytes.utf8_chunks() {
        let parts = chunk.valid().chars().map(|it| (it.len_utf8(), it.len_utf8()));
        let invalid = Some((chunk.invalid().len(), char::REPLACEMENT_CHARACTER.len_utf8()));
        for (raw, text) in parts.chain(invalid.filter(|(raw, _)| *raw > 0)) {
            if text > left {
                return taken;
            }
            left -= text;
            taken += raw;
        }
    }
    taken
}

/// How much of an output is in a text: lines that are as they were, and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Literal {
    pub lines: u64,
    pub bytes: u64,
}

impl Add for Literal {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, bytes: self.bytes + other.bytes }
    }
}

impl Sub for Literal {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { lines: self.lines - other.lines, bytes: self.bytes - other.bytes }
    }
}

/// A text, and how much of the output is in it.
pub struct Text {
    pub text: String,
    pub literal: Literal,
    pub room: usize,
}

/// A place in a text, to go back to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    pub at: usize,
    pub literal: Literal,
}

impl Text {
    pub fn new(room: usize) -> Self {
        Self { text: String::new(), literal: Literal::default(), room }
    }

    pub fn mark(&self) -> Mark {
        Mark { at: self.text.len(), literal: self.literal }
    }

    pub fn go_back(&mut self, mark: Mark) {
        self.text.truncate(mark.at);
        self.literal = mark.literal;
    }

    pub fn is_full(&self) -> bool {
        self.text.len() > self.room
    }

    /// Writes a line, and says what was not kept of it.
    pub fn push(&mut self, line: &Line, bytes: &[u8]) {
        self.push_bytes(bytes);
        self.push_notes(line.cut, line.overwritten);
        let end = u64::from(line.ended);
        let bytes = if line.is_whole() { line.raw } else { bytes.len() as u64 + end };
        self.literal = self.literal + Literal { lines: u64::from(line.is_whole()), bytes };
        if line.ended {
            self.text.push('\n');
        }
    }

    /// Writes as much of a line as fits into some bytes, and says how much is missing. A few bytes are always written.
    pub fn push_within(&mut self, room: usize, line: &Line, bytes: &[u8]) {
        let room = room.saturating_sub(CUT_NOTE).max(CUT_NOTE);
        let kept = fitting(bytes, room);
        if bytes.len() - kept <= CUT_NOTE && fitting(bytes, room + CUT_NOTE) == bytes.len() {
            return self.push(line, bytes);
        }
        let (shown, missing) = bytes.split_at_checked(kept).unwrap_or_default();
        self.push(&line.without(missing.len()), shown);
    }

    fn push_notes(&mut self, cut: u64, overwritten: u64) {
        if cut > 0 {
            self.note(format_args!("… {cut} {} more …", plural(cut, "byte", "bytes")));
        }
        if overwritten > 0 {
            let states = plural(overwritten, "state", "states");
            self.note(format_args!(" … {overwritten} earlier {states} …"));
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        match str::from_utf8(bytes) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&String::from_utf8_lossy(bytes)),
        }
    }

    pub fn note(&mut self, note: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(note);
    }

    pub fn into_shown(self, consumed: u64, lines: u64) -> Shown {
        let Literal { lines: literal, bytes } = self.literal;
        let (omitted, omitted_bytes) = (lines - literal, consumed - bytes);
        Shown { text: self.text, consumed, lines, omitted, omitted_bytes }
    }
}

pub fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}
