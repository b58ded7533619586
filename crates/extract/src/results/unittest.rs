//! Python's `unittest`, which prints to standard error.

use super::{Closing, Doubts, Failure, Failures, Found, Message, Runner, Said, number};

#[derive(Default)]
pub(super) struct Unittest {
    seen: bool,
    /// Tests named since the last summary, with `-v`.
    named: u64,
    /// Of those, passed and failed.
    shown: [u64; 2],
    state: State,
    blocks: Vec<Failure>,
    more_blocks: u64,
    total: [u64; 3],
    failures: Failures,
    open: bool,
    doubts: Doubts,
}

#[derive(Default)]
enum State {
    #[default]
    Tests,
    /// After a line of `=`.
    Title,
    /// Of a failed test: its name, and what it said.
    Block(String, Message),
    /// After a line of `-`, which ends all blocks.
    Ruled,
    /// So many tests ran, and the verdict follows.
    Ran(u64),
}

impl Runner for Unittest {
    fn line(&mut self, line: &str) {
        let thick = is_rule(line, '=');
        let thin = is_rule(line, '-');
        self.state = match std::mem::take(&mut self.state) {
            State::Block(name, message) if thick || thin && !message.is_empty() => {
                self.end_block(&name, &message);
                if thick { State::Title } else { State::Ruled }
            }
            State::Block(name, mut message) => {
                if !thin {
                    message.push(line);
                }
                State::Block(name, message)
            }
            State::Title => match title(line) {
                Some(name) => {
                    (self.seen, self.open) = (true, true);
                    State::Block(name, Message::default())
                }
                None => State::Tests,
            },
            State::Ruled => match ran(line) {
                Some(count) => {
                    (self.seen, self.open) = (true, true);
                    State::Ran(count)
                }
                None => State::Tests,
            },
            State::Ran(count) if line.is_empty() => State::Ran(count),
            State::Ran(count) => {
                self.verdict(count, line);
                State::Tests
            }
            State::Tests if thick => State::Title,
            State::Tests if thin => State::Ruled,
            State::Tests => {
                if is_named(line) {
                    (self.seen, self.open) = (true, true);
                    self.named += 1;
                    self.shown[0] += u64::from(line.ends_with(" ... ok"));
                    self.shown[1] +=
                        u64::from(line.ends_with(" ... FAIL") || line.ends_with(" ... ERROR"));
                }
                State::Tests
            }
        };
    }

    fn output_ends(&mut self) {
        if let State::Block(name, message) = std::mem::take(&mut self.state) {
            self.end_block(&name, &message);
        }
    }

    fn finish(mut self: Box<Self>) -> Option<Found> {
        if !self.seen {
            return None;
        }
        if self.open {
            self.doubts.add_first("no summary was printed".to_owned());
            self.total[0] += self.shown[0];
            self.total[1] += self.shown[1];
        }
        self.take_blocks();
        let mut found = Found::new("unittest", Closing::Whole.unless(self.doubts));
        [found.passed, found.failed, found.skipped] = self.total;
        found.failures = self.failures;
        Some(found)
    }
}

impl Unittest {
    fn end_block(&mut self, name: &str, message: &Message) {
        if self.blocks.len() >= Failures::MOST {
            self.more_blocks += 1;
            return;
        }
        // The last frame is the nearest to what went wrong.
        let own = message.lines().rev().find_map(super::location);
        // The frames are between the title of the traceback and the error.
        let said = message
            .split_inclusive('\n')
            .scan(0, |end, line| {
                *end += line.len();
                Some((*end, line))
            })
            .skip_while(|(_, line)| !line.starts_with("Traceback"))
            .take_while(|(_, line)| line.starts_with("Traceback") || line.starts_with(' '))
            .last()
            .map(|(end, _)| message[end..].trim());
        let said = match said {
            Some(said) if !said.is_empty() => Said::part(message, said),
            _ => Said::from(message),
        };
        self.blocks.push(Failure::new(name, said).at(own));
    }

    /// `OK (skipped=1)` or `FAILED (failures=1, errors=1)`.
    fn verdict(&mut self, ran: u64, line: &str) {
        let (word, rest) = line.split_once(" (").unwrap_or((line, ""));
        if !matches!(word, "OK" | "FAILED" | "NO TESTS RAN") {
            return;
        }
        let (mut failed, mut skipped) = (0, 0);
        for part in rest.trim_end_matches(')').split(", ").filter(|part| !part.is_empty()) {
            let Some((what, count)) = part.split_once('=') else { continue };
            let count = count.parse().unwrap_or(0);
            match what {
                "skipped" | "expected failures" => skipped += count,
                _ => failed += count,
            }
        }
        if (word == "FAILED") != (failed > 0)
            || self.blocks.len() as u64 + self.more_blocks > failed
        {
            self.doubts.add("it counts other tests than those seen".to_owned());
        }
        if self.named > ran + failed {
            self.doubts.add("more tests began than the summary counts".to_owned());
        }
        self.total[0] += ran.saturating_sub(failed + skipped);
        self.total[1] += failed;
        self.total[2] += skipped;
        (self.open, self.named, self.shown) = (false, 0, [0; 2]);
        self.take_blocks();
    }

    fn take_blocks(&mut self) {
        self.blocks.drain(..).for_each(|failure| self.failures.push(failure));
        self.failures.count += std::mem::take(&mut self.more_blocks);
    }
}

fn is_rule(line: &str, of: char) -> bool {
    line.len() == 70 && line.chars().all(|c| c == of)
}

fn ran(line: &str) -> Option<u64> {
    let (count, rest) = number(line.strip_prefix("Ran ")?)?;
    (rest.starts_with(" test") && rest.contains(" in ") && rest.ends_with('s')).then_some(count)
}

/// `test_a (test_some.Things.test_a) ... ok`, also while the test still runs.
fn is_named(line: &str) -> bool {
    let Some((test, rest)) = line.split_once(" (") else { return false };
    test.starts_with("test")
        && !test.contains(' ')
        && rest.split_once(") ... ").is_some_and(|(path, _)| !path.contains(' '))
}

/// The name in `FAIL: test_wrong (test_some.Things.test_wrong)`.
fn title(line: &str) -> Option<String> {
    let rest = ["FAIL: ", "ERROR: ", "UNEXPECTED SUCCESS: "]
        .iter()
        .find_map(|word| line.strip_prefix(word))?;
    let Some((test, path)) = rest.split_once(" (") else { return Some(rest.to_owned()) };
    let (path, more) = path.split_once(')').unwrap_or((path, ""));
    if path.contains("_FailedTest") {
        return Some(test.to_owned());
    }
    let full = if path.ends_with(test) { path.to_owned() } else { format!("{path}.{test}") };
    Some(format!("{full}{more}"))
}
