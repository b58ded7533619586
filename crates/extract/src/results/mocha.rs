//! Mocha's default reporter.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, number};

#[derive(Default)]
pub(super) struct Mocha {
    marks: u64,
    failing_marks: u64,
    summary: Option<Summary>,
    block: Option<Block>,
    failures: Failures,
    exception: Option<Message>,
}

/// The lines at the end.
#[derive(Default)]
struct Summary {
    passing: u64,
    pending: u64,
    failing: u64,
    /// Whether it agrees with the marks before it.
    agrees: bool,
    /// Whether the empty line that ends it was seen.
    ended: bool,
}

#[derive(Default)]
struct Block {
    titles: Vec<String>,
    titled: bool,
    message: Message,
}

impl Runner for Mocha {
    fn line(&mut self, line: &str) {
        if let Some(exception) = &mut self.exception {
            exception.push(line);
            return;
        }
        if let Some(rest) = line.strip_prefix(" Exception during run: ") {
            self.exception = Some(Message::from(rest));
        } else if let Some(passing) = summary_line(line, "passing") {
            self.end_block();
            let agrees = self.marks == 0 || self.marks == passing;
            self.summary = Some(Summary { passing, agrees, ..Summary::default() });
        } else if let Some(summary) = &mut self.summary {
            if let Some(pending) = summary_line(line, "pending") {
                summary.pending = pending;
            } else if let Some(failing) = summary_line(line, "failing") {
                summary.failing = failing;
            } else if line.is_empty() && !summary.ended {
                summary.ended = true;
            } else if is_mark(line) {
                // What looked like a summary was a test's own words.
                self.summary = None;
                self.marks += 1;
            } else {
                self.detail(line);
            }
        } else if is_mark(line) {
            self.marks += 1;
        } else if numbered(line.trim_start()).is_some() && line.starts_with("  ") {
            self.failing_marks += 1;
        }
    }

    fn output_ends(&mut self) {
        self.end_block();
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        let marks = [self.marks, self.failing_marks];
        if let Some(exception) = self.exception {
            let mut found =
                Found::new("mocha", Closing::Open("the tests could not be loaded".to_owned()));
            [found.passed, found.failed] = marks;
            let mut failure = Failure::new("loading the tests", &exception);
            if let Some(file) = &failure.file {
                failure.name = file.clone();
            }
            self.failures.push(failure);
            found.failed += 1;
            found.failures = self.failures;
            return Some(found);
        }
        let Some(summary) = self.summary else {
            if self.marks == 0 {
                return None;
            }
            let mut found = Found::new("mocha", Closing::Open("no summary was printed".to_owned()));
            [found.passed, found.failed] = marks;
            found.alike = &["jest", "vitest", "node", "cargo test", "go test"];
            return Some(found);
        };
        let mut doubts = Doubts::default();
        if !summary.agrees || self.failing_marks > 0 && self.failing_marks != summary.failing {
            doubts.add("it counts other tests than those seen".to_owned());
        }
        if !summary.ended {
            doubts.add("the summary is cut".to_owned());
        }
        let mut found = Found::new("mocha", Closing::Whole.unless(doubts));
        (found.passed, found.failed, found.skipped) =
            (summary.passing, summary.failing, summary.pending);
        found.failures = self.failures;
        Some(found)
    }
}

impl Mocha {
    fn detail(&mut self, line: &str) {
        if line.starts_with("  ")
            && !line.starts_with("   ")
            && let Some((_, title)) = numbered(&line[2..])
        {
            self.end_block();
            self.block = Some(Block::default());
            self.title(title);
        } else if self.block.as_ref().is_some_and(|block| !block.titled) {
            self.title(line.trim());
        } else if let Some(block) = &mut self.block {
            block.message.push(line.strip_prefix("      ").unwrap_or(line));
        }
    }

    fn title(&mut self, line: &str) {
        let Some(block) = &mut self.block else { return };
        block.titled = line.ends_with(':');
        block.titles.push(line.strip_suffix(':').unwrap_or(line).to_owned());
    }

    fn end_block(&mut self) {
        let Some(block) = self.block.take() else { return };
        self.failures.push(Failure::new(&block.titles.join(" "), &block.message));
    }
}

/// The count in `  1 passing (11ms)`.
fn summary_line(line: &str, word: &str) -> Option<u64> {
    let (count, rest) = number(line.strip_prefix("  ")?)?;
    let rest = rest.strip_prefix(' ')?.strip_prefix(word)?;
    (rest.is_empty() || rest.starts_with(" (") && rest.ends_with(')')).then_some(count)
}

fn is_mark(line: &str) -> bool {
    let trimmed = line.trim_start();
    line.starts_with("  ") && (trimmed.starts_with("✔ ") || trimmed.starts_with("✓ "))
}

fn numbered(text: &str) -> Option<(u64, &str)> {
    let (count, rest) = number(text)?;
    Some((count, rest.strip_prefix(") ")?))
}
