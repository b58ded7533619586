//! What can be said to a run while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::{Answer, Question};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::Inspector;
use mcpz_output::Output;

/// How much may wait to be read by a command before it is given no more.
const MAX_BACKLOG: usize = 1 << 20;

/// Says what is to be done with a run. Clones are for the same.
#[derive(Debug, Clone)]
pub struct Remote {
    words: mpsc::UnboundedSender<Word>,
    /// How many bytes are still to be written.
    backlog: Arc<AtomicUsize>,
}

/// What somebody wants of a run, here or at another process's desk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Saying {
    Write {
        bytes: Vec<u8>,
        /// Whether a person typed it, and nobody who asks for it here.
        person: bool,
        /// How much must have been written before, if what is written was judged behind that.
        before: Option<u64>,
    },
    /// Nothing more is written.
    CloseInput,
    Signal(i32),
    /// What ends it now is that it was told to.
    Stopping,
    /// All of it is to end; what does not within this time is killed.
    Stop {
        grace: Duration,
    },
}

/// What a run's task hears. When there is nobody any more who could want anything, a run that was not
/// answered for is cancelled.
#[derive(Debug)]
pub(crate) enum Word {
    Say(Saying),
    Cancel,
    /// Asks its keeper something.
    Look(Question, oneshot::Sender<Answer>),
    /// It may go on for as long as it takes.
    Last,
    /// What it prints from now on belongs to another output. Said when all before is kept.
    Switch(Output, oneshot::Sender<()>),
}

impl Remote {
    pub(super) fn new(words: mpsc::UnboundedSender<Word>, backlog: Arc<AtomicUsize>) -> Self {
        Self { words, backlog }
    }

    /// Sends a signal to the first process.
    pub fn signal(&self, signal: i32) {
        self.say(Word::Say(Saying::Signal(signal)));
    }

    /// Notes that it is told to end, by whatever comes next.
    pub(crate) fn note_stop(&self) {
        self.say(Word::Say(Saying::Stopping));
    }

    /// Ends all of it. The outcome says how the first process ended.
    pub fn stop(&self, grace: Duration) {
        self.say(Word::Say(Saying::Stop { grace }));
    }

    /// Room for so many bytes in what the command reads, unless it has not read what it was given
    /// before.
    pub(crate) fn reserve(&self, length: usize) -> Option<Room<'_>> {
        let before = self.backlog.fetch_add(length, Ordering::Relaxed);
        let room = Room { remote: self, length };
        (before <= MAX_BACKLOG).then_some(room)
    }

    pub(crate) fn close_input(&self) {
        self.say(Word::Say(Saying::CloseInput));
    }

    /// Asks about it, but does not keep it from being cancelled when nobody else wants it.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.words.downgrade())
    }

    /// Has what it prints from now on kept in another output, once all it has printed is kept.
    pub(crate) async fn switch(&self, output: Output) {
        let (done, told) = oneshot::channel();
        self.say(Word::Switch(output, done));
        // A run that is over prints nothing any more.
        let _ = told.await;
    }

    /// Takes its deadline away.
    pub fn last(&self) {
        self.say(Word::Last);
    }

    /// Ends it for whoever waits.
    pub(crate) fn cancel(&self) {
        self.say(Word::Cancel);
    }

    fn say(&self, word: Word) {
        // A run that is over has no use for it.
        let _ = self.words.send(word);
    }
}

/// Room in what a command reads. It is given back unless it is used.
pub(crate) struct Room<'a> {
    remote: &'a Remote,
    length: usize,
}

impl Room<'_> {
    /// Has bytes written that fit in it. Whoever writes them gives the room back.
    pub fn write(mut self, bytes: Vec<u8>, person: bool, before: Option<u64>) {
        self.length -= bytes.len();
        self.remote.say(Word::Say(Saying::Write { bytes, person, before }));
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.remote.backlog.fetch_sub(self.length, Ordering::Relaxed);
    }
}
