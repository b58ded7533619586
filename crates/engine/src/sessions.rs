//! Shells that keep their directory and variables between commands.
//!
//! A session is a shell that runs one command after another. Commands arrive, and reports leave, where commands do not
//! see them. The shell's pipes are switched to another output for each command, once everything before is kept. So the
//! report marks the end of a command's output, not anything in the text.
//!
//!     command ─▶ order ─socket▶ shell: eval ─┬─▶ stdout, stderr ─▶ the command's own Output
//!                                            └─▶ fd 62 ─▶ report: exit code, directory
//!
//! A name stands for one shell at a time, from the moment someone asks for it ([`Slot`]), and counts against the limit
//! from then on. The policy judges commands in the order they arrive, each behind those that have left something in the
//! shell.

mod command;
mod conversation;
mod dialect;
mod order;
mod slot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_output::Output;
use mcpz_policy::Traces;

pub(crate) use command::SessionCommand;
pub use dialect::Dialect;
pub(crate) use slot::{Queued, Slot};

use conversation::Conversation;

use crate::error::Error;
use crate::jobs::{Job, JobState};
use crate::outcome::{End, Location};
use crate::resolved::Beginning;
use crate::run::Channel;
use crate::sandbox::Sandbox;

/// The sessions of one owner.
#[derive(Debug, Default)]
pub struct Sessions {
    by_name: Mutex<HashMap<String, Arc<Slot>>>,
}

/// A running session.
#[derive(Debug)]
pub struct Session {
    pub name: String,
    pub(crate) job: Arc<Job>,
    /// The directory of its shell before the next command.
    directory: Mutex<PathBuf>,
    /// Only one command at a time uses it.
    conversation: tokio::sync::Mutex<Conversation>,
    /// Locked while the next command is judged.
    history: tokio::sync::Mutex<Remembered>,
    /// How long the previous session of this name was idle, if that ended it and no outcome has said so.
    expired: Mutex<Option<Duration>>,
    /// Whether the previous session of this name was lost, and no outcome has said so.
    was_lost: AtomicBool,
    /// The sandbox of its shell, if it has one.
    sandbox: Option<Arc<Sandbox>>,
}

impl Sessions {
    /// The place of a session that takes commands, if it is in one.
    pub(crate) fn place(&self, name: &str) -> Option<String> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.get(name)?.session()?.job.place().map(str::to_owned)
    }

    /// The slot of a name. Reserves one if the name is new and the limit allows it.
    pub(crate) fn slot(&self, name: &str, limit: usize) -> Result<Arc<Slot>, Error> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = by_name.get(name).filter(|slot| slot.is_used()) {
            return Ok(slot.clone());
        }
        by_name.retain(|_, slot| slot.is_used());
        match by_name.len() >= limit {
            true => Err(Error::TooManySessions { limit }),
            false => Ok(by_name.entry(name.to_owned()).or_default().clone()),
        }
    }
}

impl Session {
    pub(crate) fn new(
        name: String,
        job: Arc<Job>,
        dialect: Dialect,
        channel: Channel,
        sandbox: Option<Arc<Sandbox>>,
    ) -> Result<Self, Error> {
        let conversation = tokio::sync::Mutex::new(Conversation::new(dialect, channel)?);
        let (history, expired) = (tokio::sync::Mutex::default(), Mutex::default());
        let was_lost = AtomicBool::default();
        let directory = job.location().map(|it| it.directory.clone()).unwrap_or_default();
        let directory = Mutex::new(directory);
        Ok(Self { name, job, directory, conversation, history, expired, was_lost, sandbox })
    }

    /// Where the next command starts.
    fn location(&self) -> Location {
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Location { directory, place: self.job.place().map(Arc::from) }
    }

    fn note_directory(&self, directory: &Path) {
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = directory.to_owned();
    }

    /// What the sandbox refused a command that ended this way.
    fn refused(&self, end: End, output: &Output, directory: Option<&Path>) -> Vec<String> {
        let directory = directory.unwrap_or(Path::new("/"));
        let refused = |it: &Arc<Sandbox>| {
            // Its shell may have started something that is still there.
            it.note_left();
            it.refused(&self.job.run, end, output, directory)
        };
        self.sandbox.as_ref().map(refused).unwrap_or_default()
    }

    /// The same with a shell that was started like this.
    pub(crate) fn begun(self, Beginning { directory, environment, .. }: Beginning) -> Self {
        let beginning = Beginning { text: String::new(), directory, environment };
        let history = Remembered { beginning, runs_code: false };
        Self { history: tokio::sync::Mutex::new(history), ..self }
    }

    /// The same, replacing an earlier shell of the session.
    pub(crate) fn replacing(self, before: Option<&Job>) -> Self {
        let end = before.and_then(|before| Some(before.end().outcome?.ok()?.end));
        let was_lost = AtomicBool::new(end == Some(End::Lost));
        Self { expired: Mutex::new(before.and_then(Job::expired)), was_lost, ..self }
    }

    /// How long the previous session was idle, for the first outcome to report.
    fn take_expired(&self) -> Option<Duration> {
        self.expired.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the previous session was lost, for the first outcome to report.
    fn take_was_lost(&self) -> bool {
        self.was_lost.swap(false, Ordering::Relaxed)
    }

    /// What earlier commands have left, to judge and add the next one. Others wait in the order they came.
    pub(crate) async fn history(&self) -> History<'_> {
        History(self.history.lock().await)
    }

    /// Whether it takes commands.
    fn is_alive(&self) -> bool {
        self.job.state() == JobState::Running && self.job.expired().is_none()
    }
}

/// What a session's shell was started with, and the commands that have left something in it.
#[derive(Debug, Default)]
struct Remembered {
    beginning: Beginning,
    /// Whether one of them has left code, such as a function, so that every later command may leave something.
    runs_code: bool,
}

/// What is remembered of a session, locked.
pub(crate) struct History<'a>(tokio::sync::MutexGuard<'a, Remembered>);

impl History<'_> {
    /// What the shell knows.
    pub fn known(&self) -> Beginning {
        self.0.beginning.clone()
    }

    /// Remembers a command, unless it leaves nothing. A shell would otherwise soon have got more commands than can be
    /// judged at once.
    pub fn add(&mut self, text: &str, traces: Traces) {
        self.0.runs_code |= traces == Traces::Code;
        if traces > Traces::Nothing || self.0.runs_code {
            // Two, because a trailing backslash may consume one.
            self.0.beginning.text.push_str(&format!("{text}\n\n"));
        }
    }
}
