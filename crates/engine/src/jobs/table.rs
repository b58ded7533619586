//! The jobs of one owner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::idle::end_unused;
use super::{EndState, Job, Kind, STOP_GRACE, State};
use crate::outcome::{End, Outcome};
use crate::run::{Handle, Life, Run};

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
    /// How many are about to be added.
    reserved: usize,
}

/// Room for a job that is being started; to be held until it was added.
#[derive(Debug)]
pub struct Reserved(Arc<Jobs>);

impl Reserved {
    /// None if as many run, or are about to, as may.
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
    /// Jobs that are ended when they were not used for so long.
    pub fn new(idle: Option<Duration>) -> Self {
        Self { table: Mutex::default(), idle }
    }

    /// Makes a job of a command that runs, unless what it left running is one already.
    pub(crate) fn add(&self, run: Run) -> Arc<Job> {
        self.insert(Kind::Started, Ran::Running(run))
    }

    /// Makes a job of a command that goes on without us, unless it is one already.
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
        table.insert(job, Ran::Running(run), end)
    }

    /// Makes a job of the shell of a session.
    pub(crate) fn add_session(&self, run: Run, name: String) -> Arc<Job> {
        self.insert(Kind::Session(name), Ran::Running(run))
    }

    /// Makes a job of what a command has left running, unless the command is one.
    pub(crate) fn adopt(&self, handle: Handle, outcome: &Outcome) -> Arc<Job> {
        self.insert(Kind::Adopted, Ran::Answered(handle, outcome.clone()))
    }

    fn insert(&self, kind: Kind, ran: Ran) -> Arc<Job> {
        let mut table = self.lock();
        if let Some(known) = table.of_run(&ran.handle().about.id) {
            return known;
        }
        let (mut job, end) = Job::new(ran.handle(), kind, ran.outcome().cloned());
        job.name = format!("job-{}", table.made + 1);
        let job = table.insert(job, ran, end);
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

    /// Lets go of detached ones that have ended and are not kept any more.
    pub(crate) fn forget_detached(&self, kept: &[&str]) {
        let gone = |job: &Job| {
            job.is_detached() && job.state() != State::Running && !kept.contains(&&*job.run)
        };
        let forgotten: Vec<_> = self.lock().jobs.extract_if(.., |_, job| gone(job)).collect();
        drop(forgotten);
    }

    /// How many are running.
    pub fn running(&self) -> usize {
        self.lock().running()
    }

    /// Has all of them end that do not go on by themselves.
    pub fn stop_all(&self) {
        for job in self.list().iter().filter(|job| !job.is_detached()) {
            if job.state() == State::Running {
                job.controls.note_stop();
            }
            job.controls.stop(STOP_GRACE);
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
        self.list().iter().filter(|job| job.is_detached()).for_each(|job| job.controls.cancel());
    }
}

impl Table {
    fn running(&self) -> usize {
        self.jobs.values().filter(|job| job.state() == State::Running).count()
    }

    fn of_run(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs.values().find(|job| &*job.run == id).cloned()
    }

    fn insert(&mut self, job: Job, ran: Ran, end: watch::Sender<EndState>) -> Arc<Job> {
        self.made += 1;
        let job = Arc::new(job);
        self.jobs.insert(self.made, job.clone());
        self.prune();
        tokio::spawn(follow(ran, end, Arc::downgrade(&job), job.began));
        job
    }

    /// Forgets the oldest of those that have ended, when there are too many.
    fn prune(&mut self) {
        // Detached jobs are remembered on the disk.
        let over = |job: &Job| job.state() != State::Running && !job.is_detached();
        let ended = self.jobs.iter().filter(|(_, job)| over(job));
        let ended: Vec<_> = ended.map(|(number, _)| *number).collect();
        for number in &ended[..ended.len().saturating_sub(MAX_ENDED)] {
            self.jobs.remove(number);
        }
    }
}

/// The run of a new job.
enum Ran {
    /// Its outcome is yet to come.
    Running(Run),
    /// Only what its first process left behind is still there.
    Answered(Handle, Outcome),
}

impl Ran {
    fn handle(&self) -> &Handle {
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
async fn follow(mut ran: Ran, end: watch::Sender<EndState>, job: Weak<Job>, began: Instant) {
    let mut life = ran.handle().life();
    let adopted = matches!(ran, Ran::Answered(..));
    if let Ran::Running(run) = &mut ran {
        let outcome = run.outcome().await.map_err(Arc::new);
        let lasts = job.upgrade().is_some_and(|job| job.is_detached());
        end.send_modify(|end| {
            end.took = (!lasts).then(|| began.elapsed());
            end.outcome = Some(outcome);
        });
    }
    // The sender goes with the last process.
    while life.changed().await.is_ok() {}
    let Life { survivors, limit, lost, .. } = life.borrow().clone();
    end.send_modify(|end| {
        if let Some(Ok(outcome)) = &mut end.outcome {
            outcome.limit = outcome.limit.or(limit);
            // The end of the command itself was told before.
            if lost && adopted {
                outcome.end = End::Lost;
            }
        }
        end.survivors = Some(survivors);
        end.took.get_or_insert_with(|| began.elapsed());
    });
}
