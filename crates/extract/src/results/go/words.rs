//! What a test of Go said: what it logged, and how it panicked, apart from what it printed.
//!
//! Go does not tell which of the logged lines are errors. `t.Fatal` is the last thing that a test logs, and
//! `t.Error` is among the last or the only ones, so of many lines the last ones are kept.

use std::collections::VecDeque;

use super::super::{Message, Said, location, number};

/// How much of what is logged first and last is kept, in bytes.
const FIRST: usize = 180;
const LAST: usize = 380;

/// Lines that begin the last words of a program.
const PANICS: [&str; 2] = ["panic: ", "fatal error: "];
/// What follows those words.
const STACK: &str = "\ngoroutine ";

#[derive(Default, Clone)]
pub(super) struct Words {
    pub all: Message,
    logged: Logged,
    /// From the line that looks like a panic.
    panic: Message,
}

/// Lines such as `    a_test.go:12: got 3, want 4`, and those that continue them.
#[derive(Default, Clone)]
struct Logged {
    first: String,
    last: VecDeque<String>,
    last_bytes: usize,
    dropped: usize,
    /// How far the last line is indented that says where it was logged, if nothing came after it.
    indent: Option<usize>,
    place: Option<(String, u64)>,
}

impl Words {
    pub fn push(&mut self, line: &str) {
        let line = line.trim_end();
        self.all.push(line);
        self.logged.line(line);
        let panics = PANICS.iter().any(|panic| line.starts_with(panic));
        if panics && !self.panic.contains(STACK) {
            self.panic = Message::from(line);
        } else if !self.panic.is_empty() {
            self.panic.push(line);
        }
    }

    /// Why it failed, or all it said if nothing looks like a reason.
    pub fn message(&self) -> String {
        self.reason().unwrap_or_else(|| Said::from(&self.all).shortened())
    }

    /// Its panic and what it logged, if anything.
    pub fn reason(&self) -> Option<String> {
        let panic = self.panicked().map(|(words, _)| words.trim().to_owned());
        let logged = Some(self.logged.text()).filter(|text| !text.is_empty());
        let reasons: Vec<_> = panic.into_iter().chain(logged).collect();
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// Where it panicked, of the frames in tests, or logged something last.
    pub fn place(&self) -> Option<(String, u64)> {
        let frames = self.panicked().map(|(_, frames)| frames);
        let said = frames.unwrap_or(&self.all);
        let in_test = || said.lines().filter(|line| line.contains("_test.go:")).find_map(location);
        let logged = || self.logged.place.clone().filter(|_| frames.is_none());
        logged().or_else(in_test).or_else(|| location(said))
    }

    /// The last words of a panic, and the stack.
    fn panicked(&self) -> Option<(&str, &str)> {
        self.panic.find(STACK).map(|at| self.panic.split_at(at))
    }
}

impl Logged {
    fn line(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(place) = logged_at(text).filter(|_| indent >= 4) {
            self.indent = Some(indent);
            self.place = Some(place);
            self.push(text);
        } else if let Some(at) = self.indent.filter(|at| text.is_empty() || indent >= at + 4) {
            self.push(line.get(at..).unwrap_or_default());
        } else {
            self.indent = None;
        }
    }

    fn push(&mut self, line: &str) {
        if self.last.is_empty() && self.first.len() + line.len() < FIRST {
            self.first.push_str(line);
            self.first.push('\n');
            return;
        }
        let kept = crate::room::cut(line, LAST);
        self.last_bytes += kept.len() + 1;
        self.last.push_back(kept);
        while self.last_bytes > LAST && self.last.len() > 1 {
            let dropped = self.last.pop_front().map_or(0, |line| line.len() + 1);
            self.last_bytes -= dropped;
            self.dropped += dropped;
        }
    }

    fn text(&self) -> String {
        let gap = match self.dropped {
            0 => String::new(),
            dropped => format!("… ({dropped} more bytes)\n"),
        };
        let lines = self.last.iter().fold(String::new(), |text, line| text + line + "\n");
        (self.first.clone() + &gap + &lines).trim_end().to_owned()
    }
}

/// The place that begins `a_test.go:12: got 3, want 4`.
fn logged_at(text: &str) -> Option<(String, u64)> {
    let (file, rest) = text.split_once(".go:")?;
    let (line, rest) = number(rest)?;
    let is_file = !file.is_empty() && !file.contains([' ', '\t', '/']);
    (is_file && rest.starts_with(':')).then(|| (format!("{file}.go"), line))
}
