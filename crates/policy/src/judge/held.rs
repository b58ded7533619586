//! What is left to the kernel, if it holds the rules: the deny rules, for programs that processes of the request
//! execute with arguments that the keeper of the run sees, and the arguments with which allowed programs may run.

use super::Judge;
use crate::call::Call;
use crate::identity;
use crate::limit::has_reach;
use crate::locked::{LockedArguments, LockedCall, LockedLimit, LockedWord};
use crate::names::Names;
use crate::paths::{ProgramPaths, base_name};
use crate::programs;
use crate::rule::{CommandName, Rule};
use crate::script::Word;
use crate::traces::is_builtin;

/// Builtins that change nothing outside the shell.
const HARMLESS: Names = Names(": [ break cd continue echo exit false printf pwd return test true");

/// Programs and builtins that execute a command in the same process or in one they start themselves. Others may have it
/// executed on another machine, by a service, or by nobody: `busybox` is all its programs itself.
const EXECUTE: Names = Names(
    ". builtin command coproc doas env eval exec fd find flock ionice nice nohup setsid source \
     stdbuf sudo time timeout trap xargs",
);

/// Programs that execute commands below them and nowhere else, besides interpreters.
const LOCAL: Names = Names("awk find make sed sort tar xargs");

impl Judge<'_> {
    /// Whether the keeper will see the arguments for which only the run knows whether the rule denies them.
    pub(super) fn is_held(&self, name: &CommandName, rule: &Rule) -> bool {
        let is_seen = |name: &str| {
            // A rule about no program in particular need not hold what changes nothing.
            !is_builtin(name) || (HARMLESS.has(name) && rule.program().is_none())
        };
        self.held && name.known().is_some_and(is_seen)
    }

    /// Whether the keeper will see all that this program could run, and the policy restricts nothing else.
    pub(super) fn is_left_to_kernel(&self, program: &str) -> bool {
        self.held
            && (LOCAL.has(program) || programs::is_interpreter(program))
            && self.policy.restricts_only_names()
            && self.policy.deny.iter().all(is_about_executed)
    }

    /// Where the program with this path is. Where the kernel holds it to these files, only those count that a rule
    /// allows: a `cd` may fail, and then what is there instead is not executed.
    pub(super) fn program_paths(&self, word: &Word) -> Option<ProgramPaths> {
        let paths = self.knowledge.program_paths(word)?;
        let rules = self.policy.allow.iter().filter_map(Rule::path);
        let matching = self.held.then(|| paths.matching(rules)).flatten();
        Some(matching.unwrap_or(paths))
    }

    /// The arguments of a command, if the rules do not allow its program with any.
    pub(super) fn only_arguments(
        &self,
        name: &CommandName,
        call: &Call<'_>,
        rule: Option<usize>,
    ) -> Option<LockedCall> {
        let bare = &call.words[..1];
        let whole = |rule: &Rule| rule.whole_program().is_some() && rule.allows(name, bare);
        if self.policy.allow.is_empty() || self.policy.allow.iter().any(whole) {
            return None;
        }
        let is_limit = name.known().is_some_and(|name| has_reach(base_name(name)));
        let limit = rule.filter(|_| is_limit).map(|at| LockedLimit {
            rule: self.policy.allow[at].to_string(),
            directory: self.knowledge.directories.rules_begin().to_owned(),
        });
        Some(LockedCall { words: call.arguments().iter().map(locked).collect(), limit })
    }

    /// Does something with what a program runs.
    pub(super) fn run_by<T>(&mut self, program: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let stays = EXECUTE.has(program) || programs::is_shell(program);
        let held = self.held;
        self.held &= stays;
        let done = act(self);
        self.held = held;
        done
    }
}

/// Whether a deny rule is about a program that the kernel executes by itself: neither a shell nor an interpreter is
/// that program.
fn is_about_executed(rule: &Rule) -> bool {
    rule.program().is_some_and(|name| {
        !name.contains('*') && !is_builtin(name) && !identity::is_script(identity::program(name))
    })
}

/// A word of a command as the lock takes it.
fn locked(word: &Word) -> LockedWord {
    let beginning = Some(word.beginning()).filter(|it| !it.is_empty() && !word.starts_with_tilde());
    let is_pattern = word.is_pattern() && word.text().is_some();
    match (word.literal(), word.is_single(), word.is_operand()) {
        (Some(text), ..) => LockedWord::Known(text.into()),
        (None, true, _) if beginning.is_some() => LockedWord::Begins(beginning.unwrap_or_default()),
        (None, false, _) if is_pattern && beginning.is_some() => {
            LockedWord::AllBegin(beginning.unwrap_or_default())
        }
        (None, true, true) => LockedWord::Operand,
        (None, true, false) => LockedWord::Any,
        (None, false, true) => LockedWord::Operands,
        (None, false, false) => LockedWord::Many,
    }
}

/// How programs have a shell run a text that was judged. It has no arguments, which the text could run.
pub fn shell_arguments(text: &str) -> [LockedArguments; 3] {
    let known = |word: &str| LockedWord::Known(word.to_owned());
    [vec!["-c", text], vec!["-c", "--", text], vec!["-c", text, text]]
        .map(|words| words.into_iter().map(known).collect())
}
