//! What is typed for a shell or an interpreter is a program, and is judged like one.

use std::sync::PoisonError;

use mcpz_agent::Reader;
use mcpz_policy::{Judgement, Policy, Scene, Verdict, reads_programs};

use super::{Job, State};
use crate::error::Error;

/// Stands behind a text that is judged as what a program reads.
const END: &str = "MCPZ_END_OF_INPUT";

/// What is typed: text, then keys, then that nothing more comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typing {
    pub text: String,
    /// The keys by their names.
    pub keys: Vec<String>,
    /// What a terminal sends for them.
    pub pressed: Vec<u8>,
    pub eof: bool,
}

impl Typing {
    /// Whether there is nothing to type.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.keys.is_empty() && !self.eof
    }

    /// What is written for text and keys.
    pub fn bytes(&self) -> Vec<u8> {
        [self.text.as_bytes(), &self.pressed].concat()
    }

    /// Whether it is text and the ends of lines alone.
    fn is_plain(&self) -> bool {
        self.keys.iter().all(|key| key.eq_ignore_ascii_case("enter"))
    }
}

/// What was typed by us.
#[derive(Debug, Default)]
pub struct Typed {
    /// All of it that something takes for a program.
    program: String,
    /// How many bytes it was in all.
    sent: u64,
}

impl Job {
    /// Refuses what one of these programs, which take what they read for a program, must not be told: what other
    /// keys than enter do to them, nobody knows before. What is not refused is typed with `type_it`, behind as
    /// much as must have been typed before, and counts from then on.
    pub(crate) fn check_typing(
        &self,
        policy: &Policy,
        scene: &Scene<'_>,
        (typing, readers): (&Typing, Vec<String>),
        type_it: impl FnOnce(Option<u64>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bytes = typing.bytes();
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = typed.sent;
        if readers.is_empty() {
            type_it(None)?;
            typed.sent += bytes.len() as u64;
            return Ok(());
        }
        if self.life.borrow().written > before {
            return Err(Error::TypedElsewhere { program: readers.join(", ") });
        }
        let text = String::from_utf8_lossy(&bytes);
        let edits = |c: char| c.is_control() && !"\n\r".contains(c);
        if !typing.is_plain() || text.contains(edits) || text.contains(END) {
            return Err(Error::Keys { program: readers.join(", ") });
        }
        let whole = format!("{}{}", typed.program, text.replace('\r', "\n"));
        for reader in readers {
            let script = format!("{reader} <<'{END}'\n{whole}\n{END}\n");
            let Judgement { verdict, .. } = policy.judge(&script, "bash", scene);
            if let Verdict::Deny(denial) = verdict {
                return Err(Error::Refused(denial));
            }
        }
        // What was not typed after all must not be what the next text is judged behind.
        type_it(Some(before))?;
        *typed = Typed { program: whole, sent: before + bytes.len() as u64 };
        Ok(())
    }

    /// The names of its programs that read what is typed and take it for a program.
    pub(crate) async fn interpreters(&self) -> Result<Vec<String>, Error> {
        let readers = match self.controls.inspector().readers().await {
            Some(readers) => readers,
            None if self.state() != State::Running => Vec::new(),
            None => return Err(Error::Unseen),
        };
        let taking = readers.into_iter().filter(|reader| !is_given_its_program(reader));
        let mut names: Vec<_> =
            taking.map(|reader| reader.name).filter(|name| reads_programs(name)).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Whether it was started with its program: `sh -c text`, `python3 file`.
fn is_given_its_program(reader: &Reader) -> bool {
    let mut arguments = reader.arguments.iter().filter(|word| !word.is_empty());
    let given = |word: &Vec<u8>| {
        matches!(word.as_slice(), b"-c" | b"-e" | b"-m") || !word.starts_with(b"-")
    };
    let interactive = reader.arguments.iter().any(|word| word == b"-i");
    !interactive && arguments.any(given)
}
