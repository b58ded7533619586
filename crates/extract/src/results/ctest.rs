//! CMake's `ctest`.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, number};

#[derive(Default)]
pub(super) struct Ctest {
    seen: bool,
    open: bool,
    tests: u64,
    passed: u64,
    skipped: u64,
    failed: Vec<(String, Message)>,
    more_failed: u64,
    detail: bool,
    summed: bool,
    total: [u64; 3],
    failures: Failures,
    doubts: Doubts,
}

impl Runner for Ctest {
    fn line(&mut self, line: &str) {
        if line.starts_with("Test project /") {
            self.take();
            if self.open {
                self.doubts.add("a run has no summary".to_owned());
            }
            (self.seen, self.open, self.summed) = (true, true, false);
        } else if !self.open {
        } else if let Some((name, verdict)) = result(line) {
            self.result(name, verdict);
        } else if line.trim_start().starts_with("Start ") && line.starts_with("  ") {
            self.detail = false;
        } else if let Some((failed, total)) = summary(line) {
            self.detail = false;
            let known = self.failed.len() as u64 + self.more_failed;
            if failed != known || total != self.tests {
                self.doubts.add("it counts other tests than those seen".to_owned());
            }
            self.summed = true;
        } else if line.starts_with("Total Test time (real) =") && line.ends_with(" sec") {
            self.open = !self.summed;
        } else if self.detail
            && let Some((_, message)) = self.failed.last_mut()
        {
            message.push(line);
        }
    }

    fn output_ends(&mut self) {
        self.detail = false;
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if !self.seen {
            return None;
        }
        self.take();
        if self.open {
            self.doubts.add_first("no summary was printed".to_owned());
        }
        let mut found = Found::new("ctest", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Ctest {
    fn result(&mut self, name: &str, verdict: &str) {
        self.tests += 1;
        self.detail = false;
        let word = verdict.trim_start_matches('*').trim();
        if word.starts_with("Passed") {
            self.passed += 1;
        } else if word.starts_with("Skipped") || word.starts_with("Not Run (Disabled)") {
            self.skipped += 1;
            if word.starts_with("Not Run") {
                self.tests -= 1;
            }
        } else if self.failed.len() < Failures::MOST {
            let words: Vec<&str> =
                word.split("  ").next().unwrap_or(word).split_whitespace().collect();
            self.failed.push((name.to_owned(), Message::from(words.join(" ").as_str())));
            self.detail = true;
        } else {
            self.more_failed += 1;
        }
    }

    fn take(&mut self) {
        self.total[0] += std::mem::take(&mut self.passed);
        self.total[1] += self.failed.len() as u64 + self.more_failed;
        self.total[2] += std::mem::take(&mut self.skipped);
        self.tests = 0;
        for (name, message) in self.failed.drain(..) {
            self.failures.push(Failure::new(&name, &message));
        }
        self.failures.count += std::mem::take(&mut self.more_failed);
    }
}

/// `2/4 Test #2: wrong ......***Failed    0.00 sec`.
fn result(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = number(line.trim_start())?;
    let (_, rest) = number(rest.strip_prefix('/')?)?;
    let (_, rest) =
        number(rest.trim_start().strip_prefix("Test")?.trim_start().strip_prefix('#')?)?;
    let rest = rest.strip_prefix(": ")?.trim_start();
    let (name, verdict) = rest.split_once(" .").or_else(|| rest.split_once("***"))?;
    let verdict = verdict.trim_start_matches('.');
    verdict.trim_end().ends_with(" sec").then_some((name.trim_end(), verdict.trim_start()))
}

/// `50% tests passed, 2 tests failed out of 4`.
fn summary(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = number(line)?;
    let (failed, rest) = number(rest.strip_prefix("% tests passed, ")?)?;
    let total = rest.split_once(" failed out of ")?.1;
    Some((failed, number(total)?.0))
}
