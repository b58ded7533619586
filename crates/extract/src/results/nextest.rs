//! `cargo nextest run`. Its own words end at the twelfth column, and what tests print is indented, so that one does
//! not pass for the other.

use super::panic::Output;
use super::{Closing, Doubts, Failures, Found, Runner, counts, number};

const COLUMN: usize = 12;

#[derive(Default)]
pub(super) struct Nextest {
    runs: u64,
    summaries: u64,
    /// Of the run that goes on.
    passed: u64,
    failed: Vec<(String, Output)>,
    more_failed: u64,
    /// Whether lines belong to the last failed test.
    detail: bool,
    after_summary: bool,
    total: [u64; 3],
    failures: Failures,
    doubts: Doubts,
}

impl Runner for Nextest {
    fn line(&mut self, line: &str) {
        if line.starts_with(" Nextest run ID ") {
            self.end_run();
            self.runs += 1;
            self.after_summary = false;
            return;
        }
        if self.runs == 0 {
            return;
        }
        if line.starts_with("────────────") {
            self.detail = false;
        } else if let Some((status, rest)) = status(line) {
            self.detail = false;
            self.status(status, rest);
        } else if self.detail
            && let Some((_, output)) = self.failed.last_mut()
        {
            output.push(line.strip_prefix("    ").unwrap_or(line));
        }
    }

    fn output_ends(&mut self) {
        self.detail = false;
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        self.end_run();
        if self.runs == 0 {
            return None;
        }
        if self.runs != self.summaries {
            self.doubts.add_first("no summary was printed".to_owned());
        }
        let mut found = Found::new("nextest", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Nextest {
    fn status(&mut self, status: &str, rest: &str) {
        if status == "Summary" {
            self.summary(rest);
            return;
        }
        if self.after_summary {
            return;
        }
        // (2/4) small tests::wrong
        let name = match rest.strip_prefix('(') {
            Some(counted) => counted.split_once(") ").map_or(rest, |(_, name)| name),
            None => rest,
        };
        let word = status.rsplit(' ').next().unwrap_or(status);
        match word {
            "PASS" | "LEAK" => {
                self.passed += 1;
                self.failed.retain(|(failed, _)| failed != name);
            }
            _ if status.starts_with("FLAKY") => self.passed += 1,
            "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "TERMINATING" | "LEAK-FAIL" => {
                self.fail(status, name)
            }
            _ if word.starts_with("SIG") => self.fail(status, name),
            _ => {}
        }
    }

    fn fail(&mut self, status: &str, name: &str) {
        if status == "TERMINATING" || self.failed.iter().any(|(failed, _)| failed == name) {
            return;
        }
        if self.failed.len() >= Failures::MOST {
            self.more_failed += 1;
            return;
        }
        let mut output = Output::default();
        if status != "FAIL" {
            output.push(status);
        }
        self.failed.push((name.to_owned(), output));
        self.detail = true;
    }

    /// `4 tests run: 2 passed (1 slow), 2 failed, 1 skipped`, or `1/4 tests run: …` if it stopped early.
    fn summary(&mut self, rest: &str) {
        let Some((run, counted)) = rest.split_once(": ") else { return };
        let Some((ran, of)) = number(run) else { return };
        let plain: String = without_parentheses(counted);
        let Some(counted) = counts(&plain, ", ") else { return };
        if of.starts_with('/') {
            self.doubts.add("not all tests ran".to_owned());
        }
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        for (count, word) in counted {
            match word.trim() {
                "passed" => passed += count,
                "skipped" => skipped += count,
                _ => failed += count,
            }
        }
        if passed + failed != ran
            || failed != self.failed.len() as u64 + self.more_failed
            || passed < self.passed
        {
            self.doubts.add("it counts other tests than those seen".to_owned());
        }
        for (total, count) in self.total.iter_mut().zip([passed, failed, skipped]) {
            *total += count;
        }
        self.summaries += 1;
        self.take_failures();
        self.after_summary = true;
        self.passed = 0;
    }

    /// Takes what a run without a summary had.
    fn end_run(&mut self) {
        self.total[0] += self.passed;
        self.total[1] += self.failed.len() as u64 + self.more_failed;
        self.passed = 0;
        self.take_failures();
    }

    fn take_failures(&mut self) {
        for (name, output) in self.failed.drain(..) {
            self.failures.push(output.failure(&name));
        }
        self.failures.count += std::mem::take(&mut self.more_failed);
    }
}

/// A word at the twelfth column, and what comes after the time it took.
fn status(line: &str) -> Option<(&str, &str)> {
    let (before, rest) = line.split_once(" [")?;
    if before.chars().count() != COLUMN
        || !rest.starts_with(|c: char| c.is_ascii_digit() || c == ' ' || c == '>')
    {
        return None;
    }
    Some((before.trim_start(), rest.split_once("s] ")?.1.trim_start()))
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0;
    let keep = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => return depth == 0,
        }
        false
    };
    text.chars().filter(keep).collect()
}
