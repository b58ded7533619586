//! Lines that matter, each with a few around it, and notes about how many are missing between them.
//!
//! A line waits until it is known whether one that matters follows. If that one does not fit, the next page begins with
//! the waiting lines.

use crate::lines::Line;
use crate::shown::{Literal, Text, plural};

/// How many lines are shown before and after one that matters.
const AROUND: usize = 2;

/// How much is shown of a line that does not matter by itself.
const LONGEST_AROUND: usize = 240;

/// No note is longer.
const LONGEST_NOTE: usize = 96;

/// A line this short takes less than a note that it is missing.
const SHORT: usize = 24;

/// What is written before a line.
#[derive(Debug, Clone, Copy)]
pub enum Label {
    /// As `grep -n` writes it.
    Number(u64),
    /// As `diff -u` writes it.
    Sign(char),
}

/// What a line stands for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Share {
    pub lines: u64,
    pub bytes: u64,
    /// Bytes of the output that this one is compared with.
    pub before: u64,
    /// Whether it is not quite the line it is compared with.
    pub is_passing: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub label: Label,
    pub line: &'a Line,
    pub bytes: &'a [u8],
    pub share: Share,
}

/// What is said about lines that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    WithoutErrors,
    Same,
}

struct Waiting {
    label: Label,
    line: Line,
    bytes: Vec<u8>,
    share: Share,
}

pub struct Groups {
    missing: Missing,
    text: Text,
    /// The oldest first.
    waiting: Vec<Waiting>,
    /// Used before and kept, as their memory can be used again.
    spare: Vec<Waiting>,
    /// How many lines are missing since the last that was shown, and how many of them are passing.
    gap: u64,
    gap_passing: u64,
    /// How many more lines are shown as they come.
    after: usize,
    taken: Share,
}

impl Groups {
    pub fn new(missing: Missing, room: usize) -> Self {
        Self {
            missing,
            text: Text::new(room),
            waiting: Vec::new(),
            spare: Vec::new(),
            gap: 0,
            gap_passing: 0,
            after: 0,
            taken: Share::default(),
        }
    }

    /// Takes a line that does not matter by itself. Returns false if it does not fit.
    pub fn ordinary(&mut self, entry: Entry<'_>) -> bool {
        if self.after > 0 {
            self.after -= 1;
            return self.show(&[], Some(entry), false);
        }
        let mut waiting = self.spare.pop().unwrap_or_else(|| Waiting::new(&entry));
        waiting.set(&entry);
        self.waiting.push(waiting);
        if self.waiting.len() > AROUND + 1 {
            self.skip_first();
        }
        true
    }

    /// Takes a line that matters. Returns false if it does not fit.
    pub fn hit(&mut self, entry: Entry<'_>) -> bool {
        self.skip_long_first();
        let waiting = std::mem::take(&mut self.waiting);
        let is_shown = self.show(&waiting, Some(entry), true);
        if is_shown {
            self.after = AROUND;
            self.spare.extend(waiting);
        } else {
            self.waiting = waiting;
        }
        is_shown
    }

    /// The text, and how much of both outputs it stands for. Lines that wait belong to it at the end of the outputs.
    pub fn finish(mut self, is_end: bool) -> (Text, Share) {
        if is_end {
            let waiting = std::mem::take(&mut self.waiting);
            let is_short = waiting.iter().map(|it| it.bytes.len()).sum::<usize>() < SHORT;
            if self.gap > 0
                || !is_short
                || self.text.text.is_empty()
                || !self.show(&waiting, None, false)
            {
                waiting.iter().for_each(|it| self.skip(it.share));
            }
        }
        self.note_gap();
        (self.text, self.taken)
    }

    /// Writes the note about what is missing, the waiting lines and one more. If they do not all fit, writes nothing,
    /// unless there would be no line at all.
    fn show(&mut self, waiting: &[Waiting], last: Option<Entry<'_>>, matters: bool) -> bool {
        let (mark, taken, gap) = (self.text.mark(), self.taken, (self.gap, self.gap_passing));
        self.note_gap();
        for it in waiting {
            self.write(&it.entry(), false);
        }
        if let Some(last) = &last {
            self.write(last, matters);
        }
        if self.text.text.len() + LONGEST_NOTE <= self.text.room {
            return true;
        }
        self.text.go_back(mark);
        self.taken = taken;
        (self.gap, self.gap_passing) = gap;
        if self.taken.bytes == 0 && self.taken.before == 0 {
            match (waiting.first(), last) {
                (Some(first), _) => self.write_within(self.text.room, &first.entry(), false),
                (None, Some(last)) => self.write_within(self.text.room, &last, matters),
                (None, None) => {}
            }
        }
        false
    }

    fn write(&mut self, entry: &Entry<'_>, matters: bool) {
        self.write_within(if matters { usize::MAX } else { LONGEST_AROUND }, entry, matters);
    }

    fn write_within(&mut self, room: usize, entry: &Entry<'_>, matters: bool) {
        let literal = self.text.literal;
        self.label(entry.label, matters);
        self.text.push_within(room, entry.line, entry.bytes);
        self.take(entry, literal);
    }

    fn take(&mut self, entry: &Entry<'_>, literal: Literal) {
        // Lines of the output that this one is compared with are not counted.
        if entry.share.lines == 0 {
            self.text.literal = literal;
        }
        if !entry.line.ended {
            self.text.text.push('\n');
        }
        self.add(entry.share);
    }

    fn add(&mut self, share: Share) {
        self.taken.lines += share.lines;
        self.taken.bytes += share.bytes;
        self.taken.before += share.before;
    }

    fn label(&mut self, label: Label, matters: bool) {
        match label {
            Label::Number(number) => {
                self.text.note(format_args!("{number}{}", if matters { ':' } else { '-' }));
            }
            Label::Sign(sign) => self.text.text.push(sign),
        }
    }

    /// Leaves the first waiting line out if a note about it is shorter, or needed in any case.
    fn skip_long_first(&mut self) {
        let is_too_many = self.waiting.len() > AROUND;
        let is_long = self.waiting.first().is_some_and(|first| first.bytes.len() > SHORT);
        if is_too_many && (self.gap > 0 || is_long) {
            self.skip_first();
        }
    }

    fn skip_first(&mut self) {
        let first = self.waiting.remove(0);
        self.skip(first.share);
        self.spare.push(first);
    }

    fn skip(&mut self, share: Share) {
        self.gap += share.lines;
        self.gap_passing += u64::from(share.is_passing);
        self.add(share);
    }

    fn note_gap(&mut self) {
        let (gap, passing) = (std::mem::take(&mut self.gap), std::mem::take(&mut self.gap_passing));
        if gap == 0 {
            return;
        }
        let lines = plural(gap, "line", "lines");
        match (self.missing, passing) {
            (Missing::WithoutErrors, _) => {
                self.text.note(format_args!("… {gap} {lines} without errors …\n"))
            }
            (Missing::Same, 0) => self.text.note(format_args!("… {gap} {lines} the same …\n")),
            (Missing::Same, _) => {
                let differ = plural(passing, "differs", "differ");
                self.text.note(format_args!(
                    "… {gap} {lines} the same ({passing} {differ} in times or addresses) …\n"
                ));
            }
        }
    }
}

impl Waiting {
    fn new(entry: &Entry<'_>) -> Self {
        Self { label: entry.label, line: *entry.line, bytes: Vec::new(), share: entry.share }
    }

    fn set(&mut self, entry: &Entry<'_>) {
        (self.label, self.line, self.share) = (entry.label, *entry.line, entry.share);
        self.bytes.clear();
        self.bytes.extend_from_slice(entry.bytes);
    }

    fn entry(&self) -> Entry<'_> {
        Entry { label: self.label, line: &self.line, bytes: &self.bytes, share: self.share }
    }
}
