//! Judges what is typed into jobs: shells and interpreters run it, and others may.
//!
//! All text typed so far is judged together, because the reader executes it as one program. So the engine must know all
//! of it: once another server has typed into the job, nothing more can be judged. What people type does not count.
//! It must also know how the job was started, because its directory and variables count for what is typed.

use std::sync::{Arc, PoisonError};

use mcpz_agent::InputReader;
use mcpz_policy::{Lock, Policy, Reader, Scene, TypedText, TypingError};

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

    /// The text, with a line break for each enter key.
    fn lines(&self) -> String {
        let enters = self.keys.iter().filter(|key| key.eq_ignore_ascii_case("enter"));
        let breaks = "\n".repeat(enters.count());
        [self.text.replace('\r', "\n"), breaks].concat()
    }
}

/// What was typed through this engine.
#[derive(Debug, Default)]
pub struct Typed {
    /// The part that an interpreter read.
    program: String,
    /// The number of bytes in total.
    sent: u64,
}

impl Job {
    /// Refuses what the policy does not let one of these programs read. Otherwise calls `type_it` with the number of
    /// bytes that must have been written before and with what may be executed for it, and remembers the text.
    pub(crate) fn check_typing(
        &self,
        policy: &Policy,
        home: Option<&str>,
        (typing, readers): (&Typing, Vec<InputReader>),
        type_it: impl FnOnce(Option<u64>, Vec<Lock>) -> Result<(), Error>,
    ) -> Result<(), Error> {
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
            home,
            variables: &beginning.environment,
            typed: true,
        };
        let whole = [typed.program.as_str(), &typing.lines()].concat();
        let mut locks = Vec::new();
        for reader in &readers {
            let arguments = arguments(reader);
            let (new, keys, terminal) = (&*typing.text, &*typing.keys, self.has_terminal());
            let command = &beginning.text;
            let text = TypedText { command, whole: &whole, new, keys, terminal };
            let reader = Reader { name: &reader.name, arguments: &arguments };
            match policy.judge_typed(&reader, &text, &scene) {
                Ok(lock) => locks.extend(lock),
                Err(TypingError::Denied(denial)) => return Err(Error::Refused(denial)),
                Err(TypingError::Keys) => {
                    return Err(Error::UnjudgeableKeys { program: names(&readers) });
                }
            }
        }
        // Before it is remembered: text that was not typed must not precede the next one.
        type_it(Some(before), locks)?;
        *typed = Typed { program: whole, sent: before + bytes.len() as u64 };
        Ok(())
    }

    /// Keeps what it was started with, if another process runs it.
    pub(crate) fn remember(&self, beginning: Option<Beginning>) {
        if let Some(beginning) = beginning {
            let _ = self.beginning.set(Arc::new(beginning));
        }
    }

    /// The programs that read its input as more than data.
    pub(crate) async fn interpreters(&self) -> Result<Vec<InputReader>, Error> {
        let mut readers = match self.controls.inspector().readers().await {
            Some((readers, _)) => readers,
            None if self.state() != JobState::Running => Vec::new(),
            None => return Err(Error::ReadersUnknown),
        };
        readers.retain(|reader| {
            !Reader { name: &reader.name, arguments: &arguments(reader) }.reads_data()
        });
        Ok(readers)
    }
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
