//! What a command does besides running its own program, as data.
//!
//!     Call ─▶ programs ─▶ [Action, Action, …] ─▶ judge
//!
//! The files in [`programs`](crate::programs) list a command's actions; the judge judges them in that order.
//! They decide with what was known when the command started, as the shell expands all words of a command
//! before it runs, and they never ask the policy: whether an action is refused is up to the judge.

use crate::knowledge::Knowledge;
use crate::script::{Shell, Span, Word};

#[derive(Debug)]
pub enum Action {
    /// Runs a command, which the rules have to allow like any other: the one after `env` or `find -exec`.
    Run(Vec<Word>),
    /// Runs a command that belongs to an allowed program (`npx`, `uv run`): only deny rules apply.
    RunOwn(Vec<Word>),
    /// Runs a text as a script: `sh -c`, `eval`, the value of `git -c core.pager`.
    RunScript { text: String, span: Span, by: Runner },
    /// Runs a program in a language that is not understood, such as Python.
    RunForeign { texts: Vec<String>, span: Span },
    /// Changes which words become of a pattern: `shopt -s nullglob`.
    ChangePatterns { span: Span },
    /// Runs code later than it stands there: `trap`.
    RunLater,
    /// Opens a file as a program, which a deny rule may name: `node /usr/bin/npm publish`.
    Open(Vec<Word>),
    /// The same for a file that only the run will know: `python3 "$script" install`.
    OpenUnknown(Vec<Word>),
    /// Takes a file away from where it is: `mv`.
    Take(Word),
    /// Copies files, and links among them as links, by the names of `made`.
    CopyLinks { sources: Vec<Word>, made: Vec<Word> },
    /// Reads a makefile that only the run will know.
    UnknownGoals { span: Span },
    /// Evaluates a text as arithmetic or as a subscript.
    Evaluate { text: String, span: Span },
    /// Evaluates a word as arithmetic, in which every value has to be a number.
    EvaluateNumber(Word),
    /// Takes a word for the name of a variable, whose subscript it evaluates.
    UseName(Word),
    /// Sets the arguments of a script, or of this one: `set -- a b`.
    SetArguments(Vec<Word>),
    /// Reads a file as a part of this script: `source`.
    Source,
    /// Removes the first arguments: `shift`.
    ShiftArguments,
    /// Makes a variable an array.
    MakeArray { name: String },
    /// Lets arrays have texts as keys: `declare -A`.
    AllowTextKeys,
    /// Evaluates variables, whose values then become code.
    EvaluateVariables,
    /// Sets a variable that later words of the script may use. The value is `None` if only the run will know it.
    Assign { name: String, value: Option<Word>, span: Span },
    /// Passes a variable on to programs. The value is `None` if it is the one the variable has.
    Export { name: String, value: Option<Word>, span: Span },
    /// Passes all variables on to programs from here on.
    ExportAll,
    /// Sets a variable that no later word uses: with `let` to a number, or for another program.
    SetOnly { name: String, value: Option<Word>, span: Span },
    /// Makes a name stand for words: `alias`.
    Alias { name: String, words: Vec<Word> },
    /// Removes a variable, or a function.
    Unset { name: String },
    /// Removes functions.
    UnsetFunctions,
    /// Writes a file that its arguments name.
    Write(Word),
    /// Writes a file although that is not what the program is for: `w` in a program for `sed`.
    WriteAside(Word),
    /// May write a file that an unknown word names: `git log $x`.
    HiddenWrite { span: Span },
    /// May write another file than it seems, because of an option that is not known: `tee --new x`.
    UnclearWrite { span: Span, what: &'static str },
    /// May create a file of this base name somewhere: `cp x folder`.
    Create(Word),
    /// May create a link of this base name somewhere: `ln -s /etc folder`.
    Link(Word),
    /// Deletes files: `find -delete`.
    Delete { span: Span },
    /// Changes the directory.
    Enter(Word),
    /// Changes to a directory that only the run will know.
    EnterUnknown,
    /// Could run anything.
    Opaque { span: Span, what: &'static str },
    /// Depends on something that only the run will know.
    Unresolved { span: Span, what: &'static str },
}

/// Who runs a text as a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// The shell of the script, which knows its functions.
    ThisShell,
    /// Another process, which does not.
    NewShell(Shell),
}

impl Runner {
    /// `sh`, which most programs start to run a text.
    pub const SH: Self = Self::NewShell(Shell::Sh);
}

/// The actions of one command, while they are listed.
pub struct Actions<'a> {
    pub knowledge: &'a Knowledge,
    list: Vec<Action>,
}

impl<'a> Actions<'a> {
    pub fn new(knowledge: &'a Knowledge) -> Self {
        Self { knowledge, list: Vec::new() }
    }

    pub fn into_list(self) -> Vec<Action> {
        self.list
    }

    pub fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    pub fn run(&mut self, words: Vec<Word>) {
        self.push(Action::Run(words));
    }

    /// Runs a word's text as a script.
    pub fn run_text(&mut self, word: &Word, by: Runner) {
        self.run_joined(std::slice::from_ref(word), by);
    }

    /// Runs words as a script, with blanks between them.
    pub fn run_joined(&mut self, words: &[Word], by: Runner) {
        let span = crate::call::span_of(words);
        let texts: Option<Vec<_>> = words.iter().map(Word::text).collect();
        match texts {
            Some(texts) => self.push(Action::RunScript { text: texts.join(" "), span, by }),
            None => self.unresolved(span, "text that becomes a script"),
        }
    }

    pub fn opaque(&mut self, span: Span, what: &'static str) {
        self.push(Action::Opaque { span, what });
    }

    pub fn unresolved(&mut self, span: Span, what: &'static str) {
        self.push(Action::Unresolved { span, what });
    }

    /// Whether a word that only the run will know may be an option of a program.
    pub fn may_be_option(&self, word: &Word) -> bool {
        self.knowledge.may_be_option(word)
    }
}
