//! Test results: how many passed, failed and were skipped, which failed and why, and whether that is all.
//!
//! Every [`Runner`] sees every line, and says at the end what it found. `complete` means that every runner that
//! began also printed its closing summary, that its counts agree, and that nothing else speaks against it: the command
//! ended by itself, no filter stood in between, and its exit code is explained. A new runner has to keep that
//! promise: an output that breaks off anywhere is never complete.

mod ctest;
mod go;
mod jest;
mod junit;
mod libtest;
mod location;
mod message;
mod mocha;
mod nextest;
mod node;
mod panic;
mod pytest;
mod tap;
mod unittest;
mod vitest;

use std::io::{self, Read};

use serde::Serialize;

use crate::answer::{Extracted, Hint, NotFound};
use crate::command::{self, Trust};
use crate::input::Input;
use crate::room::{self, Kept};
use location::location;
use message::{Message, Said};

const LONGEST_NAME: usize = 300;

/// To add a runner, add its file and its line here.
const RUNNERS: &[fn() -> Box<dyn Runner>] = &[
    || Box::new(libtest::Libtest::default()),
    || Box::new(nextest::Nextest::default()),
    || Box::new(pytest::Pytest::default()),
    || Box::new(unittest::Unittest::default()),
    || Box::new(go::Go::default()),
    || Box::new(jest::Jest::default()),
    || Box::new(vitest::Vitest::default()),
    || Box::new(mocha::Mocha::default()),
    || Box::new(node::Node::default()),
    || Box::new(tap::Tap::default()),
    || Box::new(junit::Junit::default()),
    || Box::new(ctest::Ctest::default()),
];

/// One test runner's way to print results.
trait Runner {
    fn line(&mut self, line: &str);
    /// No more lines of this output; the next is of the command's other output.
    fn output_ends(&mut self) {}
    /// A text that begins like JSON or XML.
    fn document(&mut self, _text: &str) {}
    /// What was found, if this runner printed anything.
    fn finish(self: Box<Self>) -> Option<Found>;
}

/// A test, or a file of tests, that failed.
#[derive(Debug, Clone, Serialize)]
struct Failure {
    name: String,
    file: Option<String>,
    line: Option<u64>,
    message: String,
}

impl Failure {
    fn new<'a>(name: &str, said: impl Into<Said<'a>>) -> Self {
        let said = said.into();
        let place = location(said.text);
        Failure {
            name: room::cut(name.trim(), LONGEST_NAME),
            line: place.as_ref().map(|place| place.1),
            file: place.map(|place| place.0),
            message: said.shortened(),
        }
    }

    fn at(mut self, place: Option<(String, u64)>) -> Self {
        if let Some((file, line)) = place {
            (self.file, self.line) = (Some(file), Some(line));
        }
        self
    }
}

/// The failures of a runner: the first ones, and how many more there are.
#[derive(Debug, Default)]
struct Failures {
    first: Vec<Failure>,
    count: u64,
}

impl Failures {
    /// More than any answer has room for.
    const MOST: usize = 2000;

    fn push(&mut self, failure: Failure) {
        self.count += 1;
        if self.first.len() < Self::MOST {
            self.first.push(failure);
        }
    }
}

/// Whether a runner told how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Closing {
    /// It did not, or what it told does not add up: why.
    Open(String),
    /// Each part that was seen did, but nothing tells how many parts there are: the exit code has to.
    Parts,
    /// It printed a summary of everything.
    Whole,
}

impl Closing {
    /// `Open` with the reason there is, or `self`.
    fn unless(self, doubts: Doubts) -> Self {
        doubts.0.map_or(self, Closing::Open)
    }
}

/// Why a runner's words are not all of it: the first reason.
#[derive(Debug, Default)]
struct Doubts(Option<String>);

impl Doubts {
    fn add(&mut self, reason: String) {
        self.0.get_or_insert(reason);
    }

    fn add_first(&mut self, reason: String) {
        self.0 = Some(reason);
    }
}

/// What a runner printed.
#[derive(Debug)]
struct Found {
    runner: &'static str,
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Failures,
    closing: Closing,
    /// Runners that print lines like these: if one of them was found, these are its lines.
    alike: &'static [&'static str],
    note: Option<String>,
}

impl Found {
    fn new(runner: &'static str, closing: Closing) -> Self {
        let failures = Failures::default();
        Found {
            runner,
            passed: 0,
            failed: 0,
            skipped: 0,
            failures,
            closing,
            alike: &[],
            note: None,
        }
    }
}

#[derive(Serialize)]
struct Results {
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<Failure>,
    complete: bool,
}

pub(crate) fn extract<R: Read>(
    outputs: impl IntoIterator<Item = R>,
    hint: &Hint<'_>,
    room: usize,
) -> io::Result<Result<Extracted, NotFound>> {
    let mut runners: Vec<Box<dyn Runner>> = RUNNERS.iter().map(|new| new()).collect();
    let mut current = 0;
    let input = Input::read(outputs, |output, line| {
        for runner in &mut runners {
            if output != current {
                runner.output_ends();
            }
            runner.line(line);
        }
        current = output;
    })?;
    for runner in &mut runners {
        runner.output_ends();
        for document in &input.documents {
            runner.document(document);
        }
    }
    let mut found: Vec<Found> = runners.into_iter().filter_map(|runner| runner.finish()).collect();
    let names: Vec<_> = found.iter().map(|found| found.runner).collect();
    found.retain(|found| !found.alike.iter().any(|name| names.contains(name)));
    if found.is_empty() {
        let message = "no known test runner printed anything here".to_owned();
        return Ok(Err(NotFound { message, tail: input.tail }));
    }
    Ok(Ok(join(found, &input, hint, room)))
}

fn join(found: Vec<Found>, input: &Input, hint: &Hint<'_>, room: usize) -> Extracted {
    let mut results =
        Results { passed: 0, failed: 0, skipped: 0, failures: Vec::new(), complete: false };
    let mut doubts = Vec::new();
    let mut notes = Vec::new();
    let trust = hint.command.map_or(Trust::Whole, command::trust);
    let mut kept = Kept::new(room.saturating_sub(room::size(&results) + 40));
    let mut explained = false;
    for part in found {
        results.passed += part.passed;
        results.failed += part.failed.max(part.failures.count);
        results.skipped += part.skipped;
        let (told, counted) = (part.failures.count, part.failed);
        match part.closing {
            Closing::Open(reason) => doubts.push(format!("{}: {reason}", part.runner)),
            Closing::Parts if trust < Trust::Whole => {
                doubts
                    .push(format!("{}: nothing printed tells whether all of it ran", part.runner));
            }
            Closing::Parts | Closing::Whole if told > counted => {
                doubts.push(format!(
                    "{}: {told} failures are told, and it counts {counted}",
                    part.runner
                ));
            }
            Closing::Parts | Closing::Whole if told < counted => {
                doubts.push(format!("{}: some failures are not listed", part.runner));
            }
            Closing::Parts | Closing::Whole => {}
        }
        notes.extend(part.note.map(|note| format!("{}: {note}", part.runner)));
        kept.omitted += part.failures.count - part.failures.first.len() as u64;
        for failure in part.failures.first {
            explained |= failure.line.is_some() || !failure.message.is_empty();
            kept.push(failure);
        }
    }
    if trust == Trust::OutputOnly {
        notes.push("the exit code may not be that of the tests".to_owned());
    }
    let mut limits = Vec::new();
    if trust == Trust::Filtered {
        limits.push(command::FILTERED.to_owned());
    }
    if input.cut {
        limits.push("a line of the output was too long to be read".to_owned());
    }
    if !hint.ended {
        doubts.push(
            "the command did not end by itself, or its output is cut, so tests may be missing"
                .to_owned(),
        );
    }
    let certain = doubts.is_empty() && limits.is_empty();
    doubts.extend(ending(&results, hint, certain));
    doubts.append(&mut limits);
    results.complete = doubts.is_empty();
    let enough = results.complete || explained && hint.ended;
    let tail = (!enough).then(|| input.tail.clone());
    doubts.append(&mut notes);
    doubts.dedup();
    results.failures = kept.items;
    Extracted {
        value: serde_json::to_value(results).unwrap_or_default(),
        note: (!doubts.is_empty()).then(|| doubts.join("; ")),
        tail,
        omitted: kept.omitted,
    }
}

/// What speaks against the results in how the command ended. `certain`: nothing else does.
fn ending(results: &Results, hint: &Hint<'_>, certain: bool) -> Option<String> {
    let code = hint.exit_code.filter(|_| hint.ended);
    if results.passed + results.failed + results.skipped == 0 {
        let what = if certain { "no test ran" } else { "no test that ran was seen" };
        return Some(match code {
            Some(code) if code != 0 => format!("{what} (exit code {code})"),
            _ => what.to_owned(),
        });
    }
    if results.failed > 0 || !hint.ended {
        return None;
    }
    match code {
        Some(0) => None,
        Some(code) => Some(format!("the exit code is {code}, but no failed test was found")),
        None => Some("the exit code is not known".to_owned()),
    }
}

/// The number that a text begins with, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Counts such as `1 failed, 2 passed`, separated by `separator`. None if any part is something else.
fn counts<'a>(text: &'a str, separator: &str) -> Option<Vec<(u64, &'a str)>> {
    let part = |part: &'a str| {
        let (count, word) = number(part.trim())?;
        Some((count, word.strip_prefix(' ')?))
    };
    text.split(separator).map(part).collect()
}
