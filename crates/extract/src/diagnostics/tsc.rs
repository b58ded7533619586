//! TypeScript's compiler: `a.ts(1,7): error TS2322: …`, or `a.ts:1:7 - error TS2322: …` for terminals. The first
//! form is also that of the compilers of .NET.

use regex::Regex;

use super::{Diagnostic, Linter, Report, severity};

pub(super) struct Tsc {
    form: Regex,
}

impl Default for Tsc {
    fn default() -> Self {
        let place = r"^\s*(\S[^(]*?)(?:\((\d+),(\d+)\): |:(\d+):(\d+) - )";
        let said = r"(error|warning|info|message) ([A-Z]+\d+): (.*)$";
        Tsc { form: Regex::new(&format!("{place}{said}")).expect("the form is valid") }
    }
}

impl Linter for Tsc {
    fn line(&mut self, line: &str, report: &mut Report) -> bool {
        if let Some(rest) = line.strip_prefix("error TS")
            && let Some((code, message)) = rest.split_once(": ")
        {
            let code = Some(format!("TS{code}"));
            let severity = Some("error".to_owned());
            report.push(Diagnostic {
                severity,
                code,
                message: message.to_owned(),
                ..Diagnostic::default()
            });
            return true;
        }
        if !line.contains("): ") && !line.contains(" - ") {
            return false;
        }
        let Some(parts) = self.form.captures(line) else { return false };
        let number = |at: usize, or: usize| {
            parts.get(at).or(parts.get(or)).and_then(|part| part.as_str().parse().ok())
        };
        report.push(Diagnostic {
            file: Some(parts[1].to_owned()),
            line: number(2, 4),
            column: number(3, 5),
            severity: severity(&parts[6]).map(str::to_owned),
            code: Some(parts[7].to_owned()),
            message: parts[8].to_owned(),
        });
        true
    }
}
