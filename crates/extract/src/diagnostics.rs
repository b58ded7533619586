//! Diagnostics: what compilers and linters have to say about a place in a file.
//!
//! Every [`Linter`] sees every line until one takes it, from the most particular to `file:line:column: message`.
//! If not all fit, errors go before the rest, and what is left out is counted.

mod arrow;
mod colon;
mod documents;
mod eslint;
mod json_lines;
mod shellcheck;
mod traceback;
mod tsc;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};

use serde::Serialize;

use crate::answer::{Extracted, Hint, NotFound};
use crate::command::{self, Trust};
use crate::input::Input;
use crate::room::{self, Kept};

const LONGEST_MESSAGE: usize = 600;
/// Beyond these, what is the same may be told twice.
const MOST_REMEMBERED: usize = 200_000;

/// To add a linter, add its file and its line here.
const LINTERS: &[fn() -> Box<dyn Linter>] = &[
    || Box::new(json_lines::JsonLines),
    || Box::new(documents::Documents),
    || Box::new(arrow::Arrow::default()),
    || Box::new(tsc::Tsc::default()),
    || Box::new(eslint::Stylish::default()),
    || Box::new(shellcheck::Terminal::default()),
    || Box::new(traceback::Traceback::default()),
    || Box::new(colon::Colon::default()),
];

/// One way to print diagnostics.
trait Linter {
    /// Whether the line belongs to this linter, so that no other has to see it.
    fn line(&mut self, line: &str, report: &mut Report) -> bool;
    /// A text that begins like JSON. Whether it is known, even if it has no diagnostics.
    fn document(&mut self, _text: &str, _report: &mut Report) -> bool {
        false
    }
    /// No more lines of this output.
    fn output_ends(&mut self, _report: &mut Report) {}
}

#[derive(Debug, Default, Clone, Serialize, Hash)]
struct Diagnostic {
    file: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    severity: Option<String>,
    code: Option<String>,
    message: String,
}

impl Diagnostic {
    /// Adds what a compiler writes at the place itself, as rustc does in its short form.
    fn explain(&mut self, label: &str) {
        if !self.message.contains(label) {
            self.message = format!("{}: {label}", self.message);
        }
    }
}

/// What was found so far.
struct Report {
    seen: HashSet<u64>,
    errors: Kept<(u64, Diagnostic)>,
    others: Kept<(u64, Diagnostic)>,
}

impl Report {
    fn push(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.message = room::cut(diagnostic.message.trim(), LONGEST_MESSAGE);
        let mut hasher = DefaultHasher::new();
        diagnostic.hash(&mut hasher);
        let hash = hasher.finish();
        if self.seen.contains(&hash) {
            return;
        }
        if self.seen.len() < MOST_REMEMBERED {
            self.seen.insert(hash);
        }
        let number = self.errors.len() + self.others.len();
        let is_error = diagnostic.severity.as_deref() == Some("error");
        let kept = if is_error { &mut self.errors } else { &mut self.others };
        kept.push((number, diagnostic));
    }

    /// What fits, in the order it was printed, and how much does not.
    fn fit(self, room: usize) -> (Vec<Diagnostic>, u64) {
        let omitted = self.errors.omitted + self.others.omitted;
        let mut all = Kept::new(room.saturating_sub(2));
        for item in self.errors.items.into_iter().chain(self.others.items) {
            // Its number takes room here, and not in the answer.
            all.push(item);
        }
        let omitted = omitted + all.omitted;
        all.items.sort_by_key(|item| item.0);
        (all.items.into_iter().map(|item| item.1).collect(), omitted)
    }
}

pub(crate) fn extract<R: Read>(
    outputs: impl IntoIterator<Item = R>,
    hint: &Hint<'_>,
    room: usize,
) -> io::Result<Result<Extracted, NotFound>> {
    let mut report =
        Report { seen: HashSet::new(), errors: Kept::new(room), others: Kept::new(room) };
    let mut linters: Vec<Box<dyn Linter>> = LINTERS.iter().map(|new| new()).collect();
    let mut current = 0;
    let input = Input::read(outputs, |output, line| {
        if output != current {
            linters.iter_mut().for_each(|linter| linter.output_ends(&mut report));
            current = output;
        }
        let _ = linters.iter_mut().any(|linter| linter.line(line, &mut report));
    })?;
    linters.iter_mut().for_each(|linter| linter.output_ends(&mut report));
    let mut known = false;
    for document in &input.documents {
        known |= linters.iter_mut().any(|linter| linter.document(document, &mut report));
    }
    let errors = report.errors.len();
    let found = errors + report.others.len();
    let filtered = hint.command.map(command::trust) == Some(Trust::Filtered);
    if found == 0 && !known {
        let code = hint.exit_code.map_or("not known".to_owned(), |code| code.to_string());
        let filter = if filtered { format!("; {}", command::FILTERED) } else { String::new() };
        let whose = if filtered && hint.exit_code.is_some() {
            ", but it may be that of the filter"
        } else {
            ""
        };
        let message = format!(
            "no diagnostics in a known form were printed here{filter}; the exit code is {code}{whose}"
        );
        return Ok(Err(NotFound { message, tail: input.tail }));
    }
    let (diagnostics, omitted) = report.fit(room);
    let mut notes = Vec::new();
    if omitted > 0 {
        notes.push(format!("{errors} errors and {} others in all", found - errors));
    }
    if !hint.ended {
        notes.push("the command did not end by itself, or its output is cut".to_owned());
    }
    if filtered {
        notes.push(command::FILTERED.to_owned());
    }
    let unexplained = errors == 0 && hint.ended && hint.exit_code.is_some_and(|code| code != 0);
    if unexplained {
        notes.push(format!(
            "the exit code is {}, but no error was found",
            hint.exit_code.unwrap_or_default()
        ));
    }
    Ok(Ok(Extracted {
        value: serde_json::to_value(diagnostics).unwrap_or_default(),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        tail: unexplained.then_some(input.tail),
        omitted,
    }))
}

/// One word for each severity, whatever a tool calls it.
fn severity(word: &str) -> Option<&'static str> {
    Some(match word.trim().to_ascii_lowercase().as_str() {
        "error" | "fatal error" | "fatal" | "err" | "failure" | "internal compiler error" => {
            "error"
        }
        "warning" | "warn" => "warning",
        "note" => "note",
        "info" | "information" | "remark" => "info",
        "style" | "hint" | "help" | "suggestion" | "convention" | "refactor" => "hint",
        _ => return None,
    })
}

/// Splits `file:line:column` or `file:line`.
fn place(text: &str) -> Option<(String, u64, Option<u64>)> {
    let (before, last) = text.trim().rsplit_once(':')?;
    let last = last.parse().ok()?;
    if let Some((file, line)) = before.rsplit_once(':')
        && let Ok(line) = line.parse()
        && !file.is_empty()
    {
        return Some((file.to_owned(), line, Some(last)));
    }
    (!before.is_empty()).then(|| (before.to_owned(), last, None))
}
