//! Controls a run from outside its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::EncodedRules;
use mcpz_output::Output;
use tokio::sync::{mpsc, oneshot};

use super::inspector::Inspector;
use super::messages::{Message, RunAction};

/// How much input may wait for a command to read it.
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
        self.send(Message::Do(RunAction::Signal(signal)));
    }

    /// Notes that what ends it next is a stop.
    pub(crate) fn note_stop(&self) {
        self.send(Message::Do(RunAction::Stopping));
    }

    /// Ends all of it. The outcome says how the first process ended.
    pub fn stop(&self, grace: Duration) {
        self.send(Message::Do(RunAction::Stop { grace }));
    }

    /// Reserves room for input, unless too much of the earlier input is still unread.
    pub(crate) fn reserve(&self, length: usize) -> Option<Room<'_>> {
        let before = self.backlog.fetch_add(length, Ordering::Relaxed);
        let room = Room { controls: self, length };
        (before <= MAX_BACKLOG).then_some(room)
    }

    /// Allows its processes to execute more than before, from the next thing that is written to it on.
    pub(crate) fn permit(&self, rules: EncodedRules) {
        self.send(Message::Do(RunAction::Permit(rules)));
    }

    pub(crate) fn close_input(&self) {
        self.send(Message::Do(RunAction::CloseInput));
    }

    /// Asks about the run, without keeping it from being cancelled.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.messages.downgrade())
    }

    /// Redirects its output from now on, once everything printed before is kept.
    pub(crate) async fn switch(&self, output: Output) {
        let (done, switched) = oneshot::channel();
        self.send(Message::Switch(output, done));
        // A run that has ended prints nothing more.
        let _ = switched.await;
    }

    /// Lifts its deadline, because it has become a job.
    pub(crate) fn become_job(&self) {
        self.send(Message::BecomeJob);
    }

    /// Cancels it for its caller.
    pub(crate) fn cancel(&self) {
        self.send(Message::Cancel);
    }

    fn send(&self, message: Message) {
        // A run that has ended needs no message.
        let _ = self.messages.send(message);
    }
}

/// Reserved room for input, given back unless it is used.
pub(crate) struct Room<'a> {
    controls: &'a Controls,
    length: usize,
}

impl Room<'_> {
    /// Writes bytes that fit in it. The writer gives the room back.
    pub fn write(mut self, bytes: Vec<u8>, person: bool, before: Option<u64>) {
        self.length -= bytes.len();
        self.controls.send(Message::Do(RunAction::Write { bytes, person, before }));
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.controls.backlog.fetch_sub(self.length, Ordering::Relaxed);
    }
}
