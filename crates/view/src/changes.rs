//! What changed between two outputs, as a compact diff.
//!
//! Lines that differ only in times, durations and addresses count as the same. What both begin with is compared line
//! by line. From there on, a window of each is compared, up to the last lines they have in common; the windows go on
//! from there. So any two outputs can be compared in bounded memory, though what moved further than a window is
//! not recognized.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Result};

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use crate::groups::{Entry, Groups, Label, Missing, Share};
use crate::lines::{Line, Lines};
use crate::passing::write_lasting;
use crate::shown::{Literal, Shown, plural};

/// The most lines and bytes of each output that are compared at once.
const WINDOW_LINES: usize = 20_000;
const WINDOW_BYTES: usize = 4 << 20;

/// What changed, and how much of both outputs that is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// How much of the later output it stands for. Its lines are those, not the ones that are gone.
    pub shown: Shown,
    /// How many bytes of the earlier output it stands for.
    pub consumed_before: u64,
    pub any: bool,
}

/// The lines that are gone (`-`) and new (`+`), with two around them, up to as many bytes as there is room for.
pub fn changes(before: impl Read, after: impl Read, room: usize) -> Result<Changes> {
    compare((before, after), room, false)
}

/// The same for an output that grows: what the earlier one has beyond it is not gone, as it may still come.
pub fn changes_so_far(before: impl Read, after: impl Read, room: usize) -> Result<Changes> {
    compare((before, after), room, true)
}

fn compare(
    (before, after): (impl Read, impl Read),
    room: usize,
    is_growing: bool,
) -> Result<Changes> {
    let mut comparison = Comparison {
        groups: Groups::new(Missing::Same, room),
        hasher: RandomState::new(),
        lasting: Vec::new(),
        any: false,
        passing: 0,
        is_growing,
    };
    let mut windows = Windows { before: Window::new(before), after: Window::new(after) };
    let is_end = comparison.run(&mut windows)?;
    let Comparison { groups, any, passing, .. } = comparison;
    let (mut text, taken) = groups.finish(is_end);
    if is_end && !any {
        text.text.clear();
        let lines = taken.lines;
        text.note(format_args!("no changes in {lines} {}", plural(lines, "line", "lines")));
        if passing > 0 {
            let differ = plural(passing, "differs", "differ");
            text.note(format_args!("; {passing} {differ} only in times or addresses"));
        }
        text.text.push('\n');
        text.literal = Literal::default();
    }
    Ok(Changes {
        shown: text.into_shown(taken.bytes, taken.lines),
        consumed_before: taken.before,
        any,
    })
}

struct Held {
    line: Line,
    bytes: Box<[u8]>,
    /// The same for lines that count as the same.
    key: u64,
}

/// The lines of an output that are compared next.
struct Window<R> {
    lines: Lines<R>,
    held: VecDeque<Held>,
    bytes: usize,
    is_end: bool,
}

struct Windows<B, A> {
    before: Window<B>,
    after: Window<A>,
}

struct Comparison {
    groups: Groups,
    hasher: RandomState,
    lasting: Vec<u8>,
    any: bool,
    passing: u64,
    is_growing: bool,
}

impl<R: Read> Window<R> {
    fn new(output: R) -> Self {
        Self { lines: Lines::new(output), held: VecDeque::new(), bytes: 0, is_end: false }
    }

    fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.bytes.len();
        Some(held)
    }
}

impl Comparison {
    /// Compares everything; false if there was no room for it.
    fn run<B: Read, A: Read>(&mut self, windows: &mut Windows<B, A>) -> Result<bool> {
        loop {
            self.fill(&mut windows.before, 1)?;
            self.fill(&mut windows.after, 1)?;
            match (windows.before.held.front(), windows.after.held.front()) {
                (None, None) => return Ok(true),
                (Some(_), None) if self.is_growing => return Ok(true),
                (Some(before), Some(after)) if before.key == after.key => {
                    if !self.take_same(windows) {
                        return Ok(false);
                    }
                }
                _ => {
                    self.fill(&mut windows.before, WINDOW_LINES)?;
                    self.fill(&mut windows.after, WINDOW_LINES)?;
                    if !self.compare(windows) {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Reads until a window has some lines, or as many bytes as it may.
    fn fill<R: Read>(&mut self, window: &mut Window<R>, lines: usize) -> Result<()> {
        while window.held.len() < lines && window.bytes < WINDOW_BYTES && !window.is_end {
            if !window.lines.advance()? {
                window.is_end = true;
                break;
            }
            let (line, bytes) = (window.lines.recent(0), window.lines.bytes(0));
            self.lasting.clear();
            write_lasting(bytes, &mut self.lasting);
            let key = self.hasher.hash_one((&self.lasting, line.cut, line.cut_hash));
            window.bytes += bytes.len();
            window.held.push_back(Held { line: *line, bytes: bytes.into(), key });
        }
        Ok(())
    }

    /// Compares both windows up to the last lines they have in common, or all of them.
    fn compare<B: Read, A: Read>(&mut self, windows: &mut Windows<B, A>) -> bool {
        let (lines_before, lines_after) = (windows.before.held.len(), windows.after.held.len());
        let mut input = InternedInput::default();
        input.update_before(windows.before.held.iter().map(|held| held.key));
        input.update_after(windows.after.held.iter().map(|held| held.key));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_no_heuristic(&input);
        let mut hunks: Vec<_> = diff.hunks().collect();
        let is_all = windows.before.is_end && windows.after.is_end;
        // What comes after the windows may be the same as their ends. If the ends are most of the windows, going on
        // from there would compare them over and over.
        let is_unsure = |hunk: &mut Hunk| {
            let is_last =
                hunk.before.end as usize == lines_before && hunk.after.end as usize == lines_after;
            let compared = hunk.before.start as usize + hunk.after.start as usize;
            is_last && compared > (lines_before + lines_after) / 4
        };
        if !is_all {
            hunks.pop_if(is_unsure);
        }
        let mut at = 0;
        for hunk in &hunks {
            let same = hunk.before.start - at;
            at = hunk.before.end;
            // What is missing at the end of an output that grows may still come.
            let is_open =
                self.is_growing && windows.after.is_end && hunk.after.end as usize == lines_after;
            if !(0..same).all(|_| self.take_same(windows))
                || !is_open && !hunk.before.clone().all(|_| self.take_removed(&mut windows.before))
                || !hunk.after.clone().all(|_| self.take_added(&mut windows.after))
            {
                return false;
            }
        }
        true
    }

    fn take_same<B: Read, A: Read>(&mut self, windows: &mut Windows<B, A>) -> bool {
        let (Some(before), Some(after)) = (windows.before.pop(), windows.after.pop()) else {
            return true;
        };
        let is_passing = before.bytes != after.bytes;
        let share = Share { lines: 1, bytes: after.line.raw, before: before.line.raw, is_passing };
        // What looks like a time may still be what matters.
        let sign = if is_passing { '~' } else { ' ' };
        let entry =
            Entry { label: Label::Sign(sign), line: &after.line, bytes: &after.bytes, share };
        self.passing += u64::from(is_passing);
        self.groups.ordinary(entry)
    }

    fn take_removed<R: Read>(&mut self, window: &mut Window<R>) -> bool {
        let Some(Held { line, bytes, .. }) = window.pop() else { return true };
        let share = Share { before: line.raw, ..Share::default() };
        self.any = true;
        self.groups.hit(Entry { label: Label::Sign('-'), line: &line, bytes: &bytes, share })
    }

    fn take_added<R: Read>(&mut self, window: &mut Window<R>) -> bool {
        let Some(Held { line, bytes, .. }) = window.pop() else { return true };
        let share = Share { lines: 1, bytes: line.raw, ..Share::default() };
        self.any = true;
        self.groups.hit(Entry { label: Label::Sign('+'), line: &line, bytes: &bytes, share })
    }
}
