//! Asks a run's keeper about its processes and its terminal while it goes on.

use std::time::Duration;

use mcpz_agent::{Answer, Identity, Question, Reader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::messages::Message;
use crate::request::Size;

/// How long a keeper may take to answer: somebody may have stopped it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks about one run, for as long as somebody else wants something of it. Clones are for the same.
#[derive(Debug, Clone)]
pub struct Inspector {
    messages: mpsc::WeakUnboundedSender<Message>,
}

impl Inspector {
    pub(super) fn new(messages: mpsc::WeakUnboundedSender<Message>) -> Self {
        Self { messages }
    }

    /// The answer to a question; nothing if there is no run, or it takes too long.
    pub(crate) async fn ask(&self, question: Question) -> Option<Answer> {
        let (asked, told) = oneshot::channel();
        self.messages.upgrade()?.send(Message::Look(question, asked)).ok()?;
        timeout(PATIENCE, told).await.ok()?.ok()
    }

    /// All its processes, by the numbers they know each other by.
    pub async fn processes(&self) -> Vec<i32> {
        let seen = self.processes_seen(Question::Processes).await.unwrap_or_default();
        seen.iter().map(|process| process.pid).collect()
    }

    /// What its first process has started and is still there, if anybody can tell.
    pub(crate) async fn started(&self) -> Option<Vec<Identity>> {
        self.processes_seen(Question::Started).await
    }

    /// Signals what its first process has started, except for these. False if that is nothing.
    pub(crate) async fn signal_started(&self, signal: i32, except: &[Identity]) -> bool {
        let question = Question::Signal { signal, except: except.to_vec() };
        self.processes_seen(question).await.is_some_and(|signalled| !signalled.is_empty())
    }

    /// Whether one of its processes waits for somebody to write something.
    pub async fn waits_for_input(&self) -> bool {
        self.is(Question::WaitsForInput).await == Some(true)
    }

    /// The programs that read what is written to it, if anybody can tell.
    pub(crate) async fn readers(&self) -> Option<Vec<Reader>> {
        match self.ask(Question::Readers).await? {
            Answer::Readers(readers) => Some(readers),
            _ => None,
        }
    }

    /// Whether one of its processes listens on a TCP port.
    pub(crate) async fn listens(&self, port: u16) -> bool {
        self.is(Question::Listens { port }).await == Some(true)
    }

    /// Whether its terminal shows nothing of what is typed, as when it asks for a password. So it is if
    /// nobody can tell: a secret must not be shown by mistake.
    pub(crate) async fn hides_input(&self) -> bool {
        self.is(Question::HidesInput).await != Some(false)
    }

    /// Gives its terminal another size, before this is done.
    pub(crate) async fn resize(&self, size: Size) {
        let Size { rows, columns } = size;
        self.ask(Question::Resize { rows, columns }).await;
    }

    async fn is(&self, question: Question) -> Option<bool> {
        match self.ask(question).await? {
            Answer::YesNo(answer) => Some(answer),
            _ => None,
        }
    }

    async fn processes_seen(&self, question: Question) -> Option<Vec<Identity>> {
        match self.ask(question).await? {
            Answer::Processes(processes) => Some(processes),
            _ => None,
        }
    }
}
