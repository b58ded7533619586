//! What a script leaves for the commands that its shell runs after it.
//!
//! A session's commands are judged behind those before them. Most commands only run programs that write no file, so
//! they need not be remembered. What builtins leave is in the tables here.

use crate::names::Names;
use crate::script::{Script, SimpleCommand, Word};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traces {
    /// Nothing that changes what a later command means.
    #[default]
    Nothing,
    /// Values: of variables, the directory, options, files.
    Values,
    /// Code that may run in place of later commands: functions, aliases, traps. Whatever runs from then on may leave
    /// traces, too.
    Code,
}

/// Builtins that leave nothing.
const HARMLESS: Names =
    Names("echo printf true false : test [ pwd exit wait jobs kill type times ulimit umask");

/// Builtins that leave values.
const SETTING: Names = Names(
    "cd chdir pushd popd dirs export readonly declare typeset local let read mapfile readarray \
     getopts set shift unset shopt hash disown bg fg history suspend logout return break continue \
     caller compgen help",
);

/// Builtins that leave code, or run some.
const RUNNING: Names =
    Names(". source eval alias unalias trap enable exec builtin command fc bind complete compopt");

/// Whether shells run it themselves, so that no program is executed.
pub fn is_builtin(name: &str) -> bool {
    [HARMLESS, SETTING, RUNNING].iter().any(|names| names.has(name))
}

impl Traces {
    /// What a script leaves in its shell.
    pub(crate) fn in_shell(script: &Script) -> Self {
        if !script.function_names.is_empty() {
            return Self::Code;
        }
        let sets = !script.set_variables.is_empty()
            || !script.arithmetic_variables.is_empty()
            || !script.descriptor_variables.is_empty();
        let own = if sets { Self::Values } else { Self::Nothing };
        script.commands.iter().map(Self::of_command).fold(own, Self::max)
    }

    fn of_command(command: &SimpleCommand) -> Self {
        let literal = |at: usize| command.words.get(at).and_then(Word::literal);
        let assigns = if command.assignments.is_empty() { Self::Nothing } else { Self::Values };
        let Some(first) = command.words.first() else { return assigns };
        let Some(name) = first.literal() else { return Self::Code };
        let own = match &*name {
            "printf" if literal(1).is_none_or(|option| option.starts_with('-')) => Self::Values,
            "command" if literal(1).is_some_and(|option| option == "-v") => Self::Nothing,
            name if HARMLESS.has(name) => Self::Nothing,
            name if SETTING.has(name) => Self::Values,
            name if RUNNING.has(name) => Self::Code,
            _ => Self::Nothing,
        };
        own.max(assigns)
    }
}
