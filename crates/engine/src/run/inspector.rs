//! Asks a run's keeper about its processes and its terminal while it runs.
//!
//! Everything there is to know about a live run comes from its keeper: which processes it has, which of them wait for
//! input, ports, the terminal. A new question is a variant of [`Question`], its answer in the agent crate, and a method
//! here.

use std::time::Duration;

use mcpz_agent::{Answer, Identity, InputMode, InputReader, Question, RefusedExec};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::messages::Message;
use crate::request::TerminalSize;

/// How long a keeper may take to answer. Someone may have stopped it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks about one run, without keeping it alive. Clones ask about the same run.
#[derive(Debug, Clone)]
pub struct Inspector {
    messages: mpsc::WeakUnboundedSender<Message>,
}

impl Inspector {
    pub(super) fn new(messages: mpsc::WeakUnboundedSender<Message>) -> Self {
        Self { messages }
    }

    /// The answer to a question, or `None` if the run has ended or the answer takes too long.
    pub(crate) async fn ask(&self, question: Question) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.messages.upgrade()?.send(Message::Look(question, reply)).ok()?;
        timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()
    }

    /// All its processes, by their ids inside the run's PID namespace.
    pub async fn processes(&self) -> Vec<i32> {
        let seen = self.processes_seen(Question::Processes).await.unwrap_or_default();
        seen.iter().map(|process| process.pid).collect()
    }

    /// Its living processes besides the first, if that can be found out.
    pub(crate) async fn others(&self) -> Option<Vec<Identity>> {
        self.processes_seen(Question::Others).await
    }

    /// Signals those, except these and everything below them. Returns false if there are none. Signal 0 does nothing.
    pub(crate) async fn signal_others(&self, signal: i32, except: &[Identity]) -> bool {
        let question = Question::Signal { signal, except: except.to_vec() };
        self.processes_seen(question).await.is_some_and(|signalled| !signalled.is_empty())
    }

    /// Whether one of its processes waits for input.
    pub async fn waits_for_input(&self) -> bool {
        self.is(Question::WaitsForInput).await == Some(true)
    }

    /// The programs that may come to read its input, and how, if that can be found out.
    pub(crate) async fn readers(&self) -> Option<(Vec<InputReader>, InputMode)> {
        match self.ask(Question::Readers).await? {
            Answer::Readers { readers, mode } => Some((readers, mode)),
            _ => None,
        }
    }

    /// Whether one of its processes listens on a TCP port.
    pub(crate) async fn listens(&self, port: u16) -> bool {
        self.is(Question::Listens { port }).await == Some(true)
    }

    /// Whether its terminal does not echo input, as at a password prompt. True if that cannot be found out, because a
    /// secret must not be shown by mistake.
    pub(crate) async fn hides_input(&self) -> bool {
        self.is(Question::HidesInput).await != Some(false)
    }

    /// What its processes were not allowed to execute. If it is taken, only what comes later is told later.
    pub(crate) async fn refused_execs(&self, take: bool) -> Vec<RefusedExec> {
        match self.ask(Question::RefusedExecs { take }).await {
            Some(Answer::RefusedExecs(refused)) => refused,
            _ => Vec::new(),
        }
    }

    /// Resizes its terminal.
    pub(crate) async fn resize(&self, size: TerminalSize) {
        let TerminalSize { rows, columns } = size;
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
