//! The jobs of one owner.
//!
//! Ids count up (`job-1`): they are names within one owner, and short names cost a model fewer tokens. A job counts
//! against the limit from the moment it is requested ([`Reserved`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::idle::end_when_idle;
use super::{EndState, Job, JobState, Kind};
use crate::outcome::{End, Outcome};
use crate::run::{Life, Run, RunHandle};

/// How many ended jobs of one owner are remembered.
const MAX_ENDED: usize = 50;

/// The jobs of one owner.
#[derive(Debug, Default)]
pub struct Jobs {
    table: Mutex<Table>,
    /// How long a job may be idle.
    idle: Option<Duration>,
}

#[derive(Debug, Default)]
struct Table {
    made: u64,
    jobs: BTreeMap<u64, Arc<Job>>,
    /// How many are about to be added.
    reserved: usize,
}

/// Room for a job that is being started. Hold it until the job is added.
#[derive(Debug)]
pub struct Reserved(Arc<Jobs>);

impl Reserved {
    /// `None` if the limit is reached.
    pub(crate) fn take(jobs: &Arc<Jobs>, limit: usize) -> Option<Self> {
        let mut table = jobs.lock();
        if table.running() + table.reserved >= limit {
            return None;
        }
        table.reserved += 1;
        drop(table);
        Some(Self(jobs.clone()))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.lock().reserved -= 1;
    }
}

impl Jobs {
    /// `idle` is how long a job may be unused before it is ended.
    pub fn new(idle: Option<Duration>) -> Self {
        Self { table: Mutex::default(), idle }
    }

    /// Makes a job of a running command, unless what it left behind is one already.
    pub(crate) fn add(&self, run: Run) -> Arc<Job> {
        self.insert(Kind::Started, JobSource::Running(run))
    }

    /// Makes a job of a detached command, unless it is one already.
    pub(crate) fn add_detached(&self, run: Run, name: String, started_at: SystemTime) -> Arc<Job> {
        let (mut job, end) = Job::new(run.handle(), Kind::Detached, None);
        job.name = name;
        job.started_at = started_at;
        let age = SystemTime::now().duration_since(started_at).unwrap_or_default();
        job.began = job.began.checked_sub(age).unwrap_or(job.began);
        let mut table = self.lock();
        if let Some(known) = table.of_run(run.id()) {
            run.handle().controls().cancel();
            return known;
        }
        table.insert(job, JobSource::Running(run), end)
    }

    /// Makes a job of a session's shell.
    pub(crate) fn add_session(&self, run: Run, name: String) -> Arc<Job> {
        self.insert(Kind::Session(name), JobSource::Running(run))
    }

    /// Makes a job of what a command left running, unless the command is one.
    pub(crate) fn adopt(&self, handle: RunHandle, outcome: &Outcome) -> Arc<Job> {
        self.insert(Kind::Adopted, JobSource::Answered(handle, Box::new(outcome.clone())))
    }

    fn insert(&self, kind: Kind, source: JobSource) -> Arc<Job> {
        let mut table = self.lock();
        if let Some(known) = table.of_run(&source.handle().about.id) {
            return known;
        }
        let (mut job, end) = Job::new(source.handle(), kind, source.outcome().cloned());
        job.name = format!("job-{}", table.made + 1);
        let job = table.insert(job, source, end);
        if let Some(idle) = self.idle {
            tokio::spawn(end_when_idle(job.clone(), idle));
        }
        job
    }

    /// The job with this id. Looking it up counts as use.
    pub fn find(&self, id: &str) -> Option<Arc<Job>> {
        let job = self.lock().jobs.values().find(|job| job.name == id).cloned()?;
        job.begin_use();
        Some(job)
    }

    /// The job that is this run.
    pub(crate) fn of_run(&self, id: &str) -> Option<Arc<Job>> {
        self.lock().of_run(id)
    }

    /// The latest shell of a session.
    pub(crate) fn last_of_session(&self, name: &str) -> Option<Arc<Job>> {
        let of_session = |job: &&Arc<Job>| job.session() == Some(name);
        self.lock().jobs.values().rev().find(of_session).cloned()
    }

    /// All jobs, oldest first.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.values().cloned().collect()
    }

    /// Forgets ended detached jobs that are no longer kept on the disk.
    pub(crate) fn forget_detached(&self, kept: &[&str]) {
        let gone = |job: &Job| {
            job.is_detached() && job.state() != JobState::Running && !kept.contains(&&*job.run)
        };
        let forgotten: Vec<_> = self.lock().jobs.extract_if(.., |_, job| gone(job)).collect();
        drop(forgotten);
    }

    /// How many are running.
    pub fn running(&self) -> usize {
        self.lock().running()
    }

    /// Ends all jobs except detached ones.
    pub fn stop_all(&self) {
        for job in self.list().iter().filter(|job| !job.is_detached()) {
            if job.state() == JobState::Running {
                job.controls.note_stop();
            }
            job.controls.stop(Job::STOP_GRACE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop_all();
        // Detached jobs run on; only following them ends.
        self.list().iter().filter(|job| job.is_detached()).for_each(|job| job.controls.cancel());
    }
}

impl Table {
    fn running(&self) -> usize {
        self.jobs.values().filter(|job| job.state() == JobState::Running).count()
    }

    fn of_run(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs.values().find(|job| &*job.run == id).cloned()
    }

    fn insert(&mut self, job: Job, source: JobSource, end: watch::Sender<EndState>) -> Arc<Job> {
        self.made += 1;
        let job = Arc::new(job);
        self.jobs.insert(self.made, job.clone());
        self.prune();
        tokio::spawn(follow(source, end, Arc::downgrade(&job), job.began));
        job
    }

    /// Forgets the oldest ended jobs if there are too many.
    fn prune(&mut self) {
        // The disk remembers detached jobs.
        let over = |job: &Job| job.state() != JobState::Running && !job.is_detached();
        let ended = self.jobs.iter().filter(|(_, job)| over(job));
        let ended: Vec<_> = ended.map(|(number, _)| *number).collect();
        for number in &ended[..ended.len().saturating_sub(MAX_ENDED)] {
            self.jobs.remove(number);
        }
    }
}

/// What a new job is made of.
enum JobSource {
    /// A run without an outcome yet.
    Running(Run),
    /// A run that was answered, of which some processes are left.
    Answered(RunHandle, Box<Outcome>),
}

impl JobSource {
    fn handle(&self) -> &RunHandle {
        match self {
            Self::Running(run) => run.handle(),
            Self::Answered(handle, _) => handle,
        }
    }

    fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Running(_) => None,
            Self::Answered(_, outcome) => Some(outcome),
        }
    }
}

/// Notes how a run ends.
async fn follow(
    mut source: JobSource,
    end: watch::Sender<EndState>,
    job: Weak<Job>,
    began: Instant,
) {
    let mut life = source.handle().life();
    let adopted = matches!(source, JobSource::Answered(..));
    if let JobSource::Running(run) = &mut source {
        let outcome = run.outcome().await.map_err(Arc::new);
        let runs_on = |job: &Job| {
            job.is_detached() || matches!(&outcome, Ok(outcome) if job.is_left_by(outcome))
        };
        let lasts = job.upgrade().is_some_and(|job| runs_on(&job));
        end.send_modify(|end| {
            end.took = (!lasts).then(|| began.elapsed());
            end.outcome = Some(outcome);
        });
    }
    // The sender is dropped with the last process.
    while life.changed().await.is_ok() {}
    let Life { survivors, limit, lost, .. } = life.borrow().clone();
    end.send_modify(|end| {
        if let Some(Ok(outcome)) = &mut end.outcome {
            outcome.limit = outcome.limit.or(limit);
            // Only an adopted job has no other end than that of these processes.
            if lost && adopted {
                outcome.end = End::Lost;
            }
        }
        end.survivors = Some(survivors);
        end.took.get_or_insert_with(|| began.elapsed());
    });
}
