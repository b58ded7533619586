//! An exception that ended a Python program: the place is its last frame in the program itself.

use super::{Diagnostic, Linter, Report};

#[derive(Default)]
pub(super) struct Traceback {
    open: bool,
    own: Option<(String, u64)>,
    last: Option<(String, u64)>,
}

impl Linter for Traceback {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        if line.starts_with("Traceback (most recent call last):") {
            (self.open, self.own, self.last) = (true, None, None);
            return true;
        }
        if let Some(frame) = line.strip_prefix("  File \"").and_then(frame) {
            // A syntax error is told without a traceback.
            self.open = true;
            if !frame.0.contains("site-packages/")
                && !frame.0.contains("lib/python")
                && !frame.0.starts_with('<')
            {
                self.own = Some(frame.clone());
            }
            self.last = Some(frame);
            return true;
        }
        if !self.open {
            return false;
        }
        if line.starts_with(' ') {
            return true;
        }
        self.open = false;
        let Some((file, row)) = self.own.take().or_else(|| self.last.take()) else { return false };
        let (name, message) = line.split_once(": ").unwrap_or((line, ""));
        let is_name =
            name.split('.').all(|part| part.chars().all(|c| c.is_alphanumeric() || c == '_'));
        if !is_name || name.is_empty() {
            return false;
        }
        report.push(Diagnostic {
            file: Some(file),
            line: Some(row),
            column: None,
            severity: Some("error".to_owned()),
            code: Some(name.to_owned()),
            message: if message.is_empty() { name.to_owned() } else { message.to_owned() },
        });
        true
    }

    fn output_ends(&mut self, _report: &mut Report) {
        self.open = false;
    }
}

fn frame(text: &str) -> Option<(String, u64)> {
    let (file, rest) = text.split_once("\", line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((file.to_owned(), digits.parse().ok()?))
}
