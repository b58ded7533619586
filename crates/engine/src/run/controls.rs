//! Controlling a run while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_output::Output;
use tokio::sync::{mpsc, oneshot};

use super::inspector::Inspector;
use super::messages::{Action, Message};

/// How much may wait to be read by a command before it is given no more.
const MAX_BACKLOG: usize = 1 << 20;

/// Controls a run. Clones control the same one.
#[derive(Debug, Clone)]
pub struct Controls {
    messages: mpsc::UnboundedSender<Message>,
    /// How many bytes are still to be written.
    backlog: Arc<AtomicUsize>,
}

impl Controls {
    pub(super) fn new(messages: mpsc::UnboundedSender<Message>, backlog: Arc<AtomicUsize>) -> Self {
        Self { messages, backlog }
    }

    /// Sends a signal to the first process.
    pub fn signal(&self, signal: i32) {
        self.send(Message::Do(Action::Signal(signal)));
    }

    /// Notes that it is told to end, by whatever comes next.
    pub(crate) fn note_stop(&self) {
        self.send(Message::Do(Action::Stopping));
    }

    /// Ends all of it. The outcome says how the first process ended.
    pub fn stop(&self, grace: Duration) {
        self.send(Message::Do(Action::Stop { grace }));
    }

    /// Room for so many bytes in what the command reads, unless it has not read what it was given
    /// before.
    pub(crate) fn reserve(&self, length: usize) -> Option<Room<'_>> {
        let before = self.backlog.fetch_add(length, Ordering::Relaxed);
        let room = Room { controls: self, length };
        (before <= MAX_BACKLOG).then_some(room)
    }

    pub(crate) fn close_input(&self) {
        self.send(Message::Do(Action::CloseInput));
    }

    /// Asks about it, but does not keep it from being cancelled when nobody else wants it.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.messages.downgrade())
    }

    /// Has what it prints from now on kept in another output, once all it has printed is kept.
    pub(crate) async fn switch(&self, output: Output) {
        let (done, told) = oneshot::channel();
        self.send(Message::Switch(output, done));
        // A run that is over prints nothing any more.
        let _ = told.await;
    }

    /// Lifts its deadline, as it has become a job.
    pub(crate) fn become_job(&self) {
        self.send(Message::BecomeJob);
    }

    /// Ends it for whoever waits.
    pub(crate) fn cancel(&self) {
        self.send(Message::Cancel);
    }

    fn send(&self, message: Message) {
        // A run that is over has no use for it.
        let _ = self.messages.send(message);
    }
}

/// Room in what a command reads. It is given back unless it is used.
pub(crate) struct Room<'a> {
    controls: &'a Controls,
    length: usize,
}

impl Room<'_> {
    /// Has bytes written that fit in it. Whoever writes them gives the room back.
    pub fn write(mut self, bytes: Vec<u8>, person: bool, before: Option<u64>) {
        self.length -= bytes.len();
        self.controls.send(Message::Do(Action::Write { bytes, person, before }));
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.controls.backlog.fetch_sub(self.length, Ordering::Relaxed);
    }
}
