//! Vitest's default reporter. It prints its summary to standard output and what failed to standard error.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, counts, number};

#[derive(Default)]
pub(super) struct Vitest {
    runs: u64,
    closed: u64,
    state: State,
    /// Of the summary that is being read.
    files: Counted,
    tests: Counted,
    errors: u64,
    total: Counted,
    failed_files: u64,
    block: Option<(String, Message)>,
    broken: u64,
    failures: Failures,
    doubts: Doubts,
}

type Counted = [u64; 4];

/// The lines of a summary follow each other.
#[derive(Default, PartialEq)]
enum State {
    #[default]
    Tests,
    Files,
    Closing,
}

impl Runner for Vitest {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if line.starts_with(" RUN  v") {
            self.runs += 1;
        } else if self.state == State::Tests
            && let Some(files) = line.strip_prefix(" Test Files  ").and_then(counted)
        {
            self.end_block();
            (self.state, self.files) = (State::Files, files);
            return;
        } else if self.state == State::Files
            && let Some(tests) = trimmed.strip_prefix("Tests  ").and_then(counted_or_none)
        {
            (self.state, self.tests) = (State::Closing, tests);
            return;
        } else if self.state == State::Closing {
            if let Some(errors) = trimmed.strip_prefix("Errors  ") {
                self.errors += number(errors).map_or(1, |errors| errors.0);
            } else if trimmed.starts_with("Duration  ") {
                self.closed += 1;
                self.state = State::Tests;
                self.total.iter_mut().zip(self.tests).for_each(|(total, count)| *total += count);
                self.failed_files += self.files[1];
            }
            return;
        } else if let Some(name) = line.strip_prefix(" FAIL  ") {
            self.end_block();
            self.block = Some((name.to_owned(), Message::default()));
        } else if line.starts_with("⎯⎯⎯") {
            self.end_block();
        } else if let Some((_, message)) = &mut self.block {
            message.push(line);
        }
        self.state = State::Tests;
    }

    fn output_ends(&mut self) {
        self.end_block();
        self.state = State::Tests;
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if self.runs == 0 && self.closed == 0 {
            return None;
        }
        if self.closed != self.runs {
            self.doubts.add("no summary was printed".to_owned());
        }
        let [passed, mut failed, skipped, total] = self.total;
        if passed + failed + skipped != total {
            self.doubts.add("the counts do not agree".to_owned());
        }
        failed += self.broken + self.errors;
        if failed == 0 {
            failed = self.failed_files;
        }
        if self.errors > 0 {
            self.failures.push(Failure::new("unhandled errors", "errors that no test caught"));
        }
        if self.failures.count > failed {
            self.doubts.add("more tests failed than the summary counts".to_owned());
        }
        let mut found = Found::new("vitest", Closing::Whole.unless(self.doubts));
        (found.passed, found.failed, found.skipped, found.failures) =
            (passed, failed, skipped, self.failures);
        Some(found)
    }
}

impl Vitest {
    fn end_block(&mut self) {
        let Some((name, message)) = self.block.take() else { return };
        // A file that did not load is shown as `a.test.js [ a.test.js ]`.
        let name = match name.split_once(" [ ") {
            Some((file, rest)) if rest.ends_with(" ]") => {
                self.broken += 1;
                file.to_owned()
            }
            _ => name,
        };
        self.failures.push(Failure::new(&name, &message));
    }
}

/// `1 failed | 1 passed | 1 skipped (3)`.
fn counted(text: &str) -> Option<Counted> {
    let (parts, total) = text.rsplit_once(" (")?;
    let mut all = [0, 0, 0, total.trim_end().strip_suffix(')')?.parse().ok()?];
    for (count, word) in counts(parts, " | ")? {
        match word.trim() {
            "passed" => all[0] += count,
            "failed" => all[1] += count,
            _ => all[2] += count,
        }
    }
    Some(all)
}

fn counted_or_none(text: &str) -> Option<Counted> {
    if text.trim() == "no tests" { Some([0; 4]) } else { counted(text) }
}
