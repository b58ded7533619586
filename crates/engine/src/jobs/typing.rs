//! Judges what is typed into jobs: shells and interpreters run it, and others may.
//!
//! Everyone counts who may come to read it, because text waits in the terminal until someone does.
//!
//! All text typed so far is judged together, because the reader executes it as one program. So the engine must know all
//! of it: once another server has typed into the job, nothing more can be judged. What people type does not count.
//! It must also know how the job was started, because its directory and variables count for what is typed.

use std::sync::{Arc, PoisonError};

use mcpz_agent::{InputMode, InputReader};
use mcpz_policy::{InputWay, Lock, Policy, Reader, Scene, TypedText, TypingError};

use super::{Job, JobState};
use crate::error::Error;
use crate::resolved::Beginning;

/// What to type: text, then keys, then the end of input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typing {
    pub text: String,
    /// The names of the keys.
    pub keys: Vec<String>,
    /// The bytes a terminal sends for them.
    pub pressed: Vec<u8>,
    pub eof: bool,
}

impl Typing {
    /// Whether there is nothing to type.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.keys.is_empty() && !self.eof
    }

    /// The bytes of text and keys.
    pub fn bytes(&self) -> Vec<u8> {
        [self.text.as_bytes(), &self.pressed].concat()
    }

    /// The text, with a line break for each enter key, and an escape for each key of that name.
    fn lines(&self) -> String {
        let ends = self.keys.iter().filter_map(|key| match key.to_lowercase().as_str() {
            "enter" => Some('\n'),
            "esc" | "escape" => Some('\u{1b}'),
            _ => None,
        });
        self.text.replace('\r', "\n").chars().chain(ends).collect()
    }

    /// This alone, for a program that is in this state.
    fn as_text(&self, way: InputWay) -> TypedText<'_> {
        let text = &self.text;
        TypedText { command: "", whole: text, new: text, unread: 0, keys: &self.keys, way }
    }
}

/// Who may read what is typed as more than data, and how.
#[derive(Debug)]
pub struct Interpreters {
    readers: Vec<InputReader>,
    way: InputWay,
}

impl Interpreters {
    pub fn none() -> Self {
        Self { readers: Vec::new(), way: InputWay::Stream }
    }
}

/// What was typed through this engine.
#[derive(Debug, Default)]
pub struct Typed {
    /// The part that an interpreter read.
    program: String,
    /// Where in that the part begins that a shell may not have read yet.
    unread: usize,
    /// The number of bytes in total.
    sent: u64,
}

impl Job {
    /// Refuses what the policy does not let one of these programs read. Otherwise calls `type_it` with the number of
    /// bytes that must have been written before and with what may be executed for it, and remembers the text. The
    /// job adds to the scene how it began.
    pub(crate) fn check_typing(
        &self,
        policy: &Policy,
        scene: &Scene<'_>,
        (typing, interpreters): (&Typing, Interpreters),
        type_it: impl FnOnce(Option<u64>, Vec<Lock>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Interpreters { readers, way } = interpreters;
        let bytes = typing.bytes();
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = typed.sent;
        if readers.is_empty() {
            type_it(None, Vec::new())?;
            typed.sent += bytes.len() as u64;
            return Ok(());
        }
        if self.life.borrow().written > before {
            return Err(Error::TypedElsewhere { program: names(&readers) });
        }
        let Some(beginning) = self.beginning.get() else {
            return Err(Error::BeginningUnknown { program: names(&readers) });
        };
        let scene = Scene {
            directory: &beginning.directory.to_string_lossy(),
            variables: &beginning.environment,
            typed: true,
            ..*scene
        };
        let whole = [typed.program.as_str(), &typing.lines()].concat();
        // A shell that waits has read everything, and nothing else reads before it.
        let is_idle =
            |reader: &InputReader| reader.waits && as_read(reader, &arguments(reader)).is_shell();
        let unread = if readers.iter().any(is_idle) { typed.program.len() } else { typed.unread };
        let mut locks = Vec::new();
        for reader in &readers {
            let text = TypedText {
                command: &beginning.text,
                whole: &whole,
                unread,
                ..typing.as_text(way)
            };
            let arguments = arguments(reader);
            match policy.judge_typed(&as_read(reader, &arguments), &text, &scene) {
                Ok(lock) => locks.extend(lock),
                Err(TypingError::Denied(denial)) => return Err(Error::Refused(denial)),
                Err(TypingError::Keys) => {
                    return Err(Error::UnjudgeableKeys { program: names(&readers) });
                }
            }
        }
        // Before it is remembered: text that was not typed must not precede the next one.
        type_it(Some(before), locks)?;
        *typed = Typed { program: whole, unread, sent: before + bytes.len() as u64 };
        Ok(())
    }

    /// Keeps what it was started with, if another process runs it.
    pub(crate) fn remember(&self, beginning: Option<Beginning>) {
        if let Some(beginning) = beginning {
            let _ = self.beginning.set(Arc::new(beginning));
        }
    }

    /// The programs that may read this as more than data.
    pub(crate) async fn interpreters(&self, typing: &Typing) -> Result<Interpreters, Error> {
        let (mut readers, mode) = match self.controls.inspector().readers().await {
            Some(found) => found,
            None if self.state() != JobState::Running => return Ok(Interpreters::none()),
            None => return Err(Error::ReadersUnknown),
        };
        let way = match mode {
            InputMode::Stream => InputWay::Stream,
            InputMode::Line => InputWay::Line,
            InputMode::Secret => InputWay::Secret,
            InputMode::Keys => InputWay::Keys,
        };
        readers
            .retain(|reader| !as_read(reader, &arguments(reader)).reads_data(&typing.as_text(way)));
        Ok(Interpreters { readers, way })
    }
}

fn as_read<'a>(reader: &'a InputReader, arguments: &'a [String]) -> Reader<'a> {
    Reader { name: &reader.name, arguments, relays: reader.relays }
}

fn arguments(reader: &InputReader) -> Vec<String> {
    reader.arguments.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The names of the programs, for messages.
fn names(readers: &[InputReader]) -> String {
    let mut names: Vec<_> = readers.iter().map(|reader| &*reader.name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
