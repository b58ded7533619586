//! One run: the task that owns it, and the handles others have.
//!
//!     Run ── the outcome, once          Handle ── what everyone may know, and controls
//!        └──────────┬──────────────────────┘
//!                   ▼ messages
//!               RunTask ── process, pipes, timeout ─▶ Output, Life, Outcome
//!
//! The task lives as long as anything of the command does. It answers once: when the first process has ended and
//! everything written until then is kept, or when the whole process tree has ended. What a command leaves running
//! becomes a job before the answer is given ([`Backing::adopt`]); the task goes on reading what it prints, so that it
//! neither stops nor dies because of a pipe nobody reads.

mod accounting;
mod capture;
mod controls;
mod inspector;
mod messages;
mod prompt;
mod stdin;
mod task;

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use accounting::Accounting;
pub use controls::Controls;
pub use inspector::Inspector;
pub use messages::Action;
pub(crate) use messages::Message;
pub(crate) use prompt::wait_for_prompt;

use mcpz_agent::{Limit, Process, SpawnFrame};
use mcpz_audit::Recorded;
use mcpz_output::Output;
use mcpz_runtime::Later;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::gate::Plan;
use crate::outcome::{Closing, Outcome};
use crate::request::{Input, Size};
use crate::sandbox::Sandbox;
use task::RunTask;

/// A command that was started. Dropped before its outcome was taken, it is cancelled.
pub struct Run {
    outcome: oneshot::Receiver<Result<Outcome, Error>>,
    handle: Handle,
}

/// A run, as everyone may know and control it. Clones are handles of the same run.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) about: Arc<About>,
    controls: Controls,
}

/// What is known about a run from its start.
#[derive(Debug)]
pub(crate) struct About {
    /// Identifies it in the audit trail and in the store of outputs.
    pub id: Arc<str>,
    /// The command, as it may be shown.
    pub command: String,
    /// What the caller says it is for.
    pub description: Option<String>,
    /// How it can be written to, if it can.
    pub input: Option<Input>,
    pub began: Instant,
    pub output: Output,
    pub life: watch::Receiver<Life>,
}

/// What is known about a run's processes while there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The first process, as processes of the same run see it.
    pub pid: Option<i32>,
    /// Processes that could not be ended.
    pub survivors: Vec<i32>,
    /// The limit that ended what the first process left running, if one did.
    pub limit: Option<Limit>,
    /// Whether the keeper of what the first process left running was killed.
    pub lost: bool,
    /// Whether it ends because someone stopped it.
    pub stopped: bool,
    /// How long it took, if another process has measured it.
    pub took: Option<Duration>,
    /// How many bytes were written to it, except by people.
    pub written: u64,
    /// The size of its terminal, if it has one.
    pub size: Option<Size>,
    /// How often a person has typed something.
    pub person: u64,
}

/// What the task of a run holds of it.
pub(crate) struct TaskEnds {
    pub about: Arc<About>,
    pub answer: oneshot::Sender<Result<Outcome, Error>>,
    pub messages: mpsc::UnboundedReceiver<Message>,
    pub life: watch::Sender<Life>,
    /// How many bytes are still to be written to the command.
    pub backlog: Arc<AtomicUsize>,
    /// Does not keep the run from being cancelled when nobody else holds it.
    pub sender: mpsc::WeakUnboundedSender<Message>,
}

/// What the task of a run needs of the engine that started it.
#[derive(Default)]
pub(crate) struct Backing {
    /// The sandbox it runs in, which lives as long as the run does.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Takes the descriptors through which a session's shell is told what to do.
    pub directing: Option<oneshot::Sender<(OwnedFd, OwnedFd)>>,
    /// Why the engine closes, once it does.
    pub closing: Arc<OnceLock<Closing>>,
    /// Starts it again if its agent was killed before it did.
    pub restart: Option<Restart>,
    pub accounting: Option<Accounting>,
    /// Makes a job of what the command leaves running.
    pub adopt: Option<Adopt>,
    pub later: Later,
}

pub(crate) type Restart = Box<dyn FnOnce(SpawnFrame) -> Result<Process, Error> + Send + Sync>;

/// Returns the id of the job.
pub(crate) type Adopt = Box<dyn FnOnce(Handle, &Outcome) -> Option<String> + Send + Sync>;

impl Run {
    /// Starts the task that owns a process.
    pub(crate) fn start(
        process: Process,
        command: String,
        plan: Plan,
        recorded: Recorded,
        output: Output,
        backing: Backing,
    ) -> Self {
        let id = recorded.id().clone();
        let (run, ends) = Self::new(id, command, plan.description.clone(), plan.input, output);
        RunTask::spawn(process, plan, recorded, backing, ends);
        run
    }

    /// A run for someone else's task.
    pub(crate) fn new(
        id: Arc<str>,
        command: String,
        description: Option<String>,
        input: Option<Input>,
        output: Output,
    ) -> (Self, TaskEnds) {
        let (answer, outcome) = oneshot::channel();
        let (sender, messages) = mpsc::unbounded_channel();
        let (living, life) = watch::channel(Life::default());
        let backlog = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let about = Arc::new(About { id, command, description, input, began, output, life });
        let ends = TaskEnds {
            about: about.clone(),
            answer,
            messages,
            life: living,
            backlog: backlog.clone(),
            sender: sender.downgrade(),
        };
        let handle = Handle { about, controls: Controls::new(sender, backlog) };
        (Self { outcome, handle }, ends)
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Identifies it in the audit trail and in the store of outputs.
    pub fn id(&self) -> &Arc<str> {
        &self.handle.about.id
    }

    /// What it prints, while it prints it.
    pub fn output(&self) -> &Output {
        &self.handle.about.output
    }

    /// Ends the command with all it started. The outcome comes as always.
    pub fn cancel(&mut self) {
        self.handle.controls.cancel();
    }

    /// Waits until the command runs and returns its process id, or `None` if it cannot start: the outcome says why.
    pub async fn started(&mut self) -> Option<i32> {
        let mut life = self.handle.life();
        let started = life.wait_for(|life| life.pid.is_some()).await;
        started.ok().and_then(|life| life.pid)
    }

    /// Done when the command is silent and waits for input.
    pub fn asking(&self) -> impl Future<Output = ()> + Send + 'static {
        let (output, inspector) = (self.output().clone(), self.handle.controls.inspector());
        async move { wait_for_prompt(&output, &inspector).await }
    }

    /// Waits for the outcome. Nothing is lost if the future is dropped before it is done.
    pub async fn outcome(&mut self) -> Result<Outcome, Error> {
        (&mut self.outcome).await.unwrap_or(Err(Error::Closed))
    }
}

impl Handle {
    /// A handle for the run's own task, unless nobody else has one any more.
    fn of(
        about: &Arc<About>,
        sender: &mpsc::WeakUnboundedSender<Message>,
        backlog: &Arc<AtomicUsize>,
    ) -> Option<Self> {
        let controls = Controls::new(sender.upgrade()?, backlog.clone());
        Some(Self { about: about.clone(), controls })
    }

    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// What is known about its processes; the sender is gone when none is left.
    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.about.life.clone()
    }
}

/// Waits until a point in time, or forever.
pub(crate) async fn until(timer: Option<Instant>) {
    match timer {
        Some(timer) => sleep_until(timer).await,
        None => std::future::pending().await,
    }
}
