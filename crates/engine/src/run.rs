//! One run: the task that owns it, and the handle others have.
//!
//! The task lives as long as anything of the command does. It answers once, when the first process
//! has ended and all that was written until then is kept, or when the whole tree has been ended.
//! Afterwards it goes on reading what processes left running print, so that they do not stop or die
//! of a pipe nobody reads.

mod books;
mod inspector;
mod minder;
mod remote;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

pub(crate) use books::Books;
pub use inspector::Inspector;
pub(crate) use remote::Word;
pub use remote::{Remote, Saying};

use minder::Minder;

use mcpz_agent::{Limit, Process};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::channel::Channel;
use crate::error::Error;
use crate::gate::Pending;
use crate::jobs::asks;
use crate::outcome::Outcome;
use crate::request::{Input, Size};
use crate::sessions::{Order, Queued};
use mcpz_audit::Recorded;
use mcpz_output::{Output, Stream};
use mcpz_runtime::Later;

/// A command that was started. Dropped before its outcome was taken, it is cancelled.
pub struct Run {
    outcome: oneshot::Receiver<Result<Outcome, Error>>,
    remote: Remote,
    life: watch::Receiver<Life>,
    id: Arc<str>,
    input: Option<Input>,
    output: Output,
    description: Option<String>,
    began: Instant,
}

/// What is known of a run's processes while there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The first process, as those know it that run with it.
    pub pid: Option<i32>,
    /// What is left when nothing more can be done.
    pub survivors: Vec<i32>,
    /// The limit that ended what the first process left, if one did.
    pub limit: Option<Limit>,
    /// Whether whatever minded what the first process left was killed.
    pub lost: bool,
    /// Whether it ends because it was told to.
    pub stopped: bool,
    /// How long it took, if another process has counted.
    pub took: Option<Duration>,
    /// How many bytes were written to it, but for those of persons.
    pub written: u64,
    /// The size of its terminal, if it has one.
    pub size: Option<Size>,
    /// How often a person has typed something.
    pub person: u64,
}

impl Run {
    pub(crate) fn start(
        process: Process,
        pending: Pending,
        recorded: Recorded,
        output: Output,
        books: Option<Books>,
        later: Later,
    ) -> Self {
        let (id, input) = (recorded.id().clone(), pending.input);
        let (answer, outcome) = oneshot::channel();
        let (words, heard) = mpsc::unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let (living, life) = watch::channel(Life::default());
        let channel = |stream| Channel::closed(stream, output.clone(), pending.secrets.masker());
        let minder = Minder {
            stdout: channel(Stream::Stdout),
            stderr: channel(Stream::Stderr),
            id: id.clone(),
            recorded: Some(recorded),
            output: output.clone(),
            answer: Some(answer),
            living,
            timer: pending.timeout.map(|timeout| Instant::now() + timeout),
            pending,
            process,
            exit: None,
            stopping: false,
            stopped: None,
            feeder: None,
            asked: VecDeque::new(),
            books,
            later,
            began: Instant::now(),
            backlog: backlog.clone(),
        };
        tokio::spawn(minder.mind(heard));
        Self {
            outcome,
            remote: Remote::new(words, backlog),
            life,
            id,
            input,
            output,
            description: None,
            began: Instant::now(),
        }
    }

    /// A command that a session carries out.
    pub(crate) fn in_session(order: Order, queued: Queued) -> Self {
        let (answer, outcome) = oneshot::channel();
        let (words, heard) = mpsc::unbounded_channel();
        let (_, life) = watch::channel(Life::default());
        let (id, output) = (order.recorded.id().clone(), order.output.clone());
        tokio::spawn(order.carry_out(queued, answer, heard));
        let remote = Remote::new(words, Arc::default());
        Self {
            outcome,
            remote,
            life,
            id,
            input: None,
            output,
            description: None,
            began: Instant::now(),
        }
    }

    /// One that another process minds. Words are heard, and the rest is told, by whoever follows it.
    pub(crate) fn elsewhere(
        outcome: oneshot::Receiver<Result<Outcome, Error>>,
        (words, backlog): (mpsc::UnboundedSender<Word>, Arc<AtomicUsize>),
        life: watch::Receiver<Life>,
        (id, input): (Arc<str>, Option<Input>),
        output: Output,
    ) -> Self {
        let remote = Remote::new(words, backlog);
        Self { outcome, remote, life, id, input, output, description: None, began: Instant::now() }
    }

    /// The same with what it is for.
    pub(crate) fn described(self, description: Option<String>) -> Self {
        Self { description, ..self }
    }

    /// What the caller says it is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// When it was begun.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// How it can be written to, if it can.
    pub fn input(&self) -> Option<Input> {
        self.input
    }

    /// What is known of its processes; the sender is gone when there are none any more.
    pub fn life(&self) -> watch::Receiver<Life> {
        self.life.clone()
    }

    /// What it is known by, in the audit trail and where its output is kept.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What it prints, while it prints it.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Ends the command with all it started. The outcome comes as always.
    pub fn cancel(&mut self) {
        self.remote.cancel();
    }

    /// Waits until the command runs and returns its process id, or `None` if it cannot start: the
    /// outcome says why.
    pub async fn started(&mut self) -> Option<i32> {
        let started = self.life.wait_for(|life| life.pid.is_some()).await;
        started.ok().and_then(|life| life.pid)
    }

    /// Done when the command is silent and waits for input.
    pub fn asking(&self) -> impl Future<Output = ()> + Send + 'static {
        let (output, inspector) = (self.output.clone(), self.remote.inspector());
        async move { asks(&output, &inspector).await }
    }

    /// Waits for the outcome. Nothing is lost if it is dropped before it is done.
    pub async fn outcome(&mut self) -> Result<Outcome, Error> {
        (&mut self.outcome).await.unwrap_or(Err(Error::Closed))
    }
}

pub(crate) async fn until(timer: Option<Instant>) {
    match timer {
        Some(timer) => sleep_until(timer).await,
        None => std::future::pending().await,
    }
}
