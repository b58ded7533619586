//! What the kernel is told to refuse, and how refusals are put into words.
//!
//!     policy: Lock ─▶ ExecRules ─▶ keeper ─▶ RefusedExec ─▶ warnings and the audit trail

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use mcpz_agent::{AllowedProgram, Argument, ExecRules, MayRun, RefusedBecause, RefusedExec};
use mcpz_policy::{Lock, LockedWord};

/// How many refusals are reported for one command.
const MAX_REPORTED: usize = 5;

/// A lock in the form the keeper takes. `path` is the server's `PATH`.
pub fn exec_rules(lock: Lock, path: Option<&OsStr>) -> ExecRules {
    let argument = |word| match word {
        LockedWord::Known(text) => Argument::Known(text),
        LockedWord::Begins(start) => Argument::Begins(start),
        LockedWord::Any => Argument::Any,
        LockedWord::Many => Argument::Many,
        LockedWord::Operand => Argument::Operand,
        LockedWord::Operands => Argument::Operands,
    };
    let allowed = lock.allowed.map(|programs| {
        let allowed = programs.into_iter().map(|program| AllowedProgram {
            name: program.name,
            files: program.files.into_iter().map(Into::into).collect(),
            named: program.named,
            arguments: program.arguments.map(|all| {
                let all = all.into_iter();
                all.map(|words| words.into_iter().map(argument).collect()).collect()
            }),
            may_run: match program.may_run {
                mcpz_policy::MayRun::Only(programs) => MayRun::Only(programs.to_vec()),
                mcpz_policy::MayRun::Anything => MayRun::Anything,
                mcpz_policy::MayRun::AsBefore => MayRun::AsBefore,
            },
        });
        allowed.collect()
    });
    let path = path.unwrap_or_default().as_bytes().to_vec();
    ExecRules { allowed, path, denied: lock.denied, variables: lock.variables }
}

/// Refusals, each as a sentence that says what to change.
pub fn described(refused: &[RefusedExec]) -> Vec<String> {
    let shown = refused.iter().take(MAX_REPORTED).map(describe);
    let more = refused.len().saturating_sub(MAX_REPORTED);
    let more = (more > 0).then(|| format!("policy: {more} other programs were not executed"));
    shown.chain(more).collect()
}

fn describe(refused: &RefusedExec) -> String {
    let RefusedExec { program, arguments, by, command_line, parent, why, times } = refused;
    let mut what = program.clone();
    for argument in arguments {
        what = format!("{what} {argument}");
    }
    // A name means a program in one of the folders of `PATH`.
    let name = match program.rsplit_once('/') {
        Some((folder, name)) if folder.ends_with("bin") => name,
        _ => program,
    };
    let times = match times {
        1 => String::new(),
        times => format!(" ({times} times)"),
    };
    let fix = match why {
        RefusedBecause::Denied(rule) => format!("the rule `{rule}` denies it for every program"),
        RefusedBecause::NotAllowed => format!(
            "the command does not name it; to allow it, tell what `{by}` may run: \
             [[policy.runs]] program = \"{by}\", may_run = [\"{name}\"]"
        ),
        RefusedBecause::Variable(variable) => format!(
            "a rule allows it only with certain arguments, and the variable `{variable}` could change what it does; a \
             rule `{variable}=*` would allow that"
        ),
        RefusedBecause::Unclear => "it could not be found out what it would execute".to_owned(),
    };
    let line = command_line.join(" ");
    let from = match line.is_empty() || line == *by {
        true => format!("`{by}`"),
        false => format!("`{by}` ({})", line.trim_end()),
    };
    let parent = match parent.is_empty() {
        true => String::new(),
        false => format!(", started by `{parent}`,"),
    };
    format!("policy: {from}{parent} was not allowed to execute `{what}`{times}: {fix}")
}
