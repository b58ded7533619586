//! Commands that run while their owner does something else.
//!
//!     Run ─▶ Job ─┬─ output, as it comes          (read again and again)
//!                 ├─ words: signals, input, stop  (Remote)
//!                 └─ the end, when it has come    (watch)
//!
//! A job is its owner's, and ends with it, or when nobody has used it for long. What a command that
//! was answered for has left running is a job, too.

mod idle;
mod interactive;
mod typing;
mod waiting;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mcpz_agent::descendants;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub(crate) use idle::Use;
pub(crate) use interactive::asks;
pub use typing::Typing;
pub use waiting::{Condition, Met, wait};

use idle::{Uses, end_unused};
use interactive::{Terminal, waits_for_input};

use crate::detached::Card;
use crate::error::Error;
use crate::outcome::{End, Outcome};
use crate::output::{Output, Stream};
use crate::request::{Input, Size};
use crate::run::{Life, Remote, Run};
use crate::screen::Shown;

/// What a stopped job is given to end by itself.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long it may take beyond that until nothing is left of it.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// How long it may take to find out about a job that somebody else keeps.
const MEETING: Duration = Duration::from_secs(2);

/// The most jobs of one owner that have ended and are remembered.
const MAX_ENDED: usize = 50;

/// The jobs of one owner.
#[derive(Debug, Default)]
pub struct Jobs {
    table: Mutex<Table>,
    /// How long one may go on without being used.
    idle: Option<Duration>,
}

#[derive(Debug, Default)]
struct Table {
    made: u64,
    jobs: BTreeMap<u64, Arc<Job>>,
}

/// A command that runs, or did.
#[derive(Debug)]
pub struct Job {
    /// What its owner calls it.
    name: String,
    /// What the run is known by, in the audit trail and where its output is kept.
    pub run: Arc<str>,
    /// What was asked for, as it may be shown.
    pub command: String,
    pub started_at: SystemTime,
    began: Instant,
    pub output: Output,
    remote: Remote,
    life: watch::Receiver<Life>,
    end: watch::Receiver<Ended>,
    kind: Kind,
    /// How it can be written to, if it can.
    input: Option<Input>,
    terminal: Option<Terminal>,
    stopped: AtomicBool,
    uses: Uses,
    /// How far its owner has been told what it printed.
    told: Mutex<Place>,
    /// How often its owner was told that a person has typed something.
    told_of_person: AtomicU64,
    /// All that was typed for something that takes it for a program.
    typed: Mutex<String>,
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

/// What is known of a job's end.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// What became of the first process; nothing if it could not be started.
    pub outcome: Option<Result<Outcome, String>>,
    /// How long it took, all in all.
    pub took: Option<Duration>,
    /// Processes that could not be ended, once nothing else is left.
    pub survivors: Option<Vec<i32>>,
}

/// A place in a job's output: in stdout, and in stderr where that is apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub stdout: u64,
    pub stderr: u64,
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

impl Jobs {
    /// Jobs that are ended when they were not used for so long.
    pub fn new(idle: Option<Duration>) -> Self {
        Self { table: Mutex::default(), idle }
    }

    /// Makes a job of a command that runs.
    pub(crate) fn add(&self, run: Run, command: String) -> Arc<Job> {
        self.insert(run, command, Kind::Started, None)
    }

    /// Makes a job of a command that goes on without us, unless it is one already.
    pub(crate) fn add_detached(&self, run: Run, card: &Card) -> Arc<Job> {
        let (mut job, ending) = Job::new(&run, card.command.clone(), Kind::Detached, None);
        job.name = card.name();
        job.started_at = card.started_at;
        let age = SystemTime::now().duration_since(card.started_at).unwrap_or_default();
        job.began = job.began.checked_sub(age).unwrap_or(job.began);
        let mut table = self.lock();
        if let Some(known) = table.jobs.values().find(|known| known.run == job.run) {
            run.remote().cancel();
            return known.clone();
        }
        table.insert(job, run, ending)
    }

    /// Makes a job of the shell of a session.
    pub(crate) fn add_session(&self, run: Run, command: String, name: String) -> Arc<Job> {
        self.insert(run, command, Kind::Session(name), None)
    }

    /// Makes a job of what a command has left running.
    pub(crate) fn adopt(&self, run: Run, command: String, outcome: &Outcome) -> Arc<Job> {
        self.insert(run, command, Kind::Adopted, Some(outcome.clone()))
    }

    fn insert(&self, run: Run, command: String, kind: Kind, outcome: Option<Outcome>) -> Arc<Job> {
        let (mut job, ending) = Job::new(&run, command, kind, outcome);
        let mut table = self.lock();
        job.name = format!("job-{}", table.made + 1);
        let job = table.insert(job, run, ending);
        if let Some(idle) = self.idle {
            tokio::spawn(end_unused(job.clone(), idle));
        }
        job
    }

    /// The job of this name. Whoever looks for it has use for it.
    pub fn find(&self, id: &str) -> Option<Arc<Job>> {
        let job = self.lock().jobs.values().find(|job| job.name == id).cloned()?;
        job.begin_use();
        Some(job)
    }

    /// The last shell that a session of this name had.
    pub(crate) fn last_of_session(&self, name: &str) -> Option<Arc<Job>> {
        let of_session = |job: &&Arc<Job>| job.session() == Some(name);
        self.lock().jobs.values().rev().find(of_session).cloned()
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.values().cloned().collect()
    }

    /// How many are running.
    pub fn running(&self) -> usize {
        self.lock().jobs.values().filter(|job| job.state() == State::Running).count()
    }

    /// Has all of them end that do not go on by themselves.
    pub fn stop_all(&self) {
        for job in self.list().iter().filter(|job| !job.is_detached()) {
            job.stopped.fetch_or(job.state() == State::Running, Ordering::Relaxed);
            job.remote.stop(STOP_GRACE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop_all();
        // The others are only let go of.
        self.list().iter().filter(|job| job.is_detached()).for_each(|job| job.remote.cancel());
    }
}

impl Table {
    fn insert(&mut self, job: Job, run: Run, ending: watch::Sender<Ended>) -> Arc<Job> {
        self.made += 1;
        let job = Arc::new(job);
        self.jobs.insert(self.made, job.clone());
        self.prune();
        tokio::spawn(follow(run, ending, job.kind == Kind::Adopted, job.began));
        job
    }

    /// Forgets the oldest of those that have ended, when there are too many.
    fn prune(&mut self) {
        // What has become of a detached one is on the disk.
        let over = |job: &Job| job.state() != State::Running && !job.is_detached();
        let ended = self.jobs.iter().filter(|(_, job)| over(job));
        let ended: Vec<_> = ended.map(|(number, _)| *number).collect();
        for number in &ended[..ended.len().saturating_sub(MAX_ENDED)] {
            self.jobs.remove(number);
        }
    }
}

/// Tells how a run ends.
async fn follow(mut run: Run, ending: watch::Sender<Ended>, adopted: bool, began: Instant) {
    let mut life = run.life();
    if !adopted {
        let outcome = run.outcome().await.map_err(|error| error.chain());
        ending.send_modify(|ended| {
            ended.took = Some(match &outcome {
                Ok(outcome) if !outcome.usage.wall.is_zero() => outcome.usage.wall,
                _ => began.elapsed(),
            });
            ended.outcome = Some(outcome);
        });
    }
    // Its sender goes with the last process.
    while life.changed().await.is_ok() {}
    let (survivors, limit) = (life.borrow().survivors.clone(), life.borrow().limit);
    ending.send_modify(|ended| {
        ended.survivors = Some(survivors);
        if let Some(Ok(outcome)) = &mut ended.outcome {
            outcome.limit = outcome.limit.or(limit);
        }
        ended.took.get_or_insert_with(|| began.elapsed());
    });
}

impl Job {
    fn new(
        run: &Run,
        command: String,
        kind: Kind,
        outcome: Option<Outcome>,
    ) -> (Self, watch::Sender<Ended>) {
        let (ending, end) = watch::channel(Ended { outcome: outcome.map(Ok), ..Ended::default() });
        let input = run.input();
        let job = Self {
            name: String::new(),
            run: run.id().clone(),
            command,
            started_at: SystemTime::now(),
            began: Instant::now(),
            output: run.output().clone(),
            remote: run.remote().clone(),
            life: run.life(),
            end,
            kind,
            input,
            terminal: match input {
                Some(Input::Terminal(size)) => Some(Terminal::new(size)),
                _ => None,
            },
            stopped: AtomicBool::new(false),
            uses: Uses::default(),
            told: Mutex::default(),
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
                // The process that minds it is only known from itself.
                Ok(_) = life.wait_for(|life| life.keeper.is_some()) => {}
                _ = end.wait_for(|ended| ended.outcome.is_some()) => {}
            }
        };
        let _ = tokio::time::timeout(MEETING, known).await;
    }

    /// Whether a person has typed something since this was asked last.
    pub fn news_of_person(&self) -> bool {
        let times = self.life.borrow().person;
        self.told_of_person.swap(times, Ordering::Relaxed) != times
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    pub fn state(&self) -> State {
        let ended = self.end.borrow();
        let over = match self.kind {
            Kind::Adopted => ended.survivors.is_some(),
            _ => ended.outcome.is_some(),
        };
        let lost = matches!(&ended.outcome, Some(Ok(Outcome { end: End::Lost, .. })));
        match over {
            false => State::Running,
            true if lost => State::Lost,
            true if self.stopped.load(Ordering::Relaxed) || self.life.borrow().stopped => {
                State::Stopped
            }
            true => State::Exited,
        }
    }

    /// What became of it, as far as that is known.
    pub fn end(&self) -> Ended {
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

    /// Whether it waits for somebody to write something, and what it asked. May wait for the disk.
    pub fn prompt(&self) -> Option<String> {
        let waits = self.input.is_some() && self.state() == State::Running;
        if !waits || !waits_for_input(&self.life.borrow()) {
            return None;
        }
        Some(match &self.terminal {
            Some(terminal) => terminal.shown(&self.output, self.size()).1,
            None => {
                let newest = self.output.newest(&[Stream::Stdout]);
                newest.lines().last().unwrap_or_default().trim_end().to_owned()
            }
        })
    }

    /// Gives its terminal another size, if it has one.
    pub fn resize(&self, size: Size) {
        if self.terminal.is_some() {
            self.remote.resize(size);
        }
    }

    fn size(&self) -> Option<Size> {
        self.life.borrow().size
    }

    /// How far its owner has been told what it printed.
    pub fn told(&self) -> Place {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note_told(&self, place: Place) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Waits until more is known of its end.
    pub(crate) async fn changed(&self) {
        let mut end = self.end.clone();
        if end.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How long it has been running, or did.
    pub fn duration(&self) -> Duration {
        self.end.borrow().took.unwrap_or_else(|| self.began.elapsed())
    }

    /// The first process.
    pub fn pid(&self) -> Option<i32> {
        self.life.borrow().pid
    }

    /// Waits until it runs, or cannot.
    pub async fn started(&self) -> Result<(), String> {
        let mut life = self.life.clone();
        if life.wait_for(|life| life.pid.is_some()).await.is_ok() {
            return Ok(());
        }
        let mut end = self.end.clone();
        let ended = end.wait_for(|ended| ended.outcome.is_some()).await;
        match ended.ok().and_then(|ended| ended.outcome.clone()) {
            Some(Ok(_)) => Ok(()),
            Some(Err(text)) => Err(text),
            None => Err(Error::Closed.to_string()),
        }
    }

    /// All its processes.
    pub fn pids(&self) -> Vec<i32> {
        let keeper = self.life.borrow().keeper;
        keeper
            .filter(|_| self.end.borrow().survivors.is_none())
            .map(descendants)
            .unwrap_or_default()
    }

    /// Ends it with all it started, and waits until that is done. Returns what could not be ended.
    pub async fn stop(&self, signal: Option<i32>, grace: Duration) -> Vec<i32> {
        if self.state() == State::Running {
            self.stopped.store(true, Ordering::Relaxed);
        }
        let mut end = self.end.clone();
        let over = |ended: &Ended| ended.survivors.is_some();
        if let Some(signal) = signal {
            self.remote.signal(signal);
            let asked = tokio::time::timeout(grace, end.wait_for(over)).await.is_ok();
            if !asked {
                self.remote.stop(Duration::ZERO);
            }
        } else {
            self.remote.stop(grace);
        }
        let gone = tokio::time::timeout(grace + STOP_PATIENCE, end.wait_for(over)).await;
        match gone {
            Ok(Ok(ended)) => ended.survivors.clone().unwrap_or_default(),
            _ => self.pids(),
        }
    }
}
