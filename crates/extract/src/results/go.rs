//! `go test`, as text with or without `-v`, and `-json`.
//!
//! Each package ends with a line of its own; nothing tells how many packages there will be. Without `-v`, only failed
//! tests are named, so that a package that passed counts as one, and nothing is known of those that passed in one that
//! failed.

mod words;

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner};
use words::Words;

/// Of one package; of more than these, some may be told without their words.
const MOST_TESTS: usize = 5_000;

const UNNAMED: &str = "packages that passed without naming their tests count as one test each";
const SILENT: &str =
    "in packages that failed, tests that passed or were skipped are named and counted only with -v";

#[derive(Default)]
pub(super) struct Go {
    packages: HashMap<String, Package>,
    /// What is printed as text is of the package whose line comes next.
    text: Package,
    ended: u64,
    unnamed: u64,
    /// Whether some tests may have passed or been skipped without a word.
    silent: bool,
    total: [u64; 3],
    failed: Vec<(String, Failure)>,
    failures: Failures,
    /// Packages that did not build: the compiler's words, by package.
    build: HashMap<String, Message>,
    building: Option<String>,
    doubts: Doubts,
}

/// The tests of one package.
#[derive(Default)]
struct Package {
    current: Option<String>,
    said: HashMap<String, Words>,
    running: HashSet<String>,
    failed: Vec<String>,
    counts: [u64; 2],
    /// Whether every test is named.
    names_all: bool,
    /// Lines of no test.
    rest: Words,
    began: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    import_path: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
}

impl Runner for Go {
    fn line(&mut self, line: &str) {
        if line.starts_with('{') && line.contains("\"Action\":") {
            if let Ok(event) = serde_json::from_str::<Event>(line) {
                self.event(event);
            } else {
                self.doubts.add("an event is cut".to_owned());
            }
            return;
        }
        if let Some(package) = line.strip_prefix("# ") {
            self.building = package.split_whitespace().next().map(str::to_owned);
            return;
        }
        if let Some(package) = &self.building
            && line.contains(".go:")
        {
            self.build.entry(package.clone()).or_default().push(line);
            return;
        }
        self.building = None;
        if let Some((verdict, rest)) = package_line(line) {
            let package = std::mem::take(&mut self.text);
            let name = rest.split(['\t', ' ']).next().unwrap_or(rest);
            self.end(name, package, verdict, rest);
        } else {
            self.text.line(line);
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        let open = self.text.began || !self.packages.is_empty();
        if self.ended == 0 && !open {
            return None;
        }
        if open {
            self.doubts.add_first("a package began and did not end".to_owned());
        }
        let left: Vec<(String, Package)> = self
            .packages
            .drain()
            .chain([(String::new(), std::mem::take(&mut self.text))])
            .collect();
        for (name, package) in left {
            self.take(&name, package);
        }
        for (package, mut failure) in self.failed.drain(..) {
            if let Some(said) = self.build.get(&package).filter(|_| failure.name == package) {
                failure = Failure::new(&failure.name, said);
            }
            self.failures.push(failure);
        }
        let mut found = Found::new("go test", Closing::Parts.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        let notes = [(self.unnamed > 0).then_some(UNNAMED), self.silent.then_some(SILENT)];
        let notes: Vec<_> = notes.into_iter().flatten().collect();
        found.note = (!notes.is_empty()).then(|| notes.join("; "));
        Some(found)
    }
}

impl Go {
    fn event(&mut self, event: Event) {
        if event.action == "build-output" {
            let package = event.import_path.split(' ').next().unwrap_or_default().to_owned();
            self.build.entry(package).or_default().push(&event.output);
            return;
        }
        if event.package.is_empty() {
            return;
        }
        let package = self.packages.entry(event.package.clone()).or_default();
        package.began = true;
        match (event.action.as_str(), event.test.as_str()) {
            ("output", "") => package.rest.push(&event.output),
            ("output", test) => package.say(test, &event.output),
            ("run", test) if !test.is_empty() => package.run(test),
            ("pass" | "fail" | "skip", "") => {
                let package = self.packages.remove(&event.package).unwrap_or_default();
                self.end(
                    &event.package,
                    package,
                    if event.action == "fail" { "FAIL" } else { "ok" },
                    "",
                );
            }
            (verdict @ ("pass" | "fail" | "skip"), test) => {
                package.result(&verdict.to_uppercase(), test)
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str, package: Package, verdict: &str, rest: &str) {
        self.ended += 1;
        let no_tests =
            verdict == "?" || rest.contains("[no test") || package.rest.all.contains("[no test");
        if verdict != "FAIL" && !package.failed.is_empty() {
            self.doubts.add("a package passed although a test of it failed".to_owned());
        }
        if verdict == "ok" && !package.running.is_empty() {
            self.doubts.add("a package passed although tests of it did not end".to_owned());
        }
        if verdict == "ok" && package.counts == [0, 0] && !no_tests {
            self.total[0] += 1;
            self.unnamed += 1;
        }
        self.silent |= verdict == "FAIL" && !package.failed.is_empty() && !package.names_all;
        if verdict == "FAIL" && package.failed.is_empty() {
            self.total[1] += 1;
            self.doubts.add("a package failed before all of its tests ran".to_owned());
            let stuck = package.running.iter().filter_map(|test| package.said.get(test));
            let said = || [&package.rest].into_iter().chain(stuck.clone());
            let place = said().find_map(Words::place);
            let reasons: Vec<_> = said().filter_map(Words::reason).collect();
            let said = match reasons.is_empty() {
                true => said().map(Words::message).collect(),
                false => reasons,
            };
            let mut said = said.join("\n");
            if said.trim().is_empty() {
                said = rest.split_once(['\t', ' ']).map_or("", |rest| rest.1).to_owned();
            }
            self.fail(name, Failure::new(name, said.as_str()).at(place));
        }
        self.take(name, package);
    }

    fn take(&mut self, name: &str, package: Package) {
        self.total[0] += package.counts[0];
        self.total[2] += package.counts[1];
        for test in &package.failed {
            // A test fails if one of its subtests does, which is told by the subtest.
            let inner = format!("{test}/");
            if package.failed.iter().any(|other| other.starts_with(&inner)) {
                continue;
            }
            self.total[1] += 1;
            let full = if name.is_empty() { test.clone() } else { format!("{name}.{test}") };
            let said = package.said.get(test).cloned().unwrap_or_default();
            let failure = Failure::new(&full, said.message().as_str()).at(said.place());
            self.fail(name, failure);
        }
    }

    fn fail(&mut self, package: &str, failure: Failure) {
        if self.failed.len() < Failures::MOST {
            self.failed.push((package.to_owned(), failure));
        } else {
            self.failures.count += 1;
        }
    }
}

impl Package {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim_start();
        if let Some(rest) = line.strip_prefix("=== ") {
            let Some((what, test)) = rest.split_once(' ') else { return };
            let test = test.trim();
            match what {
                "RUN" => self.run(test),
                "CONT" | "NAME" => self.current = Some(test.to_owned()),
                _ => {}
            }
        } else if let Some((verdict, test)) = result_line(trimmed) {
            self.began = true;
            self.result(verdict, test);
            self.current = (verdict == "FAIL").then(|| test.to_owned());
        } else if line != "PASS" && line != "FAIL" {
            match self.current.clone() {
                Some(test) => self.say(&test, line),
                None => self.rest.push(line),
            }
        }
    }

    fn run(&mut self, test: &str) {
        (self.began, self.names_all) = (true, true);
        self.current = Some(test.to_owned());
        if self.running.len() < MOST_TESTS {
            self.running.insert(test.to_owned());
        }
    }

    fn say(&mut self, test: &str, line: &str) {
        let line = line.trim_end();
        if line.starts_with("=== ") || result_line(line.trim_start()).is_some() {
            return;
        }
        if self.said.len() < MOST_TESTS || self.said.contains_key(test) {
            self.said.entry(test.to_owned()).or_default().push(line);
        }
    }

    fn result(&mut self, verdict: &str, test: &str) {
        self.running.remove(test);
        match verdict {
            "FAIL" if self.failed.len() < MOST_TESTS => self.failed.push(test.to_owned()),
            "PASS" => self.counts[0] += 1,
            "SKIP" => self.counts[1] += 1,
            _ => {}
        }
        if verdict != "FAIL" {
            self.said.remove(test);
        }
    }
}

/// `--- FAIL: TestWrong (0.00s)`.
fn result_line(line: &str) -> Option<(&str, &str)> {
    let (verdict, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let (test, time) = rest.rsplit_once(" (")?;
    (matches!(verdict, "PASS" | "FAIL" | "SKIP") && time.ends_with("s)")).then_some((verdict, test))
}

/// The last line of a package: its verdict, its name and what follows.
fn package_line(line: &str) -> Option<(&str, &str)> {
    let (verdict, rest) = line.split_once('\t')?;
    (matches!(verdict, "ok  " | "FAIL" | "?   ") && !rest.starts_with([' ', '\t']))
        .then(|| (verdict.trim_end(), rest))
}
