//! What a Rust test said when it panicked, apart from what it printed before, however much that was.

use super::Failure;
use super::message::{Message, Said};

/// The output of a test, line by line.
#[derive(Debug, Default, Clone)]
pub(super) struct Output {
    /// Everything but the panic and backtraces.
    printed: Message,
    panic: Option<Panic>,
    part: Part,
}

#[derive(Debug, Clone)]
struct Panic {
    message: Message,
    /// Whether it says which thread panicked, as Rust itself does.
    by_thread: bool,
}

/// What the next line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Part {
    #[default]
    Printed,
    Panic,
    Backtrace,
}

impl Output {
    pub fn push(&mut self, line: &str) {
        if let Some((at, by_thread)) = begins(line) {
            if self.panic.as_ref().is_none_or(|panic| by_thread && !panic.by_thread) {
                // What only looked like a panic was printed by the test.
                if let Some(imitated) = self.panic.take() {
                    self.printed.append(&imitated.message);
                }
                self.printed.push(&line[..at]);
                self.panic = Some(Panic { message: Message::from(&line[at..]), by_thread });
                self.part = Part::Panic;
                return;
            }
            if self.part == Part::Backtrace {
                self.part = Part::Printed;
            }
        }
        if self.panic.is_some() {
            if line.starts_with("stack backtrace:") {
                self.part = Part::Backtrace;
            } else if line.starts_with("note: run with `RUST_BACKTRACE")
                || self.part == Part::Backtrace && line.starts_with("note: ")
            {
                self.part = Part::Printed;
                return;
            }
        }
        match (self.part, &mut self.panic) {
            (Part::Backtrace, _) => {}
            (Part::Panic, Some(panic)) => panic.message.push(line),
            _ => self.printed.push(line),
        }
    }

    /// The failed test: its message is the panic, or else what it printed.
    pub fn failure(&self, name: &str) -> Failure {
        match &self.panic {
            Some(panic) => panicked(name, &panic.message, 0),
            None => Failure::new(name, &self.printed),
        }
    }

    /// The same, and what was printed besides the panic is counted.
    pub fn failure_with_count(&self, name: &str) -> Failure {
        match &self.panic {
            Some(panic) => panicked(name, &panic.message, self.printed.said()),
            None => Failure::new(name, &self.printed),
        }
    }
}

/// Where a panic begins in the line, and whether it says which thread it is of.
fn begins(line: &str) -> Option<(usize, bool)> {
    let at = line.find("panicked at ")?;
    match line[..at].rfind("thread '") {
        Some(thread) => Some((thread, true)),
        None => Some((0, false)),
    }
}

/// A test that failed, with its panic. `besides` are bytes of its output that are not of the panic.
pub(super) fn panicked(name: &str, panic: &Message, besides: usize) -> Failure {
    let text = panic.trim();
    let mut said = Said::from(panic);
    said.more += besides;
    let mut failure = Failure::new(name, said);
    // The first line says where it was, and which test.
    if let Some((first, rest)) = text.split_once('\n')
        && first.strip_prefix("thread '").is_some_and(|thread| {
            thread.strip_prefix(name).is_some_and(|rest| rest.starts_with('\''))
        })
        && failure.line.is_some()
    {
        failure.message = Said { text: rest, ..said }.shortened();
    }
    failure
}
