//! Jest, as text and with `--json`, which vitest's JSON reporter prints as well.

use serde_json::Value;

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, counts};

#[derive(Default)]
pub(super) struct Jest {
    suites: u64,
    /// The file of the last `FAIL` line.
    file: String,
    block: Option<(String, Message)>,
    failures: Failures,
    broken: u64,
    /// Once all suites ran, failures may be repeated.
    repeated: bool,
    /// The counts of suites and of tests in a summary that is being read, and of all that were closed.
    summary: Option<Vec<(u64, String)>>,
    tests: Option<Vec<(u64, String)>>,
    total: [[u64; 4]; 2],
    closed: bool,
    document: Option<Found>,
    none: bool,
}

impl Runner for Jest {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Test Suites: ") {
            self.end_block();
            (self.summary, self.tests) = (owned(rest), None);
        } else if let Some(rest) = line.strip_prefix("Tests: ") {
            self.tests = owned(rest);
        } else if line.starts_with("Time: ") {
            self.close();
        } else if line == "Summary of all failing tests" {
            self.end_block();
            self.repeated = true;
        } else if let Some((verdict, file)) = suite(line) {
            self.end_block();
            if !self.repeated {
                self.suites += 1;
                self.closed = false;
                self.file = file.to_owned();
                if verdict == "PASS" {
                    self.file.clear();
                }
            }
        } else if let Some(title) = line.strip_prefix("  ● ") {
            self.end_block();
            if !self.repeated && !self.file.is_empty() && title != "Console" {
                self.block = Some((title.to_owned(), Message::default()));
            }
        } else if let Some((_, message)) = &mut self.block {
            message.push(line.strip_prefix("    ").unwrap_or(line));
        } else if line.starts_with("No tests found, exiting with code") {
            self.none = true;
        }
    }

    fn output_ends(&mut self) {
        self.end_block();
    }

    fn document(&mut self, text: &str) {
        let value: Option<Value> =
            serde_json::Deserializer::from_str(text).into_iter().next().and_then(Result::ok);
        if let Some(found) = value.as_ref().and_then(from_json) {
            self.document = Some(found);
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if let Some(found) = self.document.take() {
            return Some(found);
        }
        if self.suites == 0 && !self.closed && !self.none {
            return None;
        }
        let mut doubts = Doubts::default();
        if !self.closed {
            doubts.add("no summary was printed".to_owned());
        }
        let [[_, suites_failed, suites_skipped, suites], [passed, mut failed, skipped, total]] =
            self.total;
        if passed + failed + skipped != total || self.suites != suites - suites_skipped.min(suites)
        {
            doubts.add("it counts other tests than those seen".to_owned());
        }
        failed += self.broken;
        if suites_failed > 0 && failed == 0 {
            failed = suites_failed;
        }
        if self.failures.count > failed {
            doubts.add("more tests failed than the summary counts".to_owned());
        }
        let mut found = Found::new("jest", Closing::Whole.unless(doubts));
        (found.passed, found.failed, found.skipped, found.failures) =
            (passed, failed, skipped, self.failures);
        Some(found)
    }
}

impl Jest {
    fn close(&mut self) {
        let (Some(suites), Some(tests)) = (self.summary.take(), self.tests.take()) else { return };
        for (total, counted) in self.total.iter_mut().zip([sums(&suites), sums(&tests)]) {
            total.iter_mut().zip(counted).for_each(|(total, count)| *total += count);
        }
        (self.closed, self.repeated) = (true, false);
    }

    fn end_block(&mut self) {
        let Some((title, message)) = self.block.take() else { return };
        let failure = if title == "Test suite failed to run" {
            self.broken += 1;
            Failure::new(&self.file, &message)
        } else {
            Failure::new(&title, &message)
        };
        let in_file = failure.file.is_none().then(|| self.file.clone());
        self.failures.push(Failure { file: in_file.or(failure.file), ..failure });
    }
}

/// `PASS ./a.test.js (5.2 s)`.
fn suite(line: &str) -> Option<(&str, &str)> {
    let (verdict, rest) = line.split_once(' ')?;
    if !matches!(verdict, "PASS" | "FAIL") {
        return None;
    }
    let path = rest.trim_start().split(" (").next()?.rsplit("  ").next()?;
    let extension = path.rsplit_once('.')?.1;
    let known = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"]
        .contains(&extension);
    known.then(|| (verdict, path.strip_prefix("./").unwrap_or(path)))
}

fn owned(text: &str) -> Option<Vec<(u64, String)>> {
    let of_total = text.trim().replace(" of ", " ignored, ");
    Some(
        counts(&of_total, ", ")?
            .into_iter()
            .map(|(count, word)| (count, word.to_owned()))
            .collect(),
    )
}

fn sums(counted: &[(u64, String)]) -> [u64; 4] {
    let sum = |words: &[&str]| {
        counted.iter().filter(|(_, word)| words.contains(&word.as_str())).map(|part| part.0).sum()
    };
    [sum(&["passed"]), sum(&["failed"]), sum(&["skipped", "todo", "pending"]), sum(&["total"])]
}

fn from_json(value: &Value) -> Option<Found> {
    let count = |name: &str| value.get(name)?.as_u64();
    let total = count("numTotalTests")?;
    let suites = value.get("testResults")?.as_array()?;
    let mut found = Found::new("jest", Closing::Whole);
    found.passed = count("numPassedTests")?;
    found.failed = count("numFailedTests")?;
    found.skipped = count("numPendingTests")? + count("numTodoTests").unwrap_or(0);
    let mut doubts = Doubts::default();
    if found.passed + found.failed + found.skipped != total {
        doubts.add("the counts do not agree".to_owned());
    }
    for suite in suites {
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let file = text(suite, "name");
        let tests =
            suite.get("assertionResults").and_then(Value::as_array).cloned().unwrap_or_default();
        let failed: Vec<&Value> =
            tests.iter().filter(|test| text(test, "status") == "failed").collect();
        for test in &failed {
            let messages =
                test.get("failureMessages").and_then(Value::as_array).cloned().unwrap_or_default();
            let message: Vec<&str> = messages.iter().filter_map(Value::as_str).collect();
            let message = String::from_utf8_lossy(message.join("\n").as_bytes()).into_owned();
            let failure =
                Failure::new(&text(test, "fullName"), &*crate::input::clean(message.as_bytes()));
            found.failures.push(Failure { file: failure.file.or(Some(file.clone())), ..failure });
        }
        if failed.is_empty() && text(suite, "status") == "failed" {
            found.failed += 1;
            found.failures.push(Failure::new(
                &file,
                &*crate::input::clean(text(suite, "message").as_bytes()),
            ));
        }
    }
    if value.get("success").and_then(Value::as_bool) != Some(found.failed == 0) {
        doubts.add("it says otherwise of its success".to_owned());
    }
    found.closing = Closing::Whole.unless(doubts);
    Some(found)
}
