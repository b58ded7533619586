//! Judges what is typed into a running program: by what reads it, and by what may come to read it.
//!
//! A shell runs what it reads, and so do interpreters and the shells of databases. Pagers and editors run commands
//! after a few keys, file managers and monitors after one. Terminals within terminals (`tmux`, `ssh`, `script`) pass
//! everything on to a shell that nobody sees. Of a program that nobody knows, only the way it reads can be told: a line
//! that it waits for is data, and so is what comes through a pipe, but keys may do anything.
//!
//!     reader.rs   what a program does with its input
//!     keys.rs     which text and keys are harmless there
//!     table.rs    the programs that are known

mod keys;
mod reader;
mod table;

use crate::denial::{Denial, Why};
use crate::identity;
use crate::locked::Lock;
use crate::names::Names;
use crate::paths::base_name;
use crate::policy::{Policy, Scene};
use crate::programs::{is_interpreter, is_shell};
use crate::script::{Limits, Script, Shell};
pub use reader::Reader;
use reader::{Editor, Use};

/// What is typed.
#[derive(Debug, Clone, Copy)]
pub struct TypedText<'a> {
    /// The command of the job, which may have changed directory and variables for the program.
    pub command: &'a str,
    /// All text so far, up to the end of this one.
    pub whole: &'a str,
    /// The text that is about to be typed.
    pub new: &'a str,
    /// Where in the whole text the part begins that a shell may not have read yet.
    pub unread: usize,
    /// The keys after it.
    pub keys: &'a [String],
    pub way: InputWay,
}

/// How the next input is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWay {
    /// From a pipe.
    Stream,
    /// From a terminal, by a program that waits for a line.
    Line,
    /// From a terminal that hides the line, as for a password.
    Secret,
    /// From a terminal, key by key, or nobody knows how.
    Keys,
}

/// Why something may not be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypingError {
    Denied(Denial),
    /// Nobody can tell what the keys do.
    Keys,
}

/// Ends the here-document in which typed text is judged.
const END: &str = "MCPZ_END_OF_INPUT";

/// A command without any of these is a single program: `env -C /tmp x=1 bash`.
const COMPOUND: [char; 11] = ['<', '>', '|', '&', ';', '(', '{', '$', '`', '#', '\n'];

impl Policy {
    /// Judges what is typed for a program that may read it, and returns what may be executed for it, if not everything.
    pub fn judge_typed(
        &self,
        reader: &Reader<'_>,
        typed: &TypedText<'_>,
        scene: &Scene<'_>,
    ) -> Result<Option<Lock>, TypingError> {
        if !self.restricts() {
            return Ok(None);
        }
        let reader_use = reader.its_use();
        if is_data(&reader_use, typed) {
            return Ok(None);
        }
        let fine = match &reader_use {
            Use::Runs(name) | Use::Unknown { interpreter: Some(name) } => {
                return self.judge_run(name, reader, typed, scene);
            }
            Use::Edits(editor) if !keys::has_only_keys(typed, *editor) => {
                return Err(TypingError::Keys);
            }
            Use::Edits(Editor::Vi) => keys::edits(typed.whole),
            Use::Edits(_) => true,
            Use::Pages => keys::pages(typed),
            Use::ActsOnKeys => keys::leaves(typed),
            Use::Debugs => keys::steps(typed),
            Use::Starts => keys::answers(typed),
            Use::Unknown { interpreter: None } | Use::Reads => false,
        };
        if fine { Ok(None) } else { Err(refusal(reader)) }
    }

    /// Judges what is typed for a program that runs it as `name` does.
    fn judge_run(
        &self,
        name: &str,
        reader: &Reader<'_>,
        typed: &TypedText<'_>,
        scene: &Scene<'_>,
    ) -> Result<Option<Lock>, TypingError> {
        if !keys::is_plain(typed) {
            return Err(TypingError::Keys);
        }
        if typed.way != InputWay::Stream && is_shell(name) && keys::recalls(typed.whole) {
            return Err(refusal(reader));
        }
        let lock = self.judge_input(name, typed.whole, scene).map_err(TypingError::Denied)?;
        self.judge_behind(reader, typed, scene)?;
        if is_shell(identity::program(name)) {
            self.judge_rests(typed, scene)?;
        }
        Ok(lock)
    }

    /// Judges what follows a command that starts a pager, an editor or the like, which reads the rest before the shell
    /// does.
    fn judge_rests(&self, typed: &TypedText<'_>, scene: &Scene<'_>) -> Result<(), TypingError> {
        let text = typed.whole;
        // What is not understood was refused as the shell's input.
        let Ok(script) = Script::parse(text, Shell::Bash, None, Limits::MANY) else {
            return Ok(());
        };
        for command in script.commands.iter().filter(|command| command.span.end >= typed.unread) {
            let rest = text[command.span.end..].split_once('\n').map_or("", |(_, rest)| rest);
            if rest.trim().is_empty() {
                continue;
            }
            let words = command.words.iter().map(|word| word.literal().unwrap_or_default());
            let words: Vec<_> = words.map(String::from).collect();
            let rest =
                TypedText { command: "", whole: rest, new: rest, unread: 0, keys: &[], ..*typed };
            for reader in reader::started(&words).filter(Reader::takes_keys) {
                self.judge_typed(&reader, &rest, scene)?;
            }
        }
        Ok(())
    }

    /// Judges what is typed for an interpreter behind the command of its job.
    fn judge_behind(
        &self,
        reader: &Reader<'_>,
        typed: &TypedText<'_>,
        scene: &Scene<'_>,
    ) -> Result<(), TypingError> {
        let (command, text) = (typed.command.trim(), typed.whole);
        let name = identity::program(reader.name);
        if command.is_empty() || !(is_shell(name) || is_interpreter(name)) {
            return Ok(());
        }
        if text.contains(END) {
            return Err(TypingError::Keys);
        }
        let reading = |program: &str| format!("{program} <<'{END}'\n{text}\n{END}\n");
        let first = command.split_whitespace().next().map(base_name).unwrap_or_default();
        let scripts = Names("npm pnpm yarn bun npx pnpx bunx");
        let script = match command.contains(COMPOUND) || scripts.has(first) {
            // The interpreter may be any of its commands, or started by one.
            true => format!("{command}\n\n{}", reading(reader.name)),
            false => reading(command),
        };
        self.judge_script(&script, scene).map_err(TypingError::Denied)
    }
}

impl Reader<'_> {
    /// Whether it is a shell, which starts other programs that read what is typed next.
    pub fn is_shell(&self) -> bool {
        matches!(self.its_use(), Use::Runs(name) if is_shell(identity::program(&name)))
    }

    /// Whether this is only data for it, whatever was typed before.
    pub fn reads_data(&self, typed: &TypedText<'_>) -> bool {
        is_data(&self.its_use(), typed)
    }
}

fn is_data(reader_use: &Use, typed: &TypedText<'_>) -> bool {
    match (reader_use, typed.way) {
        (Use::Reads, _) | (Use::Unknown { .. }, InputWay::Stream) => true,
        (Use::Unknown { .. } | Use::Starts, InputWay::Secret)
        | (Use::Unknown { .. }, InputWay::Line) => {
            keys::is_line(typed) || keys::is_plain_answer(typed)
        }
        (Use::Unknown { .. }, InputWay::Keys) => keys::is_plain_answer(typed),
        _ => false,
    }
}

fn refusal(reader: &Reader<'_>) -> TypingError {
    let why = Why::Opaque { what: "what is typed may be a command" };
    let part = reader.name.to_owned();
    TypingError::Denied(Denial { part, span: 0..reader.name.len(), why })
}
