//! Node's own test runner, as its `spec` reporter prints it. Its other reporters print TAP and JUnit.
//!
//! A parent that fails only because something in it does has a mark and is not told; Node counts it as a failed test,
//! unless it is a suite. A suite that fails for its own reason is told and not counted. So what is told is compared
//! with the marks, and the marks with the counts.

use std::collections::HashMap;

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, number};

/// The lines that end a run, in their order.
const COUNTERS: [&str; 8] =
    ["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo", "duration_ms"];

const FAILED: &str = "✖ ";
const MARKS: [&str; 4] = ["✔ ", FAILED, "﹣ ", "⚠ "];

/// What is said of a file that failed.
const NOTHING_SAID: &str = "'test failed'";

/// Of so many files it is known why they failed.
const MOST_THROWN: usize = 100;

/// What may be marked in front of what is open.
const DEEPEST: usize = 100;

#[derive(Default)]
pub(super) struct Node {
    marks: u64,
    /// How many marks say that something failed.
    failed: u64,
    /// Titles of what is open, and how far they are indented.
    open: Vec<(usize, String)>,
    /// Marks of failed parents that were not told.
    parents: HashMap<String, u64>,
    counters: Vec<u64>,
    closed: Option<Vec<u64>>,
    closings: u64,
    failing: bool,
    /// Where the next failed test is.
    place: Option<(String, u64)>,
    block: Option<Block>,
    failures: Failures,
    /// The error that was printed last, and whether its message goes on.
    error: Message,
    in_error: bool,
    /// What ended a file, by its name.
    thrown: HashMap<String, Message>,
}

/// A failed test, while it is told.
struct Block {
    name: String,
    place: Option<(String, u64)>,
    message: Message,
}

impl Runner for Node {
    fn line(&mut self, line: &str) {
        if let Some(count) = counter(line, COUNTERS[self.counters.len()]) {
            self.counters.push(count);
            if self.counters.len() == COUNTERS.len() {
                self.closed = Some(std::mem::take(&mut self.counters));
                self.closings += 1;
            }
            return;
        }
        self.counters.clear();
        if line == "✖ failing tests:" {
            self.failing = true;
        } else if self.failing {
            self.detail(line);
        } else {
            if is_mark(line) {
                self.marks += 1;
                self.ends(line);
            } else {
                self.printed(line);
            }
            self.nested(line);
        }
    }

    fn output_ends(&mut self) {
        self.end_block();
        self.error = Message::default();
        self.failing = false;
        self.counters.clear();
    }

    fn finish(self: Box<Self>) -> Option<Found> {
        if self.marks == 0 && self.closed.is_none() {
            return None;
        }
        let mut doubts = Doubts::default();
        let mut found = Found::new("node", Closing::Whole);
        if let Some([tests, suites, pass, fail, cancelled, skipped, todo, _]) =
            self.closed.as_deref()
        {
            (found.passed, found.failed, found.skipped) = (*pass, fail + cancelled, skipped + todo);
            // All that failed and was not a suite.
            let fits = (self.failed.saturating_sub(*suites)..=self.failed).contains(&found.failed);
            let silent: u64 = self.parents.values().sum();
            let told = self.failures.count;
            if fits && told + silent == self.failed && (told > 0 || silent == 0) {
                found.failed = told;
            } else if self.failed > 0 {
                doubts.add("some failures are not listed".to_owned());
            }
            if pass + fail + cancelled + skipped + todo != *tests {
                doubts.add("the counts do not agree".to_owned());
            }
        } else {
            doubts.add("no summary was printed".to_owned());
        }
        if self.closings > 1 {
            doubts.add("several summaries were printed".to_owned());
        }
        found.closing = Closing::Whole.unless(doubts);
        found.failures = self.failures;
        Some(found)
    }
}

impl Node {
    /// An error that nobody caught: its kind and message, up to the first frame of the stack.
    fn printed(&mut self, line: &str) {
        let is_error = || {
            let (kind, _) = line.split_once(':').unwrap_or_default();
            kind.trim_end_matches(']').ends_with("Error") || kind.contains("Error [")
        };
        if !line.starts_with(' ') && is_error() {
            self.error = Message::default();
            self.in_error = true;
        }
        self.in_error &= !is_frame(line);
        if self.in_error {
            self.error.push(line);
        }
    }

    /// A file that fails says only that it did. The error was printed before.
    fn ends(&mut self, line: &str) {
        let error = std::mem::take(&mut self.error);
        self.in_error = false;
        if let Some(name) = line.strip_prefix(FAILED)
            && !error.is_empty()
            && self.thrown.len() < MOST_THROWN
        {
            self.thrown.insert(without_time(name).to_owned(), error);
        }
    }

    /// Counts what failed, and which of it are parents: `▶ things`, then its tests, then its own mark.
    fn nested(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let depth = line.len() - text.len();
        if let Some(title) = text.strip_prefix("▶ ") {
            self.open.retain(|(at, _)| *at < depth);
            if self.open.len() < DEEPEST {
                self.open.push((depth, title.to_owned()));
            }
            return;
        }
        let Some(name) = MARKS.iter().find_map(|mark| text.strip_prefix(mark)) else { return };
        self.open.retain(|(at, _)| *at <= depth);
        let title = without_time(name);
        let is_parent =
            self.open.pop_if(|(at, open)| *at == depth && open.as_str() == title).is_some();
        if !text.starts_with(FAILED) || is_excused(name) {
            return;
        }
        self.failed += 1;
        if is_parent && self.parents.len() < Failures::MOST {
            *self.parents.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// `test at a.test.js:5:3`, then the test's line, then what it said.
    fn detail(&mut self, line: &str) {
        if let Some(place) = line.strip_prefix("test at ") {
            self.end_block();
            self.place = super::location(place);
        } else if let Some(name) = line.strip_prefix(FAILED) {
            self.end_block();
            let place = self.place.take();
            if is_excused(name) {
                return;
            }
            if let Some(count) = self.parents.get_mut(name) {
                *count = count.saturating_sub(1);
            }
            let name = without_time(name);
            self.block = Some(Block { name: name.to_owned(), place, message: Message::default() });
        } else if is_own_frame(line) {
            // Nobody looks for a mistake there.
        } else if let Some(block) = &mut self.block {
            block.message.push(line.strip_prefix("  ").unwrap_or(line));
        }
    }

    fn end_block(&mut self) {
        let Some(mut block) = self.block.take() else { return };
        if block.message.trim() == NOTHING_SAID
            && let Some(error) = self.thrown.remove(&block.name)
        {
            block.message = error;
        }
        self.failures.push(Failure::new(&block.name, &block.message).at(block.place));
    }
}

fn without_time(name: &str) -> &str {
    name.rsplit_once(" (").map_or(name, |(name, _)| name)
}

/// Whether the mark is of a test with `todo`, which may fail: `umlauts (0.29ms) # TODO`, or the reason for it.
fn is_excused(name: &str) -> bool {
    name.contains("ms) # ") || name.ends_with(" # TODO")
}

fn is_frame(line: &str) -> bool {
    line.trim_start().starts_with("at ") && line.starts_with(' ')
}

/// A frame of node's own code.
fn is_own_frame(line: &str) -> bool {
    is_frame(line) && (line.contains("(node:") || line.contains(" node:"))
}

fn counter(line: &str, name: &str) -> Option<u64> {
    let rest = line.strip_prefix("ℹ ")?.strip_prefix(name)?.strip_prefix(' ')?;
    let (count, rest) = number(rest)?;
    (rest.is_empty() || name == "duration_ms" && rest.starts_with('.')).then_some(count)
}

/// `✔ works (7.177579ms)`: other runners that print such marks have no fractions of milliseconds.
fn is_mark(line: &str) -> bool {
    let trimmed = line.trim_start();
    let marked = MARKS.iter().any(|mark| trimmed.starts_with(mark));
    marked
        && trimmed
            .rsplit_once(" (")
            .is_some_and(|(_, time)| time.contains('.') && time.contains("ms)"))
}
