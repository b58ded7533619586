//! Jobs that other processes can ask for, and those that outlive this one.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use mcpz_agent::{Ancestry, Identity, Spawn};
use mcpz_runtime::aside;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Engine, Settings};
use crate::desk::{Access, Desk};
use crate::detached::{Card, Order, Shelf, Standing, enclose, follow, launch};
use crate::error::Error;
use crate::gate::Pending;
use crate::jobs::{Ended, Job};
use crate::outcome::End;
use crate::request::{Origin, RunRequest};
use crate::store::Owner;
use mcpz_audit::Audit;
use mcpz_output::Output;

impl Engine {
    /// The jobs of an owner, with those that were detached before, oldest first.
    pub async fn jobs(&self, owner: &Owner) -> Vec<Arc<Job>> {
        if let Some(shelf) = self.shelf() {
            let estate = owner.estate().to_owned();
            let found = aside(move || {
                let mut found = shelf.jobs_of(&estate);
                keep_admitted(&mut found);
                found
            });
            let found = found.await.unwrap_or_default();
            let runs: Vec<_> = found.iter().map(|standing| standing.card.run.as_str()).collect();
            owner.jobs.forget_detached(&runs);
            let mut meetings = JoinSet::new();
            for standing in found {
                if let (job, true) = self.follow(owner, standing) {
                    meetings.spawn(async move { job.met().await });
                }
            }
            meetings.join_all().await;
        }
        owner.jobs.list()
    }

    /// The job of this name, if it is the owner's.
    pub async fn job(&self, owner: &Owner, id: &str) -> Option<Arc<Job>> {
        let known = match owner.jobs.find(id) {
            Some(job) => Some(job),
            None => self.jobs(owner).await.into_iter().find(|job| job.id() == id),
        };
        if let Some(job) = known.as_ref().filter(|job| job.is_detached()) {
            job.loaded().await;
        }
        known
    }

    /// Starts a command that goes on when its owner, and this process, are gone.
    pub async fn start_detached(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        self.settled().await;
        let started = self.detach(owner, origin, request).await;
        started.inspect_err(|error| self.note_not_run(error))
    }

    async fn detach(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        self.jobs(owner).await;
        let reserved = self.reserve_job(owner)?;
        let logged = self.line(owner, origin, &request);
        let shelf = self.shelf().ok_or(Error::NoShelf)?;
        let command = self.shown(&request.command);
        let cleared = self.gate().clear(owner, origin, request).await;
        let (spawn, pending, recorded) = self.logged(logged, cleared)?.into_parts();
        let card = Card {
            run: recorded.id().to_string(),
            estate: owner.estate().to_owned(),
            owner: owner.name().to_owned(),
            command,
            started_at: SystemTime::now(),
            input: pending.input,
            recorder: 0,
            server: Identity::own(),
        };
        let settings = self.settings().clone();
        let started = aside(move || begin(&settings, &shelf, card, spawn, pending)).await;
        match started.unwrap_or(Err(Error::Closed)) {
            Ok(begun) => {
                recorded.leave();
                let (job, _) = self.follow(owner, begun.map_err(Error::NotBegun)?);
                drop(reserved);
                job.met().await;
                Ok(job)
            }
            Err(error) => {
                recorded.end(Err(error.reason()));
                Err(error)
            }
        }
    }

    /// Makes a detached run a job of its owner; whether it was none before.
    fn follow(&self, owner: &Owner, standing: Standing) -> (Arc<Job>, bool) {
        let known = owner.jobs.list().into_iter().find(|job| *job.run == *standing.card.run);
        if let Some(known) = known {
            return (known, false);
        }
        let output = Output::new(owner.account.recorded(standing.output()));
        let card = standing.card.clone();
        let job = owner.jobs.add_detached(follow(standing, output), &card);
        owner.follow(&job.run, None, job.output.clone());
        tokio::spawn(record_loss(self.shared.audit.clone(), job.ending()));
        (job, true)
    }

    /// Lets other processes of the same user ask for the jobs of all owners here. Without a place for
    /// that, nobody can.
    pub(super) fn open_desk(&self) {
        let Some(shelf) = self.shelf() else { return };
        self.shared.opening.call_once(|| {
            let shared = Arc::downgrade(&self.shared);
            let register = move || shared.upgrade().map_or_else(Vec::new, |all| all.all_jobs());
            let opened = shelf.add_server().and_then(|folder| {
                let access = Access::new(self.shared.audit.clone());
                Desk::open(&folder, Arc::new(register), access)?;
                Ok(folder)
            });
            match opened {
                Ok(folder) => drop(self.shared.desk.set(folder)),
                Err(error) => {
                    tracing::warn!("nobody can ask for the jobs of this server: {error}");
                }
            }
            aside(move || shelf.sweep());
        });
    }

    pub(super) fn close_desk(&self) {
        if let Some(folder) = self.shared.desk.get() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    fn shelf(&self) -> Option<Shelf> {
        let folder = self.settings().jobs_folder.as_ref()?;
        Some(self.shared.shelf.get_or_init(|| Shelf::new(folder)).clone())
    }
}

impl super::Shared {
    /// The jobs of everybody, but for those that have a desk of their own.
    fn all_jobs(&self) -> Vec<(Arc<str>, Arc<Job>)> {
        let mut owners = self.owners.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        owners.retain(|(_, jobs)| jobs.strong_count() > 0);
        let jobs = owners.iter().filter_map(|(name, jobs)| Some((name, Weak::upgrade(jobs)?)));
        let each = |(name, jobs): (&Arc<str>, Arc<crate::jobs::Jobs>)| {
            let own = jobs.list().into_iter().filter(|job| !job.is_detached());
            own.map(|job| (name.clone(), job)).collect::<Vec<_>>()
        };
        jobs.flat_map(each).collect()
    }
}

/// Keeps the jobs whose recorders let this server in. They refuse one that is itself run by another server,
/// unless it has started the job.
fn keep_admitted(found: &mut Vec<Standing>) {
    let own = Identity::own();
    let admitted = |job: &Standing| job.card.server == own;
    if !found.iter().all(admitted) && matches!(Ancestry::own(), Ancestry::Below(_)) {
        found.retain(admitted);
    }
}

/// Waits for the end of a job. If its recorder was killed, nobody has recorded that.
async fn record_loss(audit: Audit, mut ending: watch::Receiver<Ended>) {
    let gone = ending.wait_for(|ended| ended.survivors.is_some()).await;
    let lost = gone.is_ok_and(|ended| {
        let outcome = ended.outcome.as_ref();
        outcome.is_some_and(|answer| answer.as_ref().is_ok_and(|it| it.end == End::Lost))
    });
    if lost {
        audit.take_over().await;
    }
}

/// Makes a folder for a job and starts its recorder, which may have to say why the run has not begun.
fn begin(
    settings: &Settings,
    shelf: &Shelf,
    card: Card,
    spawn: Spawn,
    pending: Pending,
) -> Result<Result<Standing, String>, Error> {
    let limit = settings.spill.per_run.min(shelf.tidy(&card.estate, &settings.spill));
    if limit == 0 {
        return Err(Error::ShelfFull);
    }
    let folder = shelf.add(&card.run).map_err(|source| {
        let path = settings.jobs_folder.clone().unwrap_or_default();
        Error::Shelf { path, source }
    })?;
    let (spawn, directory) = enclose(spawn);
    let mut limits = settings.limits;
    limits.per_owner.cpu = limits.per_owner.cpu.for_detached();
    let order = Order {
        folder: folder.clone(),
        card,
        spawn,
        program: pending.program,
        directory: pending.directory,
        timeout: pending.timeout,
        limits,
        jobs: settings.runs.jobs,
        stdin: pending.stdin,
        secrets: pending.secrets.values(),
        limit,
        audit: settings.audit.clone(),
        log_commands: settings.log_commands,
        confining: settings.confining.clone(),
    };
    let launched = launch(&settings.agent, &settings.variables, &order, directory);
    if !matches!(launched, Ok(Ok(()))) {
        let _ = std::fs::remove_dir_all(&folder);
    }
    let begun = launched?;
    Ok(begun.and_then(|()| Standing::open(folder).ok_or_else(|| "it cannot be found".to_owned())))
}
