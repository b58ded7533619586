//! `file:line:column: message`, the form of most tools: gcc, clang, go, javac, swiftc, mypy, and many linters.

use regex::Regex;

use super::{Diagnostic, Linter, Report, severity};

pub(super) struct Colon {
    form: Regex,
    level: Regex,
    code_first: Regex,
    code_last: Regex,
    /// javac tells the column by a mark two lines below.
    waiting: Option<(Diagnostic, u8)>,
}

impl Default for Colon {
    fn default() -> Self {
        let form = |form: &str| Regex::new(form).expect("the form is valid");
        Colon {
            form: form(
                r"^(?:vet: )?((?:[A-Za-z]:[\\/])?[^:\s][^:]*):(\d+)(?:[:.](\d+))?(?:-\d+(?:[:.]\d+)?)?:\s+(\S.*)$",
            ),
            level: form(
                r"^(?i)(fatal error|error|warning|note|info|remark|style|hint|help)(?:\[([\w:-]+)\])?:\s*(.*)$",
            ),
            code_first: form(r"^([A-Z]{1,7}\d{2,5}):? (?:\[\*\] )?(.*)$"),
            code_last: form(r"^(.*\S)\s+[\[(]((?:-W|SC)?[A-Za-z][\w,=+-]*)[\])]$"),
            waiting: None,
        }
    }
}

impl Linter for Colon {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        if let Some((mut found, lines)) = self.waiting.take() {
            if line.trim() == "^" {
                found.column = Some(line.chars().count() as u64);
                report.push(found);
                return true;
            }
            if lines > 0 && self.parse(line).is_none() {
                self.waiting = Some((found, lines - 1));
                return true;
            }
            report.push(found);
        }
        if let Some(found) = linker(line) {
            report.push(found);
            return true;
        }
        let Some(found) = self.parse(line) else { return false };
        if found.column.is_none()
            && found.file.as_deref().is_some_and(|file| file.ends_with(".java"))
        {
            self.waiting = Some((found, 4));
        } else {
            report.push(found);
        }
        true
    }

    fn output_ends(&mut self, report: &mut Report) {
        if let Some((found, _)) = self.waiting.take() {
            report.push(found);
        }
    }
}

impl Colon {
    fn parse(&self, line: &str) -> Option<Diagnostic> {
        if !line.contains(": ") && !line.contains(":\t") {
            return None;
        }
        let parts = self.form.captures(line)?;
        let (file, message) = (&parts[1], &parts[4]);
        let (level, code, message) = match self.level.captures(message) {
            Some(level) => {
                let code = level.get(2).map(|code| code.as_str().to_owned());
                (severity(&level[1]), code, level.get(3).map_or("", |message| message.as_str()))
            }
            None => (None, None, message),
        };
        if !is_file(file, level.is_some()) {
            return None;
        }
        let (code, message) = self.code(code, message, level.is_some());
        let level = level.or_else(|| (code.is_some() || file.ends_with(".go")).then_some("error"));
        Some(Diagnostic {
            file: Some(file.to_owned()),
            line: parts[2].parse().ok(),
            column: parts.get(3).and_then(|column| column.as_str().parse().ok()),
            severity: level.map(str::to_owned),
            code,
            message: message.to_owned(),
        })
    }

    fn code<'a>(
        &self,
        code: Option<String>,
        message: &'a str,
        levelled: bool,
    ) -> (Option<String>, &'a str) {
        if code.is_some() {
            return (code, message);
        }
        if let Some(parts) = self.code_first.captures(message) {
            return (Some(parts[1].to_owned()), parts.get(2).map_or("", |rest| rest.as_str()));
        }
        match self.code_last.captures(message).filter(|_| levelled) {
            Some(parts) if message.ends_with(']') => {
                (Some(parts[2].to_owned()), parts.get(1).map_or("", |rest| rest.as_str()))
            }
            _ => (None, message),
        }
    }
}

/// Whether this names a file, and is not a time of day, an address or the beginning of a log line.
fn is_file(file: &str, levelled: bool) -> bool {
    if file.starts_with("http") || file.starts_with('[') || file.starts_with('#') {
        return false;
    }
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let has_extension = extension.is_some_and(|extension| {
        (1..=8).contains(&extension.len())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    let known =
        ["Makefile", "Dockerfile", "Containerfile", "BUILD", "WORKSPACE", "<stdin>", "stdin"]
            .contains(&name);
    // Spaces are in paths only if the rest leaves no doubt.
    (has_extension || known || levelled && file.contains('/'))
        && (levelled || !file.contains(char::is_whitespace))
}

/// ``a.c:(.text+0x5): undefined reference to `missing'``
fn linker(line: &str) -> Option<Diagnostic> {
    let at = line.find(": undefined reference to ")?;
    let file = line[..at].split(":(").next().map(|file| file.rsplit(": ").next().unwrap_or(file));
    let (file, row) = match file.and_then(super::place) {
        Some((file, row, _)) => (Some(file), Some(row)),
        None => (file.map(str::to_owned), None),
    };
    let severity = Some("error".to_owned());
    Some(Diagnostic {
        file,
        line: row,
        severity,
        message: line[at + 2..].to_owned(),
        ..Diagnostic::default()
    })
}
