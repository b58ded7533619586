//! shellcheck's form for terminals: the line of the script, and remarks below it.

use super::{Diagnostic, Linter, Report, severity};

#[derive(Default)]
pub(super) struct Terminal {
    place: Option<(String, u64)>,
}

impl Linter for Terminal {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        // In a.sh line 2:
        if let Some((file, row)) =
            line.strip_prefix("In ").and_then(|rest| rest.strip_suffix(':')?.rsplit_once(" line "))
            && let Ok(row) = row.parse()
        {
            self.place = Some((file.to_owned(), row));
            return true;
        }
        if line.is_empty() {
            self.place = None;
        }
        let Some((file, row)) = &self.place else { return false };
        let Some(found) = remark(line, file, *row) else { return false };
        report.push(found);
        true
    }

    fn output_ends(&mut self, _report: &mut Report) {
        self.place = None;
    }
}

/// `     ^-- SC2086 (info): Double quote …`
fn remark(line: &str, file: &str, row: u64) -> Option<Diagnostic> {
    let trimmed = line.trim_start();
    let column = line.len() - trimmed.len() + 1;
    let rest = &trimmed[trimmed.strip_prefix('^')?.find("SC")? + 1..];
    let (code, rest) = rest.split_once(" (")?;
    let (word, message) = rest.split_once("): ")?;
    Some(Diagnostic {
        file: Some(file.to_owned()),
        line: Some(row),
        column: Some(column as u64),
        severity: Some(severity(word)?.to_owned()),
        code: Some(code.to_owned()),
        message: message.to_owned(),
    })
}
