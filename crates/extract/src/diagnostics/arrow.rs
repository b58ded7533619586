//! rustc, cargo and ruff: a message, and below it an arrow to its place.
//!
//!     error[E0308]: mismatched types          F401 [*] `os` imported but unused
//!      --> src/lib.rs:3:18                     --> a.py:1:8

use super::{Diagnostic, Linter, Report, place};

#[derive(Default)]
pub(super) struct Arrow {
    /// What the last line said, until the next tells where.
    header: Option<Diagnostic>,
    /// What has its place, until a later line tells which lint it is.
    placed: Option<Diagnostic>,
}

impl Linter for Arrow {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        let trimmed = line.trim_start();
        if let Some(at) = trimmed.strip_prefix("--> ") {
            if let (Some(header), Some((file, row, column))) = (self.header.take(), place(at)) {
                self.flush(report);
                self.placed =
                    Some(Diagnostic { file: Some(file), line: Some(row), column, ..header });
            }
            return true;
        }
        if let Some(header) = header(line) {
            self.flush(report);
            self.header = Some(header);
            return true;
        }
        // = note: `#[warn(unused_variables)]` (part of `#[warn(unused)]`) on by default
        if let Some(placed) = &mut self.placed
            && placed.code.is_none()
            && let Some(lint) = trimmed.strip_prefix("= note: `#[").and_then(lint)
        {
            placed.code = Some(lint.to_owned());
            return true;
        }
        // 3 |     let y: i32 = "two";
        //   |            ---   ^^^^^ expected `i32`, found `&str`
        if let Some(placed) = &mut self.placed
            && let Some(label) = label(trimmed)
        {
            placed.explain(label);
            return true;
        }
        // An error without a place, such as one of the linker. Cargo's own summaries say nothing new.
        if self.header.is_some() {
            self.flush(report);
        }
        if line.is_empty() {
            self.flush(report);
        }
        self.placed.is_some() && (trimmed.starts_with(['|', '=']) || is_source(trimmed))
    }

    fn output_ends(&mut self, report: &mut Report) {
        self.flush(report);
    }
}

impl Arrow {
    fn flush(&mut self, report: &mut Report) {
        self.placed.take().into_iter().for_each(|placed| report.push(placed));
        if let Some(header) = self.header.take()
            && header.severity.as_deref() == Some("error")
            && header.code.as_deref().is_none_or(|code| code.starts_with('E'))
            && !is_summary(&header.message)
        {
            report.push(header);
        }
    }
}

fn header(line: &str) -> Option<Diagnostic> {
    for severity in ["error", "warning"] {
        let Some(rest) = line.strip_prefix(severity) else { continue };
        let (code, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(code, rest)| (Some(code.to_owned()), rest))?,
            None => (None, rest),
        };
        let message = rest.strip_prefix(": ")?.to_owned();
        return Some(Diagnostic {
            severity: Some(severity.to_owned()),
            code,
            message,
            ..Diagnostic::default()
        });
    }
    // ruff: a code of capital letters and digits.
    let (code, message) = line.split_once(' ')?;
    let digits = code.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_code = digits.len() >= 2
        && digits.len() < code.len()
        && digits.chars().all(|c| c.is_ascii_digit());
    let is_syntax = code == "invalid-syntax:";
    if !is_code && !is_syntax {
        return None;
    }
    let message = message
        .strip_prefix("[*] ")
        .or_else(|| message.strip_prefix("[-] "))
        .unwrap_or(message)
        .to_owned();
    let code = Some(code.trim_end_matches(':').to_owned());
    Some(Diagnostic { severity: Some("error".to_owned()), code, message, ..Diagnostic::default() })
}

/// What stands behind the mark of the place itself.
fn label(line: &str) -> Option<&str> {
    let (_, label) = line.strip_prefix('|')?.rsplit_once('^')?;
    Some(label.trim()).filter(|label| !label.is_empty())
}

fn lint(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    rest.split_once(')').map(|(lint, _)| lint)
}

fn is_summary(message: &str) -> bool {
    [
        "could not compile",
        "aborting due to",
        "test failed",
        "build failed",
        "process didn't exit",
        "test run failed",
    ]
    .iter()
    .any(|summary| message.starts_with(summary))
}

/// `12 |     let x = 1;`
fn is_source(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.trim_start().starts_with('|')
}
