//! Judges what is typed into jobs: for a shell or an interpreter it is a program.
//!
//! All text typed so far is judged together, because the reader executes it as one program. So the engine must know all
//! of it: once another server has typed into the job, nothing more can be judged. What people type does not count.

use std::sync::PoisonError;

use mcpz_agent::InputReader;
use mcpz_policy::{Judgement, Lock, Policy, Scene, Verdict, reads_programs};

use super::{Job, JobState};
use crate::error::Error;

/// Ends the here-document in which typed text is judged.
const END: &str = "MCPZ_END_OF_INPUT";

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

    /// Whether it consists of text and the enter key only.
    fn is_plain(&self) -> bool {
        self.keys.iter().all(|key| key.eq_ignore_ascii_case("enter"))
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
    /// Refuses what the policy denies to one of these interpreters, and keys other than enter, whose effect nobody can
    /// predict. Otherwise calls `type_it` with the number of bytes that must have been written before and with what may
    /// be executed for it, and remembers the text.
    pub(crate) fn check_typing(
        &self,
        policy: &Policy,
        scene: &Scene<'_>,
        (typing, readers): (&Typing, Vec<String>),
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
            return Err(Error::TypedElsewhere { program: readers.join(", ") });
        }
        let text = String::from_utf8_lossy(&bytes);
        let edits = |c: char| c.is_control() && !"\n\r".contains(c);
        if !typing.is_plain() || text.contains(edits) || text.contains(END) {
            return Err(Error::UnjudgeableKeys { program: readers.join(", ") });
        }
        let whole = format!("{}{}", typed.program, text.replace('\r', "\n"));
        let mut locks = Vec::new();
        for reader in readers {
            let script = format!("{reader} <<'{END}'\n{whole}\n{END}\n");
            let Judgement { verdict, lock, .. } = policy.judge(&script, "bash", scene);
            if let Verdict::Deny(denial) = verdict {
                return Err(Error::Refused(denial));
            }
            locks.extend(lock);
        }
        // Before it is remembered: text that was not typed must not precede the next one.
        type_it(Some(before), locks)?;
        *typed = Typed { program: whole, sent: before + bytes.len() as u64 };
        Ok(())
    }

    /// The names of its interpreters that read input as a program.
    pub(crate) async fn interpreters(&self) -> Result<Vec<String>, Error> {
        let readers = match self.controls.inspector().readers().await {
            Some(readers) => readers,
            None if self.state() != JobState::Running => Vec::new(),
            None => return Err(Error::ReadersUnknown),
        };
        let taking = readers.into_iter().filter(|reader| !has_program_argument(reader));
        let mut names: Vec<_> =
            taking.map(|reader| reader.name).filter(|name| reads_programs(name)).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Whether it got its program when it was started: `sh -c text`, `python3 file`.
fn has_program_argument(reader: &InputReader) -> bool {
    let mut arguments = reader.arguments.iter().filter(|word| !word.is_empty());
    let given = |word: &Vec<u8>| {
        matches!(word.as_slice(), b"-c" | b"-e" | b"-m") || !word.starts_with(b"-")
    };
    let interactive = reader.arguments.iter().any(|word| word == b"-i");
    !interactive && arguments.any(given)
}
