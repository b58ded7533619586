//! `cargo test`: Rust's own test harness, once for each binary and for doc tests.
//!
//! Cargo says on standard error which binaries it runs, and the harness prints on standard output. Nothing tells how
//! many there will be, so each announced binary needs its block, and each block its result.

use super::panic::{Output, panicked};
use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, Said, number};

#[derive(Default)]
pub(super) struct Libtest {
    total: [u64; 3],
    failures: Failures,
    block: Option<Block>,
    blocks: u64,
    announced: u64,
    /// Whether a block had more than one test.
    several: bool,
    doubts: Doubts,
    compiling: Compiling,
    /// The target that cargo said failed last.
    target: Option<String>,
    /// Whether cargo may have stopped there.
    stopped: bool,
    crashed: Failures,
    /// What tests said when they panicked, outside of a block's failures: with `--nocapture`.
    panics: Vec<(String, Message)>,
    panicking: bool,
}

/// The tests of one binary.
#[derive(Default)]
struct Block {
    expected: u64,
    started: u64,
    passed: u64,
    failed: u64,
    failures: Vec<Failure>,
    /// The failed test whose output is being printed.
    detail: Option<(String, Output)>,
}

impl Runner for Libtest {
    fn line(&mut self, line: &str) {
        self.compiling.line(line);
        self.panic(line);
        if let Some(block) = &mut self.block {
            if block.detail(line) {
                return;
            }
            if let Some(name) =
                line.strip_prefix("test ").and_then(|rest| Some(rest.split_once(" ... ")?.0))
            {
                block.started += 1;
                if line.ends_with(" ... FAILED") || line.contains(" ... FAILED ") {
                    block.fail(name);
                }
                block.passed += u64::from(line.ends_with(" ... ok"));
                return;
            }
            if let Some(name) = line.strip_suffix(" --- FAILED") {
                block.fail(name);
                return;
            }
        }
        if let Some(expected) = header(line) {
            if self.block.is_some() {
                self.end_block("a block of tests has no result");
            }
            self.several |= expected != 1;
            self.block = Some(Block { expected, ..Block::default() });
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            self.result(rest);
        } else {
            self.cargo(line);
        }
    }

    fn output_ends(&mut self) {
        if self.block.is_some() {
            self.end_block("a block of tests has no result");
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if self.blocks == 0
            && self.announced == 0
            && self.compiling.failures.count == 0
            && self.crashed.count == 0
        {
            return None;
        }
        if self.announced > self.blocks {
            let silent = self.announced - self.blocks;
            self.doubts.add(format!(
                "{silent} of {} test binaries printed no result in a known form",
                self.announced
            ));
        }
        if self.compiling.failures.count > 0 {
            self.doubts.add("not everything compiled, so tests did not run".to_owned());
        }
        if self.stopped {
            self.doubts.add(
                "cargo stops at the first test binary with a failure; `--no-fail-fast` runs all"
                    .to_owned(),
            );
        }
        let mut found = Found::new("cargo test", Closing::Parts.unless(self.doubts));
        // With `--no-capture`, nextest lets each test's own block through.
        if self.announced == 0 && !self.several && self.compiling.failures.count == 0 {
            found.alike = &["nextest"];
        }
        [found.passed, found.failed, found.skipped] = self.total;
        found.failed += self.compiling.failures.count + self.crashed.count;
        found.failures = self.failures;
        for failure in found.failures.first.iter_mut().filter(|failure| failure.message.is_empty())
        {
            if let Some((name, message)) =
                self.panics.iter().find(|(name, _)| *name == failure.name)
            {
                *failure = panicked(name, message, 0);
            }
        }
        for more in [self.compiling.failures, self.crashed] {
            more.first.into_iter().for_each(|failure| found.failures.push(failure));
        }
        Some(found)
    }
}

impl Libtest {
    fn result(&mut self, rest: &str) {
        let Some((verdict, counted)) = rest.split_once(". ") else { return };
        let counted: Vec<u64> =
            counted.split("; ").map_while(|part| Some(number(part)?.0)).collect();
        let [passed, failed, ignored, measured, ..] = counted[..] else { return };
        let Some(block) = &self.block else {
            self.doubts.add("a result without its tests".to_owned());
            return;
        };
        let agrees = passed + failed + ignored + measured == block.expected
            && (block.started == 0 || block.started == block.expected)
            && block.failed == failed
            && (verdict == "ok") == (failed == 0);
        if !agrees {
            self.doubts.add("a result does not agree with its tests".to_owned());
            return;
        }
        self.total[0] += passed + measured;
        self.total[1] += failed;
        self.total[2] += ignored;
        self.blocks += 1;
        let block = self.block.take().unwrap_or_default();
        block.failures.into_iter().for_each(|failure| self.failures.push(failure));
    }

    /// Takes what a block without a result had.
    fn end_block(&mut self, why: &str) {
        let Some(mut block) = self.block.take() else { return };
        block.end_detail();
        self.doubts.add(why.to_owned());
        self.blocks += 1;
        self.total[0] += block.passed;
        self.total[1] += block.failed;
        block.failures.into_iter().for_each(|failure| self.failures.push(failure));
    }

    fn panic(&mut self, line: &str) {
        let thread = line.strip_prefix("thread '").filter(|_| line.contains(" panicked at "));
        if let Some((name, _)) = thread.and_then(|rest| rest.split_once('\'')) {
            if self.panics.len() < Failures::MOST {
                self.panics.push((name.to_owned(), Message::from(line)));
            }
            self.panicking = true;
        } else if line.is_empty()
            || line.starts_with("stack backtrace:")
            || line.starts_with("note: ")
        {
            self.panicking = false;
        } else if self.panicking
            && let Some((_, message)) = self.panics.last_mut()
        {
            message.push(line);
        }
    }

    fn cargo(&mut self, line: &str) {
        let trimmed = line.trim_start();
        if line.starts_with("     Running ") && !line.contains('`') && line.ends_with(')')
            || trimmed.strip_prefix("Doc-tests ").is_some_and(|_| line.starts_with("   "))
        {
            self.announced += 1;
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass `") {
            self.target = Some(rest.trim_end_matches('`').to_owned());
            self.stopped = true;
        } else if line.starts_with("error: ")
            && (line.ends_with(" target failed:") || line.ends_with(" targets failed:"))
        {
            self.stopped = false;
        } else if trimmed.starts_with("process didn't exit successfully: `")
            && let Some(target) = self.target.take()
        {
            self.crashed.push(Failure::new(&target, trimmed));
        }
    }
}

impl Block {
    fn fail(&mut self, name: &str) {
        self.failed += 1;
        if self.failures.len() < Failures::MOST {
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            self.failures.push(Failure::new(name, ""));
        }
    }

    /// Whether the line is of a failed test's own output, which may look like anything.
    fn detail(&mut self, line: &str) -> bool {
        if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.end_detail();
            self.detail = Some((name.to_owned(), Output::default()));
            return true;
        }
        if line == "failures:" {
            self.end_detail();
        } else if let Some((_, output)) = &mut self.detail {
            output.push(line);
            return true;
        }
        false
    }

    fn end_detail(&mut self) {
        let Some((name, output)) = self.detail.take() else { return };
        let failure = output.failure_with_count(&name).at(doc_test(&name));
        match self.failures.iter().position(|known| known.name == failure.name) {
            Some(known) => self.failures[known] = failure,
            None if self.failures.len() < Failures::MOST => self.failures.push(failure),
            None => {}
        }
    }
}

/// The place of a doc test, which is in its name: `src/lib.rs - one (line 4)`.
fn doc_test(name: &str) -> Option<(String, u64)> {
    let (file, rest) = name.split_once(" - ")?;
    let line = number(rest.rsplit_once("(line ")?.1)?.0;
    Some((file.to_owned(), line))
}

fn header(line: &str) -> Option<u64> {
    let (expected, rest) = number(line.strip_prefix("running ")?)?;
    matches!(rest, " tests" | " test").then_some(expected)
}

/// Crates that did not compile, each with its first error.
#[derive(Default)]
pub(super) struct Compiling {
    pub failures: Failures,
    error: Option<Message>,
    place_follows: bool,
}

impl Compiling {
    pub fn line(&mut self, line: &str) {
        if self.place_follows
            && let Some(place) = line.trim_start().strip_prefix("--> ")
            && let Some(error) = &mut self.error
        {
            error.push(&format!("at {place}"));
        }
        self.place_follows = false;
        if let Some(rest) = line.strip_prefix("error: could not compile `") {
            let rest = rest.split(" due to ").next().unwrap_or(rest);
            let name = rest.replacen('`', "", 1);
            let error = self.error.take();
            self.failures.push(Failure::new(
                &name,
                error.as_ref().map_or(Said::from("did not compile"), Said::from),
            ));
        } else if self.error.is_none()
            && (line.starts_with("error[E") || line.starts_with("error: "))
        {
            self.error = Some(Message::from(line));
            self.place_follows = true;
        }
    }
}
