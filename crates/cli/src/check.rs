//! `mcpz check` and `mcpz policy test`: the policy without running anything.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

use mcpz_policy::{Judgement, Lock, MayRun, Policy, Rule, RuleError, Scene, Span, Verdict};
use serde::Deserialize;
use serde_json::json;

use crate::args::CheckFlags;
use crate::settings::{self, Settings};
use crate::setup::Setup;
use crate::{colours, policy};

const DENIED: u8 = 1;

/// A case of a batch. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct Case {
    policy: Rules,
    command: String,
    #[serde(default = "bash")]
    shell: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rules {
    allow: Vec<String>,
    deny: Vec<String>,
    write_dirs: Vec<String>,
}

fn bash() -> String {
    "bash".to_owned()
}

/// Where the cases of a batch would run. The folders need not exist.
const BATCH: Scene<'_> = Scene { home: Some("/home/dev"), ..Scene::at("/srv/proj") };

pub fn run(flags: &CheckFlags) -> Result<ExitCode, Box<dyn Error>> {
    if flags.batch {
        return batch();
    }
    let command = flags.command.as_deref().unwrap_or_default();
    let engine = Setup::new(&Settings::load(&flags.shell.settings)?, None)?.engine;
    let home = engine.home.as_ref().map(|home| home.to_string_lossy());
    let directory = engine.working_directory.to_string_lossy();
    let scene = Scene { home: home.as_deref(), locked: engine.lock, ..Scene::at(&directory) };
    let judgement =
        engine.policy.judge(command, &engine.environment.shell.to_string_lossy(), &scene);
    let text = match flags.json {
        true => format!("{:#}", as_json(&judgement)),
        false => rendered(command, &judgement, colours::enabled(&std::io::stdout())),
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(match judgement.verdict {
        Verdict::Allow => ExitCode::SUCCESS,
        Verdict::Deny(_) => ExitCode::from(DENIED),
    })
}

#[derive(Debug, thiserror::Error)]
#[error(
    "line {number} of the batch is not a case such as {{\"policy\": {{}}, \"command\": \"ls\"}}"
)]
struct InvalidCase {
    number: usize,
    source: serde_json::Error,
}

/// Judges one case per line of standard input.
fn batch() -> Result<ExitCode, Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for (number, line) in (1..).zip(std::io::stdin().lock().lines()) {
        let case = serde_json::from_str::<Case>(&line?);
        let case = case.map_err(|source| InvalidCase { number, source })?;
        let policy = case.policy.read()?;
        let answer = match policy.judge(&case.command, &case.shell, &BATCH).verdict {
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Rules {
    fn read(self) -> Result<Policy, RuleError> {
        let rules = |list: Vec<String>| -> Result<Vec<_>, _> {
            list.iter().map(|text| Rule::new(text)).collect()
        };
        Ok(Policy {
            allow: rules(self.allow)?,
            deny: rules(self.deny)?,
            write_dirs: self.write_dirs,
            ..Policy::default()
        })
    }
}

/// Loads the policy of a file, which checks its rules against their examples.
pub fn test(file: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let settings = settings::load_file(Some(file.to_owned()))?;
    let entries = [settings.policy.allow().unwrap_or_default(), settings.policy.deny()].concat();
    let examples: usize = entries.iter().map(policy::examples).sum();
    let policy = policy::load(&settings)?;
    let rules = count(policy.allow.len() + policy.deny.len(), "rule");
    writeln!(std::io::stdout(), "{rules}, {}: all pass", count(examples, "example"))?;
    Ok(ExitCode::SUCCESS)
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn as_json(judgement: &Judgement) -> serde_json::Value {
    let threats = judgement.threats.iter().map(
        |threat| json!({"what": threat.what, "start": threat.span.start, "end": threat.span.end}),
    );
    let threats: Vec<_> = threats.collect();
    match &judgement.verdict {
        Verdict::Allow => {
            let executes = judgement.lock.as_ref().map(executes);
            match executes {
                Some(executes) => {
                    json!({"verdict": "allow", "executes": executes, "threats": threats})
                }
                None => json!({"verdict": "allow", "threats": threats}),
            }
        }
        Verdict::Deny(denial) => json!({
            "verdict": "deny",
            "reason": denial.to_string(),
            "part": denial.part,
            "start": denial.span.start,
            "end": denial.span.end,
            "rule": denial.rule(),
            "threats": threats,
        }),
    }
}

/// The judgement for people: the command, with marks under the parts it is about.
fn rendered(command: &str, judgement: &Judgement, coloured: bool) -> String {
    let paint = |code: &str, text: &str| match coloured {
        true => colours::paint(code, text),
        false => text.to_owned(),
    };
    let mut text = match &judgement.verdict {
        Verdict::Allow => {
            let allowed = format!("{}\n  {command}", paint("32", "allowed"));
            match &judgement.lock {
                Some(lock) => format!("{allowed}\nexecutes\n  {}", executes(lock).join("\n  ")),
                None => allowed,
            }
        }
        Verdict::Deny(denial) => {
            let marked = marked(command, &denial.span, &denial.to_string());
            format!("{}\n{}", paint("31", "denied"), marked)
        }
    };
    for threat in &judgement.threats {
        let marked = marked(command, &threat.span, threat.what);
        text = format!("{text}\n{}\n{marked}", paint("33", "warning"));
    }
    text
}

/// What the lock lets the command execute, in words.
fn executes(lock: &Lock) -> Vec<String> {
    let denied = match lock.denied.is_empty() {
        true => String::new(),
        false => format!(", except {}", lock.denied.join(", ")),
    };
    let Some(programs) = &lock.allowed else { return vec![format!("everything{denied}")] };
    let named = programs.iter().filter(|program| program.named);
    let described = named.map(|program| match &program.may_run {
        MayRun::Anything => format!("{}, and whatever it runs{denied}", program.name),
        MayRun::Only(needed) if !needed.is_empty() => {
            format!("{}, and what it needs: {}", program.name, needed.join(", "))
        }
        MayRun::Only(_) | MayRun::AsBefore => program.name.clone(),
    });
    described.collect()
}

/// The lines of a command. Below the line where the part begins are marks and the words.
fn marked(command: &str, span: &Span, words: &str) -> String {
    let start = span.start.min(command.len());
    let (mut at, mut lines) = (0, Vec::new());
    for line in command.split('\n') {
        lines.push(format!("  {line}"));
        if (at..=at + line.len()).contains(&start) {
            let before = line.get(..start - at).unwrap_or_default().chars().count();
            let part = line.get(start - at..span.end.clamp(start, at + line.len()) - at);
            let length = part.unwrap_or_default().chars().count().max(1);
            lines.push(format!("  {}{} {words}", " ".repeat(before), "^".repeat(length)));
        }
        at += line.len() + 1;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_under_the_part() {
        let text = marked("cd é &&\nrm x; ls", &(9..13), "no");
        assert_eq!(text, "  cd é &&\n  rm x; ls\n  ^^^^ no");
    }
}
