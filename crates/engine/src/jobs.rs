//! Commands that run while their owner does something else.
//!
//!     Run ─▶ Job ─┬─ output, as it arrives        (read again and again)
//!                 ├─ signals, input, stop         (Controls)
//!                 └─ the end, once it is known    (watch)
//!
//! A job belongs to its owner, and ends with it or when nobody has used it for long. It is a run that was started in
//! the background, handed over by a caller that no longer waits, or left behind by a command that ended. Sessions are
//! jobs too, and so are detached commands, which outlive their owner.

mod end;
mod idle;
mod screen;
mod table;
mod typing;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpz_output::{Output, ReadPosition, Rendering, ScreenContents, Stream};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub use end::{JobEnd, JobOutcome};
pub(crate) use idle::UseGuard;
pub use table::{Jobs, Reserved};
pub(crate) use typing::Interpreters;
pub use typing::Typing;
pub use waiting::{Condition, Met};

use idle::IdleClock;
use screen::Terminal;
use typing::Typed;

use crate::error::Error;
use crate::exec_rules::described;
use crate::outcome::{End, Location, Outcome};
use crate::request::{Input, TerminalSize};
use crate::resolved::Beginning;
use crate::run::{Controls, Life, RunHandle};
use crate::sandbox::Sandbox;

/// How much longer it may take until none of its processes is left.
const STOP_TIMEOUT: Duration = Duration::from_secs(6);

/// How long to wait for the state of a job that another process keeps.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the output of such a job.
const LOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// A command that runs, or did.
#[derive(Debug)]
pub struct Job {
    /// Its id, unique for its owner.
    name: String,
    /// Identifies the run in the audit trail and in the output store.
    pub run: Arc<str>,
    /// The command with secrets masked.
    pub command: String,
    /// The caller's description of its purpose.
    pub description: Option<String>,
    pub started_at: SystemTime,
    began: Instant,
    pub output: Output,
    controls: Controls,
    life: watch::Receiver<Life>,
    end: watch::Receiver<EndState>,
    kind: Kind,
    /// How it takes input, if it does.
    input: Option<Input>,
    terminal: Option<Terminal>,
    idle_clock: IdleClock,
    /// How much of its output the owner has seen.
    told: Mutex<Position>,
    /// Whether anyone has asked for it since it was started.
    visited: AtomicBool,
    /// How many of a person's inputs the owner knows of.
    told_of_person: AtomicU64,
    typed: Mutex<Typed>,
    /// What the policy has to know when something is typed into it, if it takes input.
    beginning: OnceLock<Arc<Beginning>>,
    sandbox: OnceLock<Weak<Sandbox>>,
    location: OnceLock<Location>,
}

/// How a command became a job.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Started,
    /// A command left it running.
    Adopted,
    /// The shell of the session with this name.
    Session(String),
    /// It outlives its owner.
    Detached,
}

/// What is known of a job's end so far.
#[derive(Debug, Clone, Default)]
pub struct EndState {
    /// How the first process ended, or why there was none.
    pub outcome: Option<Result<Outcome, Arc<Error>>>,
    /// How long it took in total.
    pub took: Option<Duration>,
    /// Processes that could not be killed, once no other is left.
    pub survivors: Option<Vec<i32>>,
}

/// A position in a job's output: in stdout, and in stderr if that is separate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    pub stdout: ReadPosition,
    pub stderr: ReadPosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Running,
    Exited,
    /// It ended because someone stopped it.
    Stopped,
    /// Its keeper or recorder was killed, and the job with it.
    Lost,
}

impl JobState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

impl Job {
    /// How long a stopped job has to end by itself.
    pub const STOP_GRACE: Duration = Duration::from_secs(2);

    fn new(
        handle: &RunHandle,
        kind: Kind,
        outcome: Option<Outcome>,
    ) -> (Self, watch::Sender<EndState>) {
        let known = EndState { outcome: outcome.map(Ok), ..EndState::default() };
        let (ending, end) = watch::channel(known);
        let about = &handle.about;
        let age = about.began.elapsed();
        let job = Self {
            name: String::new(),
            run: about.id.clone(),
            command: about.command.clone(),
            description: about.description.clone(),
            started_at: SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH),
            began: about.began.into(),
            output: about.output.clone(),
            controls: handle.controls().clone(),
            life: handle.life(),
            end,
            kind,
            input: about.input,
            terminal: match about.input {
                Some(Input::Terminal(size)) => Some(Terminal::new(size)),
                _ => None,
            },
            idle_clock: IdleClock::default(),
            told: Mutex::default(),
            visited: AtomicBool::new(false),
            told_of_person: AtomicU64::new(0),
            typed: Mutex::default(),
            beginning: about.beginning.clone(),
            sandbox: about.sandbox.clone(),
            location: about.location.clone(),
        };
        (job, ending)
    }

    pub fn id(&self) -> &str {
        &self.name
    }

    /// What there is to say while it runs: what its sandbox says, and why output was lost.
    pub fn remarks(&self) -> Vec<String> {
        if self.state() != JobState::Running {
            return Vec::new();
        }
        let sandbox = self.sandbox.get().and_then(Weak::upgrade);
        let remarks = sandbox.map(|it| it.remarks()).unwrap_or_default();
        remarks.into_iter().chain(self.output.why_lost()).collect()
    }

    /// Where it started, if that is known.
    pub(crate) fn location(&self) -> Option<&Location> {
        self.location.get()
    }

    /// The place it runs in, if that is not this machine.
    pub fn place(&self) -> Option<&str> {
        self.location()?.place.as_deref()
    }

    /// Whether it outlives its owner.
    pub fn is_detached(&self) -> bool {
        self.kind == Kind::Detached
    }

    /// The session whose shell it is.
    pub fn session(&self) -> Option<&str> {
        match &self.kind {
            Kind::Session(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.clone()
    }

    /// Whether none of its processes is left, except those nobody can kill.
    pub(crate) fn is_gone(&self) -> bool {
        self.end.borrow().survivors.is_some()
    }

    /// Waits until none of its processes is left.
    pub(crate) async fn wait_until_gone(&self) {
        let mut end = self.end.clone();
        // The sender lives until everything is known.
        let _ = end.wait_for(|ended| ended.survivors.is_some()).await;
    }

    /// Waits, up to [`LOOKUP_TIMEOUT`], until it is known whether it runs.
    pub(crate) async fn wait_until_known(&self) {
        let (mut life, mut end) = (self.life.clone(), self.end.clone());
        let known = async {
            tokio::select! {
                Ok(_) = life.wait_for(|life| life.pid.is_some()) => {}
                _ = end.wait_for(|ended| ended.survivors.is_some()) => {}
            }
        };
        let _ = tokio::time::timeout(LOOKUP_TIMEOUT, known).await;
    }

    /// Waits, up to [`LOAD_TIMEOUT`], until everything kept elsewhere about an ended job has arrived here.
    pub(crate) async fn wait_until_loaded(&self) {
        let mut arrived = self.output.watch();
        let loaded = async {
            while self.state() != JobState::Running
                && !self.output.is_finished()
                && arrived.changed().await.is_ok()
            {}
        };
        let _ = tokio::time::timeout(LOAD_TIMEOUT, loaded).await;
    }

    /// Whether a person has typed something since the last call.
    pub fn news_of_person(&self) -> bool {
        let times = self.life.borrow().person;
        self.told_of_person.swap(times, Ordering::Relaxed) != times
    }

    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Whether what a caller waits for has ended: the command, or what it left running if that is the job.
    pub fn has_ended(&self) -> bool {
        let ended = self.end.borrow();
        match self.kind {
            Kind::Adopted | Kind::Detached => ended.survivors.is_some(),
            Kind::Started | Kind::Session(_) => ended.outcome.is_some(),
        }
    }

    /// Whether its command has ended and left processes running.
    pub fn is_left_running(&self) -> bool {
        let ended = self.end.borrow();
        ended.survivors.is_none()
            && matches!(&ended.outcome, Some(Ok(outcome)) if self.is_left_by(outcome))
    }

    /// Whether it runs on after its command has ended like this. A session does not: its shell takes commands.
    fn is_left_by(&self, outcome: &Outcome) -> bool {
        !matches!(self.kind, Kind::Session(_)) && !outcome.background.is_empty()
    }

    pub fn state(&self) -> JobState {
        let over = self.has_ended() && !self.is_left_running();
        let ended = self.end.borrow();
        let end = ended.outcome.as_ref().and_then(|outcome| Some(outcome.as_ref().ok()?.end));
        match (over, end) {
            (false, _) => JobState::Running,
            (true, Some(End::Lost)) => JobState::Lost,
            (true, Some(End::Closed(_))) => JobState::Stopped,
            (true, _) if self.life.borrow().stopped => JobState::Stopped,
            (true, _) => JobState::Exited,
        }
    }

    /// How it ended, as far as that is known.
    pub fn end(&self) -> EndState {
        self.end.borrow().clone()
    }

    pub fn has_terminal(&self) -> bool {
        matches!(self.input, Some(Input::Terminal(_)))
    }

    /// Whether it takes input.
    pub fn can_be_written_to(&self) -> bool {
        self.input.is_some()
    }

    /// What its terminal shows, if it has one. May read from the disk.
    pub fn screen(&self) -> Option<ScreenContents> {
        Some(self.terminal.as_ref()?.shown(&self.output, self.size()).0)
    }

    /// Whether there is output that its terminal has not drawn yet.
    pub(crate) fn has_drawn_more(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| terminal.is_behind(&self.output))
    }

    /// How to read its output: what was drawn on a screen is left out, because the screen shows it.
    pub fn rendering(&self) -> Rendering {
        let screen_rows = match self.input {
            // The initial size: positions in the output would move with a new one.
            Some(Input::Terminal(size)) => Some(size.rows),
            _ => None,
        };
        Rendering { screen_rows, ..Rendering::default() }
    }

    /// What its processes were not allowed to execute so far, if it still runs.
    pub async fn refusals(&self) -> Vec<String> {
        match self.state() {
            JobState::Running => described(&self.controls.inspector().refused_execs(false).await),
            _ => Vec::new(),
        }
    }

    /// Whether it waits for input.
    pub async fn waits_for_input(&self) -> bool {
        let may = self.input.is_some() && self.state() == JobState::Running;
        may && self.controls.inspector().waits_for_input().await
    }

    /// The line in which it would prompt. May read from the disk.
    pub fn prompt(&self) -> String {
        match &self.terminal {
            Some(terminal) => terminal.shown(&self.output, self.size()).1,
            None => {
                let newest = self.output.last_lines(&[Stream::Stdout]);
                newest.lines().last().unwrap_or_default().trim_end().to_owned()
            }
        }
    }

    /// Resizes its terminal, if it has one.
    pub async fn resize(&self, size: TerminalSize) {
        if self.terminal.is_some() {
            self.controls.inspector().resize(size).await;
        }
    }

    fn size(&self) -> Option<TerminalSize> {
        self.life.borrow().size
    }

    /// How much of its output the owner has seen.
    pub fn told(&self) -> Position {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that someone comes back to it, and returns where they search for a text. The first time that is the
    /// beginning, because they may want what was printed while the job started.
    pub fn revisit(&self) -> Position {
        match self.visited.swap(true, Ordering::Relaxed) {
            false => Position::default(),
            true => self.told(),
        }
    }

    pub fn note_told(&self, place: Position) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Reports what becomes known of its end.
    pub(crate) fn watch_end(&self) -> watch::Receiver<EndState> {
        self.end.clone()
    }

    /// How long it has been running, or did.
    pub fn duration(&self) -> Duration {
        let took = self.life.borrow().took.or(self.end.borrow().took);
        took.unwrap_or_else(|| self.began.elapsed())
    }

    /// The first process.
    pub fn pid(&self) -> Option<i32> {
        self.life.borrow().pid
    }

    /// Waits until it runs or turns out not to start.
    pub async fn started(&self) -> Result<(), Arc<Error>> {
        let mut life = self.life.clone();
        if life.wait_for(|life| life.pid.is_some()).await.is_ok() {
            return Ok(());
        }
        let mut end = self.end.clone();
        let ended = end.wait_for(|ended| ended.outcome.is_some()).await;
        match ended.ok().and_then(|ended| ended.outcome.clone()) {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error),
            None => Err(Arc::new(Error::Closed)),
        }
    }

    /// All its processes, by their ids inside the run's PID namespace.
    pub async fn processes(&self) -> Vec<i32> {
        self.controls.inspector().processes().await
    }

    /// Ends it with everything it started, and waits for that. Returns the processes that could not be killed.
    pub async fn stop(&self, signal: Option<i32>, grace: Duration) -> Vec<i32> {
        if self.state() == JobState::Running {
            self.controls.note_stop();
        }
        let mut end = self.end.clone();
        let over = |ended: &EndState| ended.survivors.is_some();
        if let Some(signal) = signal {
            self.controls.signal(signal);
            let asked = tokio::time::timeout(grace, end.wait_for(over)).await.is_ok();
            if !asked {
                self.controls.stop(Duration::ZERO);
            }
        } else {
            self.controls.stop(grace);
        }
        let gone =
            async { end.wait_for(over).await.ok().and_then(|ended| ended.survivors.clone()) };
        match tokio::time::timeout(grace + STOP_TIMEOUT, gone).await {
            Ok(Some(survivors)) => survivors,
            _ => self.processes().await,
        }
    }
}
