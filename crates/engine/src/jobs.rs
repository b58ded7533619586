//! Commands that run while their owner does something else.
//!
//!     Run ─▶ Job ─┬─ output, as it comes          (read again and again)
//!                 ├─ signals, input, stop         (Controls)
//!                 └─ the end, when it has come    (watch)
//!
//! A job is its owner's, and ends with it, or when nobody has used it for long. What a command that
//! was answered for has left running is a job, too.

mod end;
mod idle;
mod screen;
mod table;
mod typing;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpz_output::{Output, Point, Shown, Stream, View};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub use end::{JobEnd, JobOutcome};
pub(crate) use idle::Use;
pub use table::{Jobs, Reserved};
pub use typing::Typing;
pub use waiting::{Condition, Met, wait};

use idle::Uses;
use screen::Terminal;
use typing::Typed;

use crate::error::Error;
use crate::outcome::{End, Outcome};
use crate::request::{Input, Size};
use crate::run::{Controls, Handle, Life};

/// What a stopped job is given to end by itself.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long it may take beyond that until nothing is left of it.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// How long it may take to find out about a job that somebody else keeps.
const MEETING: Duration = Duration::from_secs(2);

/// How long it may take to read all that such a job has printed.
const LOADING: Duration = Duration::from_secs(20);

/// A command that runs, or did.
#[derive(Debug)]
pub struct Job {
    /// What its owner calls it.
    name: String,
    /// What the run is known by, in the audit trail and where its output is kept.
    pub run: Arc<str>,
    /// What was asked for, as it may be shown.
    pub command: String,
    /// What the caller says it is for.
    pub description: Option<String>,
    pub started_at: SystemTime,
    began: Instant,
    pub output: Output,
    controls: Controls,
    life: watch::Receiver<Life>,
    end: watch::Receiver<EndState>,
    kind: Kind,
    /// How it can be written to, if it can.
    input: Option<Input>,
    terminal: Option<Terminal>,
    uses: Uses,
    /// How far its owner has been told what it printed.
    told: Mutex<Place>,
    /// Whether anybody has come back to it since it was begun.
    visited: AtomicBool,
    /// How often its owner was told that a person has typed something.
    told_of_person: AtomicU64,
    typed: Mutex<Typed>,
}

/// How a command became a job.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Started,
    /// It is what a command has left running.
    Adopted,
    /// It is the shell of the session of this name.
    Session(String),
    /// It does not end with its owner.
    Detached,
}

/// What is known of a job's end so far.
#[derive(Debug, Clone, Default)]
pub struct EndState {
    /// What became of the first process, or why there was none.
    pub outcome: Option<Result<Outcome, Arc<Error>>>,
    /// How long it took, all in all.
    pub took: Option<Duration>,
    /// Processes that could not be ended, once nothing else is left.
    pub survivors: Option<Vec<i32>>,
}

/// A place in a job's output: in stdout, and in stderr where that is apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub stdout: Point,
    pub stderr: Point,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Running,
    Exited,
    /// It ended because it was told to.
    Stopped,
    /// Whatever minded it was killed, and it with that.
    Lost,
}

impl State {
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
    fn new(
        handle: &Handle,
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
            uses: Uses::default(),
            told: Mutex::default(),
            visited: AtomicBool::new(false),
            told_of_person: AtomicU64::new(0),
            typed: Mutex::default(),
        };
        (job, ending)
    }

    pub fn id(&self) -> &str {
        &self.name
    }

    /// Whether it goes on without its owner.
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

    /// Whether nothing of it is left, but for what nobody can end.
    pub(crate) fn is_gone(&self) -> bool {
        self.end.borrow().survivors.is_some()
    }

    /// Waits until nothing of it is left.
    pub(crate) async fn gone(&self) {
        let mut end = self.end.clone();
        // Its sender lives until all is told.
        let _ = end.wait_for(|ended| ended.survivors.is_some()).await;
    }

    /// Waits, for a moment at most, until it is known whether it runs.
    pub(crate) async fn met(&self) {
        let (mut life, mut end) = (self.life.clone(), self.end.clone());
        let known = async {
            tokio::select! {
                Ok(_) = life.wait_for(|life| life.pid.is_some()) => {}
                _ = end.wait_for(|ended| ended.survivors.is_some()) => {}
            }
        };
        let _ = tokio::time::timeout(MEETING, known).await;
    }

    /// Waits, for a moment at most, until all that is kept of it elsewhere is known here.
    pub(crate) async fn loaded(&self) {
        let mut arrived = self.output.watch();
        let loaded = async {
            while self.state() != State::Running
                && !self.output.is_finished()
                && arrived.changed().await.is_ok()
            {}
        };
        let _ = tokio::time::timeout(LOADING, loaded).await;
    }

    /// Whether a person has typed something since this was asked last.
    pub fn news_of_person(&self) -> bool {
        let times = self.life.borrow().person;
        self.told_of_person.swap(times, Ordering::Relaxed) != times
    }

    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    pub fn state(&self) -> State {
        let ended = self.end.borrow();
        let over = match self.kind {
            Kind::Adopted | Kind::Detached => ended.survivors.is_some(),
            _ => ended.outcome.is_some(),
        };
        let end = ended.outcome.as_ref().and_then(|outcome| Some(outcome.as_ref().ok()?.end));
        match (over, end) {
            (false, _) => State::Running,
            (true, Some(End::Lost)) => State::Lost,
            (true, Some(End::Closed(_))) => State::Stopped,
            (true, _) if self.life.borrow().stopped => State::Stopped,
            (true, _) => State::Exited,
        }
    }

    /// What became of it, as far as that is known.
    pub fn end(&self) -> EndState {
        self.end.borrow().clone()
    }

    pub fn has_terminal(&self) -> bool {
        matches!(self.input, Some(Input::Terminal(_)))
    }

    /// Whether it reads what is written to it.
    pub fn can_be_written_to(&self) -> bool {
        self.input.is_some()
    }

    /// What its terminal shows, if it has one. May wait for the disk.
    pub fn screen(&self) -> Option<Shown> {
        Some(self.terminal.as_ref()?.shown(&self.output, self.size()).0)
    }

    /// Whether there is more for its terminal to show than when somebody looked last.
    pub(crate) fn has_drawn_more(&self) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| terminal.is_behind(&self.output))
    }

    /// How its output is read: who is shown a screen needs none of what was drawn on it.
    pub fn view(&self) -> View {
        let screen_rows = match self.input {
            // As it was at first: places would move with it.
            Some(Input::Terminal(size)) => Some(size.rows),
            _ => None,
        };
        View { screen_rows, ..View::default() }
    }

    /// Whether it waits for somebody to write something.
    pub async fn waits_for_input(&self) -> bool {
        let may = self.input.is_some() && self.state() == State::Running;
        may && self.controls.inspector().waits_for_input().await
    }

    /// The line it would ask in. May wait for the disk.
    pub fn prompt(&self) -> String {
        match &self.terminal {
            Some(terminal) => terminal.shown(&self.output, self.size()).1,
            None => {
                let newest = self.output.newest(&[Stream::Stdout]);
                newest.lines().last().unwrap_or_default().trim_end().to_owned()
            }
        }
    }

    /// Gives its terminal another size, if it has one.
    pub async fn resize(&self, size: Size) {
        if self.terminal.is_some() {
            self.controls.inspector().resize(size).await;
        }
    }

    fn size(&self) -> Option<Size> {
        self.life.borrow().size
    }

    /// How far its owner has been told what it printed.
    pub fn told(&self) -> Place {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that somebody comes back to it. Where they look for a text: the first one may want what was
    /// printed while it was begun.
    pub fn revisit(&self) -> Place {
        match self.visited.swap(true, Ordering::Relaxed) {
            false => Place::default(),
            true => self.told(),
        }
    }

    pub fn note_told(&self, place: Place) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Tells when more is known of its end.
    pub(crate) fn ending(&self) -> watch::Receiver<EndState> {
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

    /// Waits until it runs, or cannot.
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

    /// All its processes, by the numbers they know each other by.
    pub async fn processes(&self) -> Vec<i32> {
        self.controls.inspector().processes().await
    }

    /// Ends it with all it started, and waits until that is done. Returns what could not be ended.
    pub async fn stop(&self, signal: Option<i32>, grace: Duration) -> Vec<i32> {
        if self.state() == State::Running {
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
        match tokio::time::timeout(grace + STOP_PATIENCE, gone).await {
            Ok(Some(survivors)) => survivors,
            _ => self.processes().await,
        }
    }
}
