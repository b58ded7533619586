//! One run: the task that owns it, and the handles that control it.
//!
//!     Run ── the outcome, once          RunHandle ── description, state and controls
//!        └──────────┬──────────────────────┘
//!                   ▼ messages
//!               RunTask ── process, pipes, timeout ─▶ Output, Life, Outcome
//!
//! The task lives as long as any process of the command. It answers once: when the first process has ended and
//! everything written until then is kept, or when the whole process tree has ended. A command that is being stopped is
//! answered when the whole tree has ended, because only then is its usage complete.
//!
//! What a command leaves running (`server &`) becomes a job of the same owner before the answer is sent
//! ([`Backing::adopt`]). It keeps printing into the run's output. The task keeps reading, because a process whose pipe
//! nobody reads blocks or dies.

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
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

pub(crate) use accounting::Accounting;
pub use controls::Controls;
pub use inspector::Inspector;
pub(crate) use messages::Message;
pub use messages::RunAction;
pub(crate) use prompt::wait_for_prompt;

use mcpz_agent::{Limit, Process, SpawnFrame};
use mcpz_audit::RecordedRun;
use mcpz_output::Output;
use mcpz_runtime::Later;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::gate::Plan;
use crate::outcome::{Closing, Location, Outcome};
use crate::places::Venue;
use crate::request::{Input, TerminalSize};
use crate::resolved::Beginning;
use crate::sandbox::{Occupied, Sandbox};
use task::RunTask;

/// A started command. Dropping it before its outcome arrives cancels the command.
pub struct Run {
    outcome: oneshot::Receiver<Result<Outcome, Error>>,
    handle: RunHandle,
}

/// Describes and controls a run. Clones refer to the same run.
#[derive(Debug, Clone)]
pub struct RunHandle {
    pub(crate) about: Arc<RunDetails>,
    controls: Controls,
}

/// What is known about a run from the start.
#[derive(Debug)]
pub(crate) struct RunDetails {
    /// Identifies the run in the audit trail and in the output store.
    pub id: Arc<str>,
    /// The command with secrets masked.
    pub command: String,
    /// The caller's description of its purpose.
    pub description: Option<String>,
    /// How it takes input while it runs, if it does.
    pub input: Option<Input>,
    pub began: Instant,
    /// What the policy has to know when something is typed into it.
    pub beginning: OnceLock<Arc<Beginning>>,
    pub output: Output,
    pub life: watch::Receiver<Life>,
    /// The sandbox it runs in, if it does.
    pub sandbox: OnceLock<Weak<Sandbox>>,
    /// Where it starts, once that is known.
    pub location: OnceLock<Location>,
}

/// The state of a run's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The first process, as seen from inside the run's PID namespace.
    pub pid: Option<i32>,
    /// Processes that could not be killed.
    pub survivors: Vec<i32>,
    /// The limit that ended the processes left behind by the first one, if any.
    pub limit: Option<Limit>,
    /// Whether the keeper of the processes left behind was killed.
    pub lost: bool,
    /// Whether someone stopped it.
    pub stopped: bool,
    /// How long it took, if another process measured that.
    pub took: Option<Duration>,
    /// How many bytes were written to it, not counting what people typed.
    pub written: u64,
    /// The size of its terminal, if it has one.
    pub size: Option<TerminalSize>,
    /// How many times a person typed something.
    pub person: u64,
}

/// The task's ends of a run's channels.
pub(crate) struct TaskEnds {
    pub about: Arc<RunDetails>,
    pub answer: oneshot::Sender<Result<Outcome, Error>>,
    pub messages: mpsc::UnboundedReceiver<Message>,
    pub life: watch::Sender<Life>,
    /// How many bytes are still to be written to the command.
    pub backlog: Arc<AtomicUsize>,
    /// Weak, so that the task does not keep its own run from being cancelled.
    pub sender: mpsc::WeakUnboundedSender<Message>,
}

/// What a run's task needs from the engine that started it.
#[derive(Default)]
pub(crate) struct Backing {
    /// Where it runs. Holding it keeps a place open.
    pub venue: Venue,
    /// The sandbox it runs in. Holding it keeps the sandbox alive.
    pub sandbox: Option<Occupied>,
    /// Receives the channel to a session's shell or the login shell.
    pub channel: Option<oneshot::Sender<Channel>>,
    /// Why the engine closes, once it does.
    pub closing: Arc<OnceLock<Closing>>,
    /// Starts the process again if its agent was killed before starting it.
    pub restart: Option<Restart>,
    pub accounting: Option<Accounting>,
    /// Turns what the command leaves running into a job.
    pub adopt: Option<Adopt>,
    pub later: Later,
}

/// How to talk to a program of ours.
#[derive(Debug)]
pub(crate) struct Channel {
    /// The socket from which it reads what to do, if it has one.
    pub orders: Option<OwnedFd>,
    /// The pipe to which it replies.
    pub replies: OwnedFd,
}

pub(crate) type Restart = Box<dyn FnOnce(SpawnFrame) -> Result<Process, Error> + Send + Sync>;

/// Returns the job's id.
pub(crate) type Adopt = Box<dyn FnOnce(RunHandle, &Outcome) -> Option<String> + Send + Sync>;

impl RunDetails {
    /// Keeps what the policy has to know about it, unless that is kept already.
    pub fn remember(&self, beginning: Option<Beginning>) {
        if let Some(beginning) = beginning {
            let _ = self.beginning.set(Arc::new(beginning));
        }
    }
}

impl Run {
    /// Starts the task that owns a process.
    pub(crate) fn start(
        process: Process,
        command: String,
        plan: Plan,
        recorded: RecordedRun,
        output: Output,
        backing: Backing,
    ) -> Self {
        let id = recorded.id().clone();
        let (run, ends) = Self::new(id, command, plan.description.clone(), plan.input, output);
        run.handle.about.remember(plan.beginning.clone());
        if let Some(occupied) = &backing.sandbox {
            let _ = run.handle.about.sandbox.set(Arc::downgrade(occupied.sandbox()));
        }
        let place = backing.venue.place.as_ref().map(|place| place.name.clone());
        let _ =
            run.handle.about.location.set(Location { directory: plan.directory.clone(), place });
        RunTask::spawn(process, plan, recorded, backing, ends);
        run
    }

    /// A run whose task the caller provides.
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
        let (beginning, sandbox, location) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let about = Arc::new(RunDetails {
            id,
            command,
            description,
            input,
            began,
            beginning,
            output,
            life,
            sandbox,
            location,
        });
        let ends = TaskEnds {
            about: about.clone(),
            answer,
            messages,
            life: living,
            backlog: backlog.clone(),
            sender: sender.downgrade(),
        };
        let handle = RunHandle { about, controls: Controls::new(sender, backlog) };
        (Self { outcome, handle }, ends)
    }

    pub fn handle(&self) -> &RunHandle {
        &self.handle
    }

    /// Identifies it in the audit trail and in the output store.
    pub fn id(&self) -> &Arc<str> {
        &self.handle.about.id
    }

    /// The command with secrets masked.
    pub fn command(&self) -> &str {
        &self.handle.about.command
    }

    /// Its output, which grows while the command runs.
    pub fn output(&self) -> &Output {
        &self.handle.about.output
    }

    /// Ends the command and everything it started. The outcome still arrives.
    pub fn cancel(&mut self) {
        self.handle.controls.cancel();
    }

    /// Waits until the command runs and returns its process id, or `None` if it cannot start; the outcome says why.
    pub async fn started(&mut self) -> Option<i32> {
        let mut life = self.handle.life();
        let started = life.wait_for(|life| life.pid.is_some()).await;
        started.ok().and_then(|life| life.pid)
    }

    /// Completes when the command is silent and waits for input.
    pub fn asking(&self) -> impl Future<Output = ()> + Send + 'static {
        let (output, inspector) = (self.output().clone(), self.handle.controls.inspector());
        async move { wait_for_prompt(&output, &inspector).await }
    }

    /// Waits for the outcome. Dropping the future loses nothing.
    pub async fn outcome(&mut self) -> Result<Outcome, Error> {
        (&mut self.outcome).await.unwrap_or(Err(Error::Closed))
    }
}

impl RunHandle {
    /// A handle for the run's own task, or `None` if no other handle is left.
    fn of(
        about: &Arc<RunDetails>,
        sender: &mpsc::WeakUnboundedSender<Message>,
        backlog: &Arc<AtomicUsize>,
    ) -> Option<Self> {
        let controls = Controls::new(sender.upgrade()?, backlog.clone());
        Some(Self { about: about.clone(), controls })
    }

    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The state of its processes. The sender is dropped when none is left.
    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.about.life.clone()
    }
}

/// Sleeps until a point in time, or forever.
pub(crate) async fn until(timer: Option<Instant>) {
    match timer {
        Some(timer) => sleep_until(timer).await,
        None => std::future::pending().await,
    }
}
