//! pytest, with any amount of detail it can be asked for, except `-qq`, which leaves the summary out.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, Said, counts, number};

#[derive(Default)]
pub(super) struct Pytest {
    seen: bool,
    open: bool,
    section: Section,
    collected: Option<[u64; 4]>,
    /// Letters of progress lines, which is all that `-q` prints of passed tests.
    letters: u64,
    /// Lines of `-v`, and letters: passed, failed, skipped.
    shown: [u64; 3],
    quiet_summaries: u64,
    total: [u64; 3],
    details: Vec<Detail>,
    /// From the list at the end: name, message.
    listed: Vec<(String, String)>,
    failures: Failures,
    doubts: Doubts,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum Section {
    #[default]
    Progress,
    Failures,
    Listed,
    Other,
}

#[derive(Default)]
struct Detail {
    title: String,
    message: Message,
    place: Option<(String, u64)>,
}

impl Runner for Pytest {
    fn line(&mut self, line: &str) {
        if let Some(title) = framed(line, '=') {
            if title == "test session starts" {
                self.starts();
            } else if let Some(counted) = summary(title) {
                if !self.open {
                    self.doubts.add("a summary without the start of its session".to_owned());
                }
                self.seen = true;
                self.ends(&counted);
            } else {
                self.section = match title {
                    "FAILURES" | "ERRORS" => Section::Failures,
                    "short test summary info" => Section::Listed,
                    _ => Section::Other,
                };
                // With `-q`, a run that stops early prints no percentage.
                self.seen |= self.section == Section::Listed;
            }
            return;
        }
        // Without the frame, this may be anybody's words: only `-q` prints it so, and not among failures.
        if !self.open
            && self.section != Section::Failures
            && let Some(counted) = summary(line)
        {
            if self.seen {
                self.quiet_summaries += 1;
                self.ends(&counted);
            }
            return;
        }
        match self.section {
            Section::Progress => self.progress(line),
            Section::Failures => self.detail(line),
            Section::Listed => self.list(line),
            Section::Other => {}
        }
        if self.seen && framed(line, '!').is_some() {
            self.doubts.add("it stopped before all tests ran".to_owned());
        }
        if line.starts_with("INTERNALERROR> ") {
            (self.seen, self.open) = (true, true);
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if !self.seen {
            return None;
        }
        self.take_failures();
        if self.open || self.letters > 0 {
            self.doubts.add_first("no summary was printed".to_owned());
            self.total.iter_mut().zip(self.shown).for_each(|(total, shown)| *total += shown);
        }
        if self.quiet_summaries > 1 {
            self.doubts.add("several summaries were printed".to_owned());
        }
        let mut found = Found::new("pytest", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Pytest {
    fn starts(&mut self) {
        if self.open {
            self.doubts.add("a session has no summary".to_owned());
        }
        (self.seen, self.open, self.section) = (true, true, Section::Progress);
        (self.collected, self.letters, self.shown) = (None, 0, [0; 3]);
    }

    fn progress(&mut self, line: &str) {
        if let Some(collected) = collected(line) {
            self.collected = Some(collected);
        } else if let Some((letters, percent)) = line.split_once(' ')
            && !letters.is_empty()
            && letters.chars().all(|c| ".FEsxXR".contains(c))
            && percent.trim().starts_with('[')
            && percent.ends_with("%]")
        {
            self.seen = true;
            self.letters += letters.len() as u64;
            letters.chars().for_each(|letter| self.show(letter));
        } else if let Some((_, rest)) = line.split_once("::") {
            if let Some(word) = rest.split_whitespace().skip(1).find(|word| is_verdict(word)) {
                self.show(if word == "PASSED" { '.' } else { word.chars().next().unwrap_or('s') });
            }
        } else if let Some((_, letters)) = line.split_once(".py ")
            && let Some(letters) = letters.split_whitespace().next()
            && letters.chars().all(|c| ".FEsxXR".contains(c))
        {
            letters.chars().for_each(|letter| self.show(letter));
        }
    }

    fn show(&mut self, letter: char) {
        self.shown[match letter {
            '.' | 'X' => 0,
            'F' | 'E' => 1,
            _ => 2,
        }] += 1;
    }

    fn detail(&mut self, line: &str) {
        if let Some(title) = framed(line, '_') {
            if self.details.len() < Failures::MOST {
                self.details.push(Detail { title: title.to_owned(), ..Detail::default() });
            }
            return;
        }
        let Some(detail) = self.details.last_mut() else { return };
        if let Some(message) = line.strip_prefix("E  ") {
            detail
                .message
                .push(message.strip_prefix(' ').unwrap_or(message).trim_start_matches("  "));
        } else if let Some(place) = super::location(line)
            && !line.starts_with([' ', '>'])
        {
            detail.place = Some(place);
        }
    }

    fn list(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))
        else {
            return;
        };
        let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        if self.listed.len() < Failures::MOST {
            self.listed.push((name.to_owned(), message.to_owned()));
        }
    }

    fn ends(&mut self, counted: &[(u64, &str)]) {
        let (mut passed, mut failed, mut skipped, mut errors) = (0, 0, 0, 0);
        for &(count, word) in counted {
            match word {
                "passed" | "xpassed" => passed += count,
                "failed" => failed += count,
                "skipped" | "xfailed" => skipped += count,
                "error" | "errors" => errors += count,
                _ => {}
            }
        }
        let ran = passed + failed + skipped;
        let agrees = match self.collected {
            // An error in a teardown comes with a result, one in a setup comes without.
            Some([items, _, deselected, modules]) => {
                let items = items - deselected.min(items);
                ran - modules.min(ran) <= items && items <= ran + errors
            }
            None => self.letters >= ran && self.letters <= ran + errors,
        };
        if !agrees {
            self.doubts.add("it counts other tests than those seen".to_owned());
        }
        self.total[0] += passed;
        self.total[1] += failed + errors;
        self.total[2] += skipped;
        let before = self.failures.count;
        self.take_failures();
        if self.failures.count - before > failed + errors {
            self.doubts.add("more tests failed than the summary counts".to_owned());
        }
        (self.open, self.section) = (false, Section::Progress);
        (self.collected, self.letters, self.shown) = (None, 0, [0; 3]);
    }

    fn take_failures(&mut self) {
        let mut details = std::mem::take(&mut self.details);
        for (name, message) in std::mem::take(&mut self.listed) {
            let detail = details
                .iter()
                .position(|detail| is_about(&detail.title, &name))
                .map(|at| details.remove(at));
            let detail = detail.unwrap_or_default();
            let said = if detail.message.is_empty() {
                Said::from(message.as_str())
            } else {
                Said::from(&detail.message)
            };
            self.failures.push(Failure::new(&name, said).at(detail.place));
        }
        for detail in details {
            self.failures.push(Failure::new(&detail.title, &detail.message).at(detail.place));
        }
    }
}

fn is_verdict(word: &str) -> bool {
    ["PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS"].contains(&word)
}

/// Whether a title such as `ERROR at setup of TestA.test_b` is about `tests/test_a.py::TestA::test_b`.
fn is_about(title: &str, name: &str) -> bool {
    if let Some(file) = title.strip_prefix("ERROR collecting ") {
        return file == name;
    }
    let title = title
        .strip_prefix("ERROR at ")
        .and_then(|rest| Some(rest.split_once(" of ")?.1))
        .unwrap_or(title);
    name.split_once("::").is_some_and(|(_, test)| test.replace("::", ".") == title)
}

/// The words between two runs of `frame`, as in `=== FAILURES ===`.
fn framed(line: &str, frame: char) -> Option<&str> {
    let inner = line.strip_prefix(frame)?.trim_start_matches(frame).strip_prefix(' ')?;
    let inner = inner.strip_suffix(frame)?.trim_end_matches(frame).strip_suffix(' ')?;
    (!inner.is_empty()).then_some(inner)
}

/// `2 failed, 1 passed in 0.06s`.
fn summary(text: &str) -> Option<Vec<(u64, &str)>> {
    let (counted, time) = text.rsplit_once(" in ")?;
    let (_, rest) = number(time)?;
    let seconds = rest.strip_prefix('.')?.split_once('s')?.0;
    if !seconds.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    if counted == "no tests ran" {
        return Some(Vec::new());
    }
    counts(counted, ", ")
}

/// Items, errors, deselected items and skipped modules of `collected 6 items / 1 error / 2 deselected`.
fn collected(line: &str) -> Option<[u64; 4]> {
    let line = line.strip_prefix("collecting ... ").unwrap_or(line);
    if let Some((_, items)) = line.split_once(" workers [") {
        return Some([number(items)?.0, 0, 0, 0]);
    }
    let mut all = [0; 4];
    for (count, word) in counts(line.strip_prefix("collected ")?.trim_end(), " / ")? {
        match word {
            "item" | "items" => all[0] = count,
            "error" | "errors" => all[1] = count,
            "deselected" => all[2] = count,
            "skipped" => all[3] = count,
            _ => {}
        }
    }
    Some(all)
}
