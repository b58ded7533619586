//! A parsed script: every command in it, wherever it hides.
//!
//!     text ─▶ Parser ─▶ Script { commands, functions, variables, … }
//!             (bytes, words, expansions, commands, compounds)
//!
//! Closed world: a construct that is not understood for certain is a [`ParseError`], never skipped, and so
//! is one on which shells differ. The parser is our own because others do not say "I do not know". The
//! commands are a flat list in reading order, because a judge looks at each of them whether or not it
//! will run.

mod listing;
mod parser;
mod word;

use std::ops::Range;

pub use listing::is_listing;
use parser::Parser;
pub use word::{Origin, Piece, Word, is_name};

/// A range of bytes in the text that was sent. Text inside text (backquotes, the argument of `eval`)
/// has the range of the whole inner text.
pub type Span = Range<usize>;

/// How much is parsed of a text.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest text, in bytes.
    bytes: usize,
    /// The most commands, including nested ones.
    pub commands: usize,
    too_long: &'static str,
    pub too_many: &'static str,
}

impl Limits {
    /// For a text that is sent at once.
    pub const ONE: Self = Self {
        bytes: 64 << 10,
        commands: 256,
        too_long: "it is longer than 64 KiB",
        too_many: "it has too many commands",
    };

    /// For everything that a shell has got so far, in many texts.
    pub const MANY: Self =
        Self { bytes: 256 << 10, commands: 4096, too_long: FULL, too_many: FULL };
}

const FULL: &str = "its shell has got more commands than the policy can follow; start another one";

/// How deep constructs may nest.
pub const MAX_DEPTH: u32 = 32;
/// How many bytes the parser may consume in total. Some constructs are parsed twice, and a text made of
/// nothing else would take forever. This many take well under 50 ms.
const MAX_STEPS: u32 = 1024 * 1024;

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// POSIX, as `dash` reads it.
    Sh,
    Bash,
}

/// Why a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ParseError {
    pub span: Span,
    pub what: &'static str,
}

/// Everything found in a text.
#[derive(Debug, Default)]
pub struct Script {
    pub commands: Vec<SimpleCommand>,
    /// Functions that are certainly defined, each with the number of commands before its definition ends.
    pub functions: Vec<(String, usize)>,
    /// The names of all functions in it.
    pub function_names: Vec<String>,
    /// Variables set by something other than an assignment: `for x`, `${x:=…}`.
    pub set_variables: Vec<(String, Span)>,
    /// Variables in arithmetic, which can only turn them into numbers.
    pub arithmetic_variables: Vec<(String, Span)>,
    /// Variables that hold a descriptor number: `{x}>file`.
    pub descriptor_variables: Vec<(String, Span)>,
    /// Variables that are arrays.
    pub arrays: Vec<String>,
    /// The variables of loops, each with the words it takes.
    loops: Vec<(String, Vec<Word>)>,
    /// Texts that become code if something evaluates them: `'a[$(rm x)]'`.
    pub suspects: Vec<(String, Span)>,
    /// Words that the shell evaluates as arithmetic.
    pub evaluated: Vec<Word>,
    /// Words that the shell takes for the names of variables: `${!x}`, `[[ -v x ]]`.
    pub named: Vec<Word>,
    /// Whether something evaluates text: arithmetic, subscripts, `[[ -v`.
    pub evaluates: bool,
    /// The bodies of here-documents, by the number in [`RedirectKind::HereDocument`].
    here_documents: Vec<Option<Word>>,
    pipelines: usize,
    steps: u32,
    limits: Limits,
}

/// A simple command as POSIX defines it: assignments, words and redirections.
#[derive(Debug, Default, Clone)]
pub struct SimpleCommand {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// Whether it reads the output of another command.
    pub piped: bool,
    /// A number that all commands of a pipeline share.
    pub pipeline: usize,
    /// Whether it may run later or more than once, because it is in a loop or a function.
    pub repeats: bool,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
    /// `+=`
    pub appends: bool,
}

/// A variable that gets a value.
pub struct Assigned<'a> {
    pub name: &'a str,
    /// `None` if only the run will know it.
    pub word: Option<&'a Word>,
    /// `+=`
    pub appends: bool,
    /// Whether the shell expands the word to any number of words, and the variable takes one after the other.
    pub expands: bool,
}

#[derive(Debug, Clone)]
pub struct Redirect {
    /// `None` for the operator's default, or for a descriptor that a variable holds.
    pub descriptor: Option<u32>,
    pub kind: RedirectKind,
    /// Whether the file has only this output afterwards: `>` and `>|`.
    pub replaces: bool,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum RedirectKind {
    Read(Word),
    /// `>`, `>>`, `>|`, `<>`, `&>`, `&>>`.
    Write(Word),
    /// `>&` and `<&`: another descriptor, or a file if the word is not a number.
    Duplicate(Word),
    /// `<<<`
    HereString(Word),
    /// The index of the here-document's body.
    HereDocument(usize),
}

impl Default for Limits {
    fn default() -> Self {
        Self::ONE
    }
}

impl Redirect {
    /// Whether it writes no file, other than the one that keeps nothing.
    pub fn is_quiet(&self) -> bool {
        match &self.kind {
            RedirectKind::Write(word) => word.literal().is_some_and(|path| path == "/dev/null"),
            RedirectKind::Duplicate(word) => {
                let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                word.literal().is_some_and(|text| text == "-" || is_number(&text))
            }
            _ => true,
        }
    }
}

impl SimpleCommand {
    /// The redirection of its standard input.
    fn input(&self) -> Option<&Redirect> {
        let to_stdin = |redirect: &&Redirect| match redirect.descriptor {
            Some(number) => number == 0,
            None => !matches!(redirect.kind, RedirectKind::Write(_)),
        };
        self.redirects.iter().rev().find(to_stdin)
    }

    /// The file that it reads on its standard input, if its name is known.
    pub fn input_file(&self) -> Option<&Word> {
        match &self.input()?.kind {
            RedirectKind::Read(word) => Some(word).filter(|word| word.literal().is_some()),
            _ => None,
        }
    }
}

impl Script {
    /// The file that a command replaces by a text, with that text, if both are known: `cat > file <<'END'`.
    pub fn written_text<'a>(&'a self, command: &'a SimpleCommand) -> Option<(&'a Word, String)> {
        let (writes, others): (Vec<_>, Vec<_>) = command
            .redirects
            .iter()
            .partition(|redirect| matches!(redirect.kind, RedirectKind::Write(_)));
        let [Redirect { kind: RedirectKind::Write(file), replaces: true, descriptor, .. }] =
            *writes
        else {
            return None;
        };
        let words: Vec<_> = command.words.iter().map(Word::literal).collect::<Option<_>>()?;
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let text = match (words.as_slice(), others.as_slice()) {
            (["cat"], [_]) => self.input(command)?.text().map(Into::into),
            (["echo", texts @ ..], []) => {
                let plain = |text: &&str| !text.contains('\\') && !text.starts_with('-');
                texts.iter().all(plain).then(|| texts.join(" ") + "\n")
            }
            _ => None,
        }?;
        let to_output = descriptor.is_none_or(|number| number == 1);
        (to_output && command.assignments.is_empty()).then_some((file, text))
    }

    /// Parses a text. `within` is its place in the text that was sent, if it is only a part of it.
    pub fn parse(
        text: &str,
        shell: Shell,
        within: Option<Span>,
        limits: Limits,
    ) -> Result<Self, ParseError> {
        let mut script = Self { limits, ..Self::default() };
        let mut parser = Parser::new(text, shell, within, &mut script);
        if text.len() > limits.bytes {
            return Err(parser.error(limits.too_long));
        }
        parser.script()?;
        Ok(script)
    }

    /// Parses a text as something that evaluates it would: only its expansions count.
    pub fn parse_evaluated(text: &str, shell: Shell, span: Span) -> Result<Self, ParseError> {
        let mut script = Self::default();
        Parser::new(text, shell, Some(span), &mut script).expanded_text()?;
        Ok(script)
    }

    /// The variables that get a value.
    pub fn values(&self) -> impl Iterator<Item = Assigned<'_>> {
        let assigned = self.commands.iter().flat_map(|command| &command.assignments);
        let assigned = assigned.map(|assignment| Assigned {
            name: &assignment.name,
            word: Some(&assignment.value),
            appends: assignment.appends,
            expands: false,
        });
        let looped = self.loops.iter().flat_map(|(name, words)| {
            let taken =
                move |word| Assigned { name, word: Some(word), appends: false, expands: true };
            words.iter().map(taken)
        });
        let is_loop = |name: &str| {
            self.loops.iter().any(|(looped, words)| looped == name && !words.is_empty())
        };
        let set = self.set_variables.iter().filter(move |(name, _)| !is_loop(name));
        let set =
            set.map(|(name, _)| Assigned { name, word: None, appends: false, expands: false });
        assigned.chain(looped).chain(set)
    }

    /// The text on a command's standard input, or the name of the file there if only the run will know it.
    pub fn input<'a>(&'a self, command: &'a SimpleCommand) -> Option<&'a Word> {
        match &command.input()?.kind {
            RedirectKind::HereString(word) => Some(word),
            RedirectKind::HereDocument(number) => self.here_documents.get(*number)?.as_ref(),
            RedirectKind::Read(word) => Some(word).filter(|word| word.text().is_none()),
            _ => None,
        }
    }
}
