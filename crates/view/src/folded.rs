//! An output with its runs of alike lines folded: the first, how many more there are, and the last.
//!
//! A run may also repeat two or three lines. Lines are written as they come; once those in the middle of a run are
//! longer than any note, they are taken back, and from then on only counted. A run that ends earlier is folded only
//! if the note is shorter.
//!
//!     GET /a/1  ─┐                 GET /a/1
//!     GET /a/2   │ hidden          … 3 more lines like this …
//!     GET /a/3   │                 GET /a/5
//!     GET /a/4  ─┘
//!     GET /a/5

use std::fmt::Write;
use std::io::{Read, Result};

use crate::lines::Lines;
use crate::shown::{Mark, Shown, Text, plural};

/// The most lines a run may repeat.
const LONGEST_PERIOD: usize = 3;

/// No note is longer.
const LONGEST_NOTE: usize = 64;

/// The output with its runs folded, up to as many bytes as there is room for.
pub fn folded(output: impl Read, room: usize) -> Result<Shown> {
    let mut folding = Folding::new(room);
    let mut lines = Lines::new(output);
    let mut consumed = 0;
    let mut count = 0;
    let mut is_full = false;
    while lines.advance()? {
        if !folding.take(&lines) {
            is_full = true;
            break;
        }
        count += 1;
        consumed += lines.recent(0).raw;
    }
    // Lines that were not taken are not part of the run.
    folding.close(&lines, usize::from(is_full));
    Ok(folding.text.into_shown(consumed, count))
}

/// Lines that are alike, or every second or third of which is.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// How many lines it repeats.
    period: usize,
    lines: u64,
    /// Where its first lines end in the text, `period` of them.
    first_end: Mark,
    /// Whether the lines after the first ones are only counted.
    folded: bool,
    /// Whether all lines are the same, so that the last need not be shown.
    identical: bool,
    blank: bool,
}

struct Folding {
    text: Text,
    run: Run,
    /// Where the last lines of the text begin, the newest first, as far as they are lines of the output.
    begins: [Mark; LONGEST_PERIOD],
    shown: usize,
    note: String,
}

impl Folding {
    fn new(room: usize) -> Self {
        let run = Run {
            period: 1,
            lines: 0,
            first_end: Mark::default(),
            folded: false,
            identical: true,
            blank: false,
        };
        let begins = [Mark::default(); LONGEST_PERIOD];
        Self { text: Text::new(room), run, begins, shown: 0, note: String::new() }
    }

    /// Takes the newest line. Returns false if it does not fit.
    fn take<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        if self.run.lines > 0 && self.continues(lines) {
            return self.extend(lines);
        }
        let tried = (self.run.lines > 0).then_some(self.run.period);
        self.close(lines, 1);
        let mut periods = (1..=self.shown).filter(|period| Some(*period) != tried);
        let period = periods.find(|period| are_alike(lines, *period));
        let before = self.text.mark();
        if !self.push(lines) {
            return false;
        }
        let (period, taken, first_end) = match period {
            Some(period) => (period, period as u64 + 1, before),
            None => (1, 1, self.text.mark()),
        };
        let identical = period == 1 && (taken == 1 || is_same(lines));
        let blank = identical && lines.bytes(0).iter().all(u8::is_ascii_whitespace);
        self.run = Run { period, lines: taken, first_end, folded: false, identical, blank };
        true
    }

    fn continues<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        if self.run.identical && self.run.lines > 0 {
            if is_same(lines) {
                return true;
            }
            let continues = are_alike(lines, 1);
            if continues {
                self.run.identical = self.run.blank;
            }
            return continues;
        }
        are_alike(lines, self.run.period)
    }

    fn extend<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        if self.run.folded {
            if !self.has_room_to_end(lines) {
                return false;
            }
            self.run.lines += 1;
            return true;
        }
        if !self.push(lines) {
            return false;
        }
        self.run.lines += 1;
        if self.hidden() > LONGEST_NOTE {
            self.text.go_back(self.run.first_end);
            self.run.folded = true;
        }
        true
    }

    /// How many bytes of text would be left out by folding the run as it is.
    fn hidden(&self) -> usize {
        let shown_end =
            if self.run.identical { self.text.text.len() } else { self.last_begin().at };
        shown_end.saturating_sub(self.run.first_end.at)
    }

    /// Where the last lines of the run begin, `period` of them.
    fn last_begin(&self) -> Mark {
        self.begins.get(self.run.period - 1).copied().unwrap_or_default()
    }

    /// Whether the note and the last lines fit, the newest line being one of them.
    fn has_room_to_end<R: Read>(&self, lines: &Lines<R>) -> bool {
        let notes = (1 + self.run.period) * LONGEST_NOTE;
        let left = self.text.room.saturating_sub(self.text.text.len() + notes);
        let last = || (0..self.run.period).map(|ago| lines.bytes(ago));
        // A byte that is not UTF-8 takes three.
        let most: usize = last().map(|line| 3 * line.len()).sum();
        most <= left
            || last().map(|line| String::from_utf8_lossy(line).len()).sum::<usize>() <= left
    }

    /// Writes the newest line. Returns false if it does not fit. The very first line is cut to fit.
    fn push<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        let mark = self.text.mark();
        self.text.push(lines.recent(0), lines.bytes(0));
        if self.text.is_full() {
            self.text.go_back(mark);
            if mark.at > 0 {
                return false;
            }
            self.text.push_within(self.text.room, lines.recent(0), lines.bytes(0));
        }
        self.remember(mark);
        true
    }

    fn remember(&mut self, mark: Mark) {
        self.begins.rotate_right(1);
        self.begins[0] = mark;
        self.shown = (self.shown + 1).min(LONGEST_PERIOD);
    }

    /// Ends the run, whose last line came some lines ago.
    fn close<R: Read>(&mut self, lines: &Lines<R>, ago: usize) {
        let run = self.run;
        self.run.lines = 0;
        let last_lines = if run.identical { 0 } else { run.period };
        let hidden = run.lines.saturating_sub((run.period + last_lines) as u64);
        if hidden == 0 {
            return;
        }
        self.note.clear();
        let _ = match (run.identical, run.blank, run.period) {
            (_, true, _) => {
                writeln!(self.note, "… {hidden} more blank {} …", plural(hidden, "line", "lines"))
            }
            (true, _, _) => writeln!(
                self.note,
                "… {hidden} more identical {} …",
                plural(hidden, "line", "lines")
            ),
            (_, _, 1) => writeln!(
                self.note,
                "… {hidden} more {} like this …",
                plural(hidden, "line", "lines")
            ),
            _ => writeln!(
                self.note,
                "… {hidden} more {} like these …",
                plural(hidden, "line", "lines")
            ),
        };
        if run.folded {
            self.text.text.push_str(&self.note);
            self.shown = 0;
            for line in (ago..ago + last_lines).rev() {
                let mark = self.text.mark();
                self.text.push(lines.recent(line), lines.bytes(line));
                self.remember(mark);
            }
        } else if self.hidden() > self.note.len() {
            let last = if run.identical { self.text.mark() } else { self.last_begin() };
            let literal = self.text.literal - last.literal;
            self.text.text.replace_range(run.first_end.at..last.at, &self.note);
            self.text.literal = run.first_end.literal + literal;
            self.shown = 0;
        }
    }
}

/// Whether the newest line is alike to one some lines before.
fn are_alike<R: Read>(lines: &Lines<R>, ago: usize) -> bool {
    let has_cut = lines.recent(0).cut > 0 || lines.recent(ago).cut > 0;
    !has_cut && lines.are_alike(ago)
}

fn is_same<R: Read>(lines: &Lines<R>) -> bool {
    let (new, old) = (lines.recent(0), lines.recent(1));
    new.is_whole() && old.is_whole() && lines.bytes(0) == lines.bytes(1)
}
