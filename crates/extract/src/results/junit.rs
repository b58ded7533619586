//! JUnit's XML, as many runners write it.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner};
use crate::xml::{Event, Events, attribute};

#[derive(Default)]
pub(super) struct Junit {
    seen: bool,
    cut: bool,
    total: [u64; 3],
    failures: Failures,
    doubts: Doubts,
}

/// A test while it is read.
struct Case {
    name: String,
    place: Option<(String, u64)>,
    verdict: Verdict,
    message: Message,
}

#[derive(PartialEq, Clone, Copy)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Runner for Junit {
    fn line(&mut self, line: &str) {
        let line = line.trim_start();
        self.cut |= line.starts_with("<testsuite")
            || line.starts_with("<?xml") && line.contains("<testsuite");
    }

    fn document(&mut self, text: &str) {
        if text.contains("<testsuite") {
            (self.seen, self.cut) = (true, false);
            self.read(text);
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if !self.seen && !self.cut {
            return None;
        }
        if self.cut {
            self.doubts.add("the report is too large to be read".to_owned());
        }
        let mut found = Found::new("JUnit report", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Junit {
    fn read(&mut self, text: &str) {
        let mut root: Option<&str> = None;
        let mut closed = true;
        let mut case: Option<Case> = None;
        let mut inside = false;
        // Of the outermost element that has counts: tests, and failures with errors.
        let mut declared: Option<(u64, u64, usize)> = None;
        let mut depth = 0_usize;
        let mut sums = (0, 0);
        for event in Events::new(text) {
            match event {
                Event::Start { name: "testsuites" | "testsuite", attributes, empty } => {
                    let name = if attributes.is_empty() && root.is_none() {
                        "testsuites"
                    } else {
                        "testsuite"
                    };
                    root.get_or_insert(name);
                    closed = false;
                    if let Some(counts) = declared_counts(attributes)
                        && declared.is_none()
                    {
                        declared = Some((counts.0, counts.1, depth));
                        sums = (sums.0 + counts.0, sums.1 + counts.1);
                    }
                    if empty {
                        closed = depth == 0;
                        declared = declared.filter(|declared| declared.2 != depth);
                    } else {
                        depth += 1;
                    }
                }
                Event::End("testsuites" | "testsuite") => {
                    depth = depth.saturating_sub(1);
                    declared = declared.filter(|declared| declared.2 != depth);
                    closed = depth == 0;
                }
                Event::Start { name: "testcase", attributes, empty } => {
                    let started = Case::new(attributes);
                    if empty {
                        self.end(started);
                    } else {
                        case = Some(started);
                    }
                }
                Event::End("testcase") => {
                    if let Some(case) = case.take() {
                        self.end(case);
                    }
                }
                Event::Start {
                    name: what @ ("failure" | "error" | "skipped"),
                    attributes,
                    empty,
                } => {
                    if let Some(case) = &mut case {
                        case.verdict =
                            if what == "skipped" { Verdict::Skipped } else { Verdict::Failed };
                        if let Some(message) = attribute(attributes, "message") {
                            case.message.push(&message);
                        }
                        inside = !empty && what != "skipped";
                    }
                }
                Event::End("failure" | "error") => inside = false,
                Event::Text(text) if inside => {
                    if let Some(case) = &mut case {
                        text.lines().for_each(|line| case.message.push(line));
                    }
                }
                _ => {}
            }
        }
        if !closed || root.is_none() || case.is_some() {
            self.doubts.add("the report is cut".to_owned());
        }
        let [passed, failed, skipped] = self.total;
        if sums.0 > 0 && (sums.0 != passed + failed + skipped || sums.1 != failed) {
            self.doubts.add("the report's counts do not agree with its tests".to_owned());
        }
    }

    fn end(&mut self, case: Case) {
        self.total[match case.verdict {
            Verdict::Passed => 0,
            Verdict::Failed => 1,
            Verdict::Skipped => 2,
        }] += 1;
        if case.verdict == Verdict::Failed {
            self.failures.push(Failure::new(&case.name, &case.message).at(case.place));
        }
    }
}

impl Case {
    fn new(attributes: &str) -> Self {
        let name = attribute(attributes, "name").unwrap_or_default();
        let class =
            attribute(attributes, "classname").filter(|class| !class.is_empty() && class != "test");
        let line = attribute(attributes, "line").and_then(|line| line.parse().ok());
        Case {
            name: class.map(|class| format!("{class}.{name}")).unwrap_or(name),
            place: attribute(attributes, "file").zip(line),
            verdict: Verdict::Passed,
            message: Message::default(),
        }
    }
}

fn declared_counts(attributes: &str) -> Option<(u64, u64)> {
    let count =
        |name: &str| attribute(attributes, name).and_then(|count| count.parse::<u64>().ok());
    Some((count("tests")?, count("failures").unwrap_or(0) + count("errors").unwrap_or(0)))
}
