//! The Test Anything Protocol, with what Node and Perl add to it. Only top-level points count, unless Node's own
//! counters follow; a failed point inside a subtest is told in place of the subtest, unless Node names another reason.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, Said, number};

#[derive(Default)]
pub(super) struct Tap {
    seen: bool,
    plan: Option<u64>,
    points: u64,
    /// What ran in this document: passed, failed, skipped.
    counts: [u64; 3],
    total: [u64; 3],
    /// Titles of the subtests that are open, from `# Subtest: …`.
    subtests: Vec<(usize, String)>,
    failed: Vec<Point>,
    /// How deep the last failed point was, until the point of its subtest fails for it.
    inner: usize,
    yaml: bool,
    /// Whether the properties that follow are those of the last failed point.
    owned: bool,
    failures: Failures,
    /// Perl's words on standard error, by test.
    said: Vec<(String, Message)>,
    counters: Vec<(String, u64)>,
    doubts: Doubts,
}

struct Point {
    name: String,
    message: Message,
    /// A point inside of it failed.
    parent: bool,
    /// What Node says of it before it tells the error.
    suite: bool,
    reason: Option<Reason>,
}

#[derive(PartialEq, Eq)]
enum Reason {
    /// Something in it failed.
    Subtests,
    Own,
}

impl Point {
    fn property(&mut self, text: &str) {
        if !self.message.contains("error: ") {
            self.suite |= text == "type: 'suite'";
            if let Some(reason) = text.strip_prefix("failureType: ") {
                let subtests = reason == "'subtestsFailed'";
                self.reason = Some(if subtests { Reason::Subtests } else { Reason::Own });
            }
        }
        self.message.push(text);
    }

    /// Whether those inside of it say all there is to say.
    fn is_told(&self) -> bool {
        self.parent && self.reason != Some(Reason::Own)
    }
}

impl Runner for Tap {
    fn line(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let depth = (line.len() - text.len()) / 4;
        if self.yaml {
            if text == "..." {
                self.yaml = false;
            } else if let Some(point) = self.failed.last_mut().filter(|_| self.owned) {
                point.property(text);
            }
        } else if text == "---" && line != text {
            self.yaml = true;
        } else if let Some(rest) = line.strip_prefix("TAP version ") {
            self.end_document();
            self.seen |= number(rest).is_some();
        } else if depth == 0
            && line == text
            && let Some(plan) = plan(line)
        {
            if self.plan.is_some() {
                self.end_document();
            }
            self.plan = Some(plan);
        } else if let Some((ok, id, rest)) = point(text)
            && (self.seen || self.plan.is_some() || id.is_some())
        {
            self.point(depth, ok, id, rest);
        } else if let Some(comment) = text.strip_prefix("# ") {
            self.comment(depth, comment);
        } else if self.seen
            && self.failed.is_empty()
            && (line.starts_with("Bail out!") || line.starts_with("Dubious, test returned"))
        {
            self.doubts.add(line.to_owned());
            self.counts[1] += 1;
        }
    }

    fn output_ends(&mut self) {
        self.yaml = false;
        self.end_document();
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if !self.seen {
            return None;
        }
        for failure in &mut self.failures.first {
            if let Some((_, said)) = self.said.iter().find(|(name, _)| *name == failure.name)
                && failure.message.is_empty()
            {
                *failure = Failure::new(&failure.name, said);
            }
        }
        let mut found = Found::new("TAP", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Tap {
    fn point(&mut self, depth: usize, ok: bool, id: Option<u64>, rest: &str) {
        if depth == 0 && id == Some(1) && self.points > 0 {
            self.end_document();
        }
        self.seen = true;
        let (name, directive) = directive(rest);
        let name = name.strip_prefix("- ").unwrap_or(name);
        self.subtests.retain(|(at, _)| *at < depth);
        let excused = matches!(directive, Some("skip" | "todo"));
        if depth == 0 {
            self.points += 1;
            self.counts[if excused { 2 } else { usize::from(!ok) }] += 1;
        }
        let parent = self.inner > depth;
        self.inner = if ok || excused { self.inner.min(depth) } else { depth };
        self.owned = !ok && !excused && self.failed.len() < Failures::MOST;
        if !self.owned {
            return;
        }
        let path: Vec<&str> =
            self.subtests.iter().map(|(_, title)| title.as_str()).chain([name]).collect();
        let (name, message) = (path.join(" > "), Message::default());
        self.failed.push(Point { name, message, parent, suite: false, reason: None });
    }

    fn comment(&mut self, depth: usize, comment: &str) {
        if let Some(title) = comment.strip_prefix("Subtest: ") {
            self.subtests.retain(|(at, _)| *at < depth);
            self.subtests.push((depth, title.to_owned()));
        } else if let Some(name) = comment.trim_start().strip_prefix("Failed test '") {
            if self.said.len() < Failures::MOST {
                self.said.push((
                    name.trim_end_matches('\'').to_owned(),
                    Message::from(comment.trim_start()),
                ));
            }
        } else if comment.starts_with("Looks like you planned")
            || comment.starts_with("Looks like your test exited")
        {
            self.doubts.add(comment.to_owned());
        } else if let Some((name, count)) = comment.split_once(' ')
            && let Some((count, "")) = number(count)
            && depth == 0
            && self.plan.is_some()
            && self.counters.len() < 20
        {
            self.counters.push((name.to_owned(), count));
        } else if let Some((_, said)) = self.said.last_mut() {
            said.push(comment);
        }
    }

    fn end_document(&mut self) {
        if self.plan.is_none() && self.points == 0 && self.failed.is_empty() {
            return;
        }
        match self.plan {
            None => self.doubts.add("no plan was printed".to_owned()),
            Some(plan) if plan != self.points => {
                self.doubts.add(format!("{} of {plan} planned tests ran", self.points));
            }
            Some(_) => {}
        }
        self.seen |= self.plan.is_some() && self.points > 0;
        let told = self.failed.iter().filter(|point| !point.is_told()).count() as u64;
        let counter =
            |name: &str| self.counters.iter().find(|(known, _)| known == name).map(|known| known.1);
        if let (Some(pass), Some(fail)) = (counter("pass"), counter("fail")) {
            let skipped = counter("skipped").unwrap_or(0) + counter("todo").unwrap_or(0);
            let failed = fail + counter("cancelled").unwrap_or(0);
            self.counts = [pass, failed, skipped];
            // Node counts parents that are tests, and no suites.
            if self.failed.iter().filter(|point| !point.suite).count() as u64 == failed {
                self.counts[1] = told;
            } else {
                self.doubts.add("some failures are not listed".to_owned());
            }
        } else {
            // Those inside of a subtest are told, and of the subtest only one counts.
            self.counts[1] = self.counts[1].max(told);
        }
        for (total, count) in self.total.iter_mut().zip(self.counts) {
            *total += count;
        }
        for point in self.failed.drain(..).filter(|point| !point.is_told()) {
            let place = super::location(&point.message);
            self.failures.push(Failure::new(&point.name, error(&point.message)).at(place));
        }
        (self.plan, self.points, self.counts) = (None, 0, [0; 3]);
        self.counters.clear();
        self.subtests.clear();
    }
}

/// What went wrong, of the properties of a point.
fn error(properties: &Message) -> Said<'_> {
    let key =
        ["error: ", "message: "].into_iter().find_map(|key| Some((properties.find(key)?, key)));
    let Some((from, key)) = key else { return properties.into() };
    let said = &properties[from + key.len()..];
    let end = ["\ncode: ", "\nstack: ", "\nname: "].iter().filter_map(|next| said.find(next)).min();
    Said::part(properties, said[..end.unwrap_or(said.len())].trim_start_matches("|-").trim())
}

/// `1..4`.
fn plan(line: &str) -> Option<u64> {
    let (count, rest) = number(line.strip_prefix("1..")?)?;
    (rest.is_empty() || rest.starts_with(" #")).then_some(count)
}

/// Whether it is ok, its number, and the rest.
fn point(text: &str) -> Option<(bool, Option<u64>, &str)> {
    let (ok, rest) = match text.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok")?),
    };
    if rest.is_empty() {
        return Some((ok, None, rest));
    }
    let rest = rest.strip_prefix(' ')?;
    match number(rest) {
        Some((id, rest)) if rest.is_empty() || rest.starts_with(' ') => {
            Some((ok, Some(id), rest.trim_start()))
        }
        _ => rest.starts_with("- ").then_some((ok, None, rest)),
    }
}

/// A point's name, and `skip` or `todo`.
fn directive(rest: &str) -> (&str, Option<&'static str>) {
    if let Some((name, after)) = rest.rsplit_once("# ") {
        let word = after.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        let known = ["skip", "todo"].into_iter().find(|known| word.starts_with(known));
        if known.is_some() {
            return (name.trim_end(), known);
        }
    }
    (rest, None)
}
