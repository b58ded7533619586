//! The jobs of an owner, including those that outlive this process.

use std::sync::Arc;
use std::time::SystemTime;

use mcpz_agent::{Ancestry, Identity, Spawn};
use mcpz_audit::Audit;
use mcpz_output::Output;
use mcpz_runtime::spawn_blocking;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Engine;
use crate::detached::{
    JobFolder, JobsFolder, Launch, LaunchError, Manifest, enclose, follow, launch,
};
use crate::environment::Environment;
use crate::error::Error;
use crate::gate::Plan;
use crate::jobs::{EndState, Job};
use crate::outcome::End;
use crate::owner::Owner;
use crate::places::Venue;
use crate::request::{Origin, RunRequest};
use crate::settings::Settings;

impl Engine {
    /// The jobs of an owner with its earlier detached ones, oldest first.
    pub async fn jobs(&self, owner: &Owner) -> Vec<Arc<Job>> {
        if let Some(jobs_folder) = self.jobs_folder() {
            let key = owner.identity.key().to_owned();
            let found = spawn_blocking(move || {
                let mut found = jobs_folder.jobs_of(&key);
                keep_admitted(&mut found);
                found
            });
            let found = found.await.unwrap_or_default();
            let runs: Vec<_> = found.iter().map(|job| job.manifest.run.as_str()).collect();
            owner.jobs.forget_detached(&runs);
            let mut lookups = JoinSet::new();
            for folder in found {
                if let (job, true) = self.follow(owner, folder) {
                    lookups.spawn(async move { job.wait_until_known().await });
                }
            }
            lookups.join_all().await;
        }
        owner.jobs.list()
    }

    /// The job with this id, if the owner has it.
    pub async fn job(&self, owner: &Owner, id: &str) -> Option<Arc<Job>> {
        let known = match owner.jobs.find(id) {
            Some(job) => Some(job),
            None => self.jobs(owner).await.into_iter().find(|job| job.id() == id),
        };
        if let Some(job) = known.as_ref().filter(|job| job.is_detached()) {
            job.wait_until_loaded().await;
        }
        known
    }

    /// Starts a command that outlives its owner and this process.
    pub async fn start_detached(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        self.ready().await;
        self.refuse_in_place(&request, "detach")?;
        let started = self.detach(owner, origin, request).await;
        started.inspect_err(|error| self.log_not_run(error))
    }

    async fn detach(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        self.jobs(owner).await;
        let reserved = self.reserve_job(owner)?;
        let command = self.masked_command(&request.command);
        let here = Venue::default();
        let request = self.resolve(&here, request);
        let entry = self.log_entry(owner, origin, &request, &command);
        let jobs_folder = self.jobs_folder().ok_or(Error::NoJobsFolder)?;
        let cleared = self.gate(&here).clear(&owner.identity, origin, request).await;
        let (spawn, plan, recorded) = self.log_start(entry, cleared)?.into_parts();
        let manifest = Manifest {
            run: recorded.id().to_string(),
            owner_key: owner.identity.key().to_owned(),
            owner: owner.name().to_owned(),
            command,
            directory: plan.directory.to_str().map(str::to_owned),
            started_at: SystemTime::now(),
            input: plan.input,
            recorder: 0,
            server: Identity::own(),
        };
        let beginning = plan.beginning.clone();
        let (settings, environment) = (self.settings().clone(), self.environment().clone());
        let launched = spawn_blocking(move || {
            launch_recorder(&settings, &environment, &jobs_folder, manifest, spawn, plan)
        });
        match launched.await.unwrap_or(Err(Error::Closed.into())) {
            Ok(folder) => {
                recorded.hand_over();
                let (job, _) = self.follow(owner, folder);
                job.remember(beginning);
                drop(reserved);
                job.wait_until_known().await;
                Ok(job)
            }
            Err(LaunchError::Recorded(error)) => {
                recorded.hand_over();
                Err(error)
            }
            Err(LaunchError::Unrecorded(error)) => {
                recorded.end(Err(error.reason()));
                Err(error)
            }
        }
    }

    /// Makes a detached run a job of its owner. Returns whether it is new.
    fn follow(&self, owner: &Owner, folder: JobFolder) -> (Arc<Job>, bool) {
        let known = owner.jobs.list().into_iter().find(|job| *job.run == *folder.manifest.run);
        if let Some(known) = known {
            return (known, false);
        }
        let output = Output::new(owner.identity.account.read_only(folder.output()));
        let (name, started_at) = (folder.manifest.name(), folder.manifest.started_at);
        let job = owner.jobs.add_detached(follow(folder, output), name, started_at);
        owner.follow_job(&job);
        tokio::spawn(record_loss(self.shared.audit.clone(), job.watch_end()));
        (job, true)
    }
}

/// Keeps the jobs whose recorders admit this server. A server that runs below another one is admitted only to the jobs
/// it started itself.
fn keep_admitted(found: &mut Vec<JobFolder>) {
    let own = Identity::own();
    let admitted = |job: &JobFolder| job.manifest.server == own;
    if !found.iter().all(admitted) && matches!(Ancestry::own(), Ancestry::Below(_)) {
        found.retain(admitted);
    }
}

/// Waits for the end of a job. If its recorder was killed, nobody else records the end.
async fn record_loss(audit: Audit, mut end: watch::Receiver<EndState>) {
    let gone = end.wait_for(|end| end.survivors.is_some()).await;
    let lost = gone.is_ok_and(|end| {
        let outcome = end.outcome.as_ref();
        outcome.is_some_and(|answer| answer.as_ref().is_ok_and(|it| it.end == End::Lost))
    });
    if lost {
        audit.record_lost_runs().await;
    }
}

/// Makes a folder for a job and starts its recorder.
fn launch_recorder(
    settings: &Settings,
    environment: &Environment,
    jobs_folder: &JobsFolder,
    manifest: Manifest,
    spawn: Spawn,
    plan: Plan,
) -> Result<JobFolder, LaunchError> {
    let room = jobs_folder.tidy(&manifest.owner_key, &settings.spill);
    let limit = settings.spill.per_run.min(room);
    if limit == 0 {
        return Err(Error::JobsFolderFull.into());
    }
    let folder = jobs_folder.add(&manifest.run).map_err(|source| {
        let path = settings.jobs_folder.clone().unwrap_or_default();
        Error::JobsFolder { path, source }
    })?;
    let (spawn, directory) = enclose(spawn);
    let mut limits = settings.limits;
    // The job's cgroup is beside those of all owners, where an equal share would weigh as much as theirs together.
    limits.per_owner.cpu = limits.per_owner.cpu.for_detached();
    let order = Launch {
        folder: folder.clone(),
        manifest,
        spawn,
        program: plan.program,
        directory: plan.directory,
        timeout: plan.timeout,
        limits,
        jobs: settings.runs.jobs,
        stdin: plan.stdin,
        secrets: plan.secrets.values(),
        mask_tokens: plan.secrets.has_tokens(),
        limit,
        audit: settings.audit.clone(),
        log_commands: settings.log_commands,
        sandbox: settings.sandbox.clone(),
    };
    let launched = launch(&settings.agent, &environment.variables, &order, directory);
    if launched.is_err() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    launched?;
    JobFolder::open(folder).ok_or(LaunchError::Recorded(Error::NoRecorder))
}
