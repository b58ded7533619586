//! What the kernel is told to refuse, and how refusals are put into words.
//!
//!     policy: Lock ─▶ ExecRules ─▶ keeper ─▶ RefusedExec ─▶ warnings and the audit trail

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};

use mcpz_agent::{
    AllowedCall, AllowedProgram, Argument, CallLimit, EncodedRules, ExecRules, MayRun,
    RefusedBecause, RefusedExec,
};
use mcpz_policy::{Lock, LockedCall, LockedProgram, LockedWord, is_interpreter, is_shell};

/// How many refusals are reported for one command.
const MAX_REPORTED: usize = 5;

/// How many locks are remembered with their rules.
const REMEMBERED: usize = 32;

/// Locks in the form the keeper takes. Most commands have a lock that one of the last had, so those are remembered.
#[derive(Debug, Default)]
pub struct KnownRules(Mutex<VecDeque<KnownLock>>);

#[derive(Debug)]
struct KnownLock {
    lock: Lock,
    path: Vec<u8>,
    rules: EncodedRules,
}

impl KnownRules {
    /// The rules of a lock. `path` is the server's `PATH`.
    pub fn of(&self, lock: Lock, path: Option<&OsStr>) -> EncodedRules {
        let path = path.unwrap_or_default().as_bytes();
        let last = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&KnownLock| is_same(&known.lock, &lock) && known.path == path;
        if let Some(known) = last().iter().find(is_it) {
            return known.rules.clone();
        }
        let rules = EncodedRules::from(&translated(&lock, path));
        let mut last = last();
        last.truncate(REMEMBERED - 1);
        last.push_front(KnownLock { lock, path: path.to_vec(), rules: rules.clone() });
        rules
    }
}

/// Whether two locks are certainly the same. What is allowed is only compared by its address.
fn is_same(one: &Lock, other: &Lock) -> bool {
    let allowed = match (&one.allowed, &other.allowed) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    allowed && one.denied == other.denied && one.variables == other.variables
}

fn translated(lock: &Lock, path: &[u8]) -> ExecRules {
    let argument = |word: &LockedWord| match word {
        LockedWord::Known(text) => Argument::Known(text.clone()),
        LockedWord::Begins(start) => Argument::Begins(start.clone()),
        LockedWord::AllBegin(start) => Argument::AllBegin(start.clone()),
        LockedWord::Any => Argument::Any,
        LockedWord::Many => Argument::Many,
        LockedWord::Operand => Argument::Operand,
        LockedWord::Operands => Argument::Operands,
    };
    let call = |call: &LockedCall| AllowedCall {
        words: call.words.iter().map(argument).collect(),
        limit: call
            .limit
            .as_ref()
            .map(|it| CallLimit { rule: it.rule.clone(), directory: it.directory.clone().into() }),
    };
    let program = |program: &LockedProgram| AllowedProgram {
        name: program.name.clone(),
        files: program.files.iter().map(Into::into).collect(),
        named: program.named,
        calls: program.arguments.as_ref().map(|all| all.iter().map(call).collect()),
        may_run: match &program.may_run {
            mcpz_policy::MayRun::Only(programs) => MayRun::Only(programs.clone()),
            mcpz_policy::MayRun::Anything => MayRun::Anything,
            mcpz_policy::MayRun::AsBefore => MayRun::AsBefore,
        },
    };
    ExecRules {
        allowed: lock.allowed.as_ref().map(|programs| programs.iter().map(program).collect()),
        path: path.to_vec(),
        denied: lock.denied.clone(),
        variables: lock.variables.clone(),
    }
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
    let times = match times {
        1 => String::new(),
        times => format!(" ({times} times)"),
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
    let fix = match why {
        RefusedBecause::Denied(rule) => format!("the rule `{rule}` denies it for every program"),
        RefusedBecause::NotAllowed => match advice(program, script(by, command_line)) {
            Some(advice) => format!("the command does not name it; {advice}"),
            None => "the command does not name it".to_owned(),
        },
        RefusedBecause::Variable(variable) => format!(
            "a rule allows it only with certain arguments, and the variable `{variable}` could change what it does; a \
             rule `{variable}=*` would allow that"
        ),
        RefusedBecause::Unclear => "it could not be found out what it would execute".to_owned(),
        RefusedBecause::Elsewhere => format!(
            "`{by}` has another root folder or other mounts, where a name may mean another program"
        ),
        RefusedBecause::Changed => {
            "it, or what runs it, has changed since the command began; execute it in a call of its own".to_owned()
        }
        RefusedBecause::Format => {
            "the kernel would run it with an interpreter of its own (binfmt_misc); name that one instead"
                .to_owned()
        }
        RefusedBecause::Mount => {
            return format!(
                "policy: {from}{parent} was not allowed to change what is mounted{times}: that could put another file \
                 in place of an allowed program"
            );
        }
    };
    format!("policy: {from}{parent} was not allowed to execute `{what}`{times}: {fix}")
}

/// The script that a process runs, if it is an interpreter that got a path, or else its own name.
fn script<'a>(by: &'a str, command_line: &'a [String]) -> &'a str {
    match command_line {
        [_, script, ..] if script.contains('/') && (is_shell(by) || is_interpreter(by)) => script,
        _ => by,
    }
}

/// How to let a program run another one, if a setting can.
fn advice(program: &str, by: &str) -> Option<String> {
    const SYSTEM: [&str; 6] =
        ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
    let (folder, name) = program.rsplit_once('/')?;
    // A shell may run what the program may that started it, and a loader runs any.
    if is_shell(by) || name.starts_with("ld-") {
        return None;
    }
    let told = |may_run| format!("[[policy.runs]] program = \"{by}\", may_run = [\"{may_run}\"]");
    let is_firm = program.starts_with('/') && !program.contains("/../");
    Some(match (is_firm, SYSTEM.contains(&folder)) {
        (true, true) => format!("to allow it, tell what `{by}` may run: {}", told(name)),
        (true, false) => format!("to allow it, tell what `{by}` may run: {}", told(program)),
        (false, _) => format!(
            "no rule can allow just this, as a relative path may be any file; {} lets `{by}` run anything",
            told("*")
        ),
    })
}
