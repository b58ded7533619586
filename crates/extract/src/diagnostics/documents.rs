//! Reports that are one JSON document: SARIF, and those of eslint, shellcheck and ruff.

use serde_json::Value;

use super::{Diagnostic, Linter, Report, severity};

pub(super) struct Documents;

impl Linter for Documents {
    fn line(&mut self, _line: &str, _report: &mut Report) -> bool {
        false
    }

    fn document(&mut self, text: &str, report: &mut Report) -> bool {
        let Some(Ok(value)) = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()
        else {
            return false;
        };
        if let Some(runs) = value.get("runs").and_then(Value::as_array) {
            runs.iter().for_each(|run| sarif(run, report));
            return value.get("version").is_some();
        }
        let comments = value.get("comments").unwrap_or(&value);
        let Some(items) = comments.as_array() else { return false };
        let mut known = false;
        for item in items {
            if let Some(messages) = item.get("messages").and_then(Value::as_array)
                && let Some(file) = string(item, "filePath")
            {
                known = true;
                messages.iter().for_each(|message| report.push(eslint(&file, message)));
            } else if let Some(found) = shellcheck(item).or_else(|| ruff(item)) {
                known = true;
                report.push(found);
            }
        }
        known
    }
}

fn string(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

fn eslint(file: &str, message: &Value) -> Diagnostic {
    let is_error = number(message, "/severity") == Some(2);
    Diagnostic {
        file: Some(file.to_owned()),
        line: number(message, "/line"),
        column: number(message, "/column"),
        severity: Some(if is_error { "error" } else { "warning" }.to_owned()),
        code: string(message, "ruleId"),
        message: string(message, "message").unwrap_or_default(),
    }
}

fn shellcheck(item: &Value) -> Option<Diagnostic> {
    Some(Diagnostic {
        file: Some(string(item, "file")?),
        line: Some(number(item, "/line")?),
        column: number(item, "/column"),
        severity: Some(severity(&string(item, "level")?)?.to_owned()),
        code: number(item, "/code").map(|code| format!("SC{code}")),
        message: string(item, "message")?,
    })
}

fn ruff(item: &Value) -> Option<Diagnostic> {
    Some(Diagnostic {
        file: Some(string(item, "filename")?),
        line: Some(number(item, "/location/row")?),
        column: number(item, "/location/column"),
        severity: Some(
            string(item, "severity").and_then(|word| severity(&word)).unwrap_or("error").to_owned(),
        ),
        code: string(item, "code"),
        message: string(item, "message")?,
    })
}

fn sarif(run: &Value, report: &mut Report) {
    for result in run.get("results").and_then(Value::as_array).into_iter().flatten() {
        let at = "/locations/0/physicalLocation";
        let uri = result.pointer(&format!("{at}/artifactLocation/uri")).and_then(Value::as_str);
        let level = string(result, "level").unwrap_or("warning".to_owned());
        report.push(Diagnostic {
            file: uri.map(|uri| uri.strip_prefix("file://").unwrap_or(uri).to_owned()),
            line: number(result, &format!("{at}/region/startLine")),
            column: number(result, &format!("{at}/region/startColumn")),
            severity: severity(&level).map(str::to_owned),
            code: string(result, "ruleId").or_else(|| string(result.get("rule")?, "id")),
            message: result
                .pointer("/message/text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        });
    }
}
