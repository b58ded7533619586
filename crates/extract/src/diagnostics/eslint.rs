//! ESLint's default form: a file's path, and its problems indented below.

use super::{Diagnostic, Linter, Report, severity};

#[derive(Default)]
pub(super) struct Stylish {
    file: Option<String>,
}

impl Linter for Stylish {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        if let Some(file) = &self.file
            && let Some(found) = problem(line, file)
        {
            report.push(found);
            return true;
        }
        let is_path = line.starts_with('/') || line.as_bytes().get(1..3) == Some(b":\\");
        self.file = (is_path && !line.contains(": ")).then(|| line.trim_end().to_owned());
        false
    }

    fn output_ends(&mut self, _report: &mut Report) {
        self.file = None;
    }
}

/// `  2:16  warning  Expected '===' and instead saw '=='     eqeqeq`
fn problem(line: &str, file: &str) -> Option<Diagnostic> {
    let (at, rest) = line.strip_prefix("  ")?.trim_start().split_once("  ")?;
    let (row, column) = at.split_once(':')?;
    let (word, rest) = rest.trim_start().split_once("  ")?;
    let rest = rest.trim();
    // The rule is the last column; a parsing error has none.
    let (message, rule) = match rest.rsplit_once("  ") {
        Some((message, rule)) if !rule.contains(' ') => (message.trim_end(), Some(rule.to_owned())),
        _ => (rest, None),
    };
    Some(Diagnostic {
        file: Some(file.to_owned()),
        line: Some(row.parse().ok()?),
        column: Some(column.parse().ok()?),
        severity: Some(severity(word)?.to_owned()),
        code: rule,
        message: message.to_owned(),
    })
}
