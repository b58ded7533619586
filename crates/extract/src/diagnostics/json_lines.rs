//! One JSON object a line: cargo, rustc and mypy.

use serde_json::Value;

use super::{Diagnostic, Linter, Report, severity};

pub(super) struct JsonLines;

impl Linter for JsonLines {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        if !line.starts_with('{') || !line.ends_with('}') {
            return false;
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return false };
        if value.get("reason").is_some() {
            if let Some(message) = value.get("message") {
                report.extend(rustc(message));
            }
            return true;
        }
        if value.get("spans").is_some() && value.get("level").is_some() {
            report.extend(rustc(&value));
            return true;
        }
        let Some(found) = mypy(&value) else { return false };
        report.push(found);
        true
    }
}

impl Report {
    fn extend(&mut self, found: Option<Diagnostic>) {
        found.into_iter().for_each(|found| self.push(found));
    }
}

fn rustc(message: &Value) -> Option<Diagnostic> {
    let level = severity(message.get("level")?.as_str()?)?;
    let text = message.get("message")?.as_str()?.to_owned();
    let spans = message.get("spans")?.as_array()?;
    let primary =
        spans.iter().find(|span| span.get("is_primary").and_then(Value::as_bool) == Some(true));
    // `aborting due to 1 previous error` has no place.
    let primary = primary?;
    let mut found = Diagnostic {
        file: primary.get("file_name").and_then(Value::as_str).map(str::to_owned),
        line: primary.get("line_start").and_then(Value::as_u64),
        column: primary.get("column_start").and_then(Value::as_u64),
        severity: Some(level.to_owned()),
        code: message.pointer("/code/code").and_then(Value::as_str).map(str::to_owned),
        message: text,
    };
    if let Some(label) = primary.get("label").and_then(Value::as_str) {
        found.explain(label);
    }
    Some(found)
}

fn mypy(value: &Value) -> Option<Diagnostic> {
    Some(Diagnostic {
        file: Some(value.get("file")?.as_str()?.to_owned()),
        line: Some(value.get("line")?.as_u64()?),
        column: value.get("column").and_then(Value::as_u64),
        severity: Some(severity(value.get("severity")?.as_str()?)?.to_owned()),
        code: value.get("code").and_then(Value::as_str).map(str::to_owned),
        message: value.get("message")?.as_str()?.to_owned(),
    })
}
