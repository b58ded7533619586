//! An owner of commands: its identity, and everything it has running or kept.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use mcpz_output::{Kept, Output, Outputs};

use crate::control::KeptRun;
use crate::jobs::{Job, Jobs};
use crate::outcome::{Location, Outcome};
use crate::owner_identity::OwnerIdentity;
use crate::request::RunRequest;
use crate::run::{RunDetails, RunHandle};
use crate::sandbox::Sandbox;
use crate::sessions::Sessions;

/// An owner. Dropping it ends its jobs and sessions, and deletes its outputs.
#[derive(Debug)]
pub struct Owner {
    pub(crate) identity: OwnerIdentity,
    pub jobs: Arc<Jobs>,
    pub(crate) outputs: Arc<Outputs<OutputDetails>>,
    pub(crate) sessions: Sessions,
    /// The sandbox of its commands, once one exists.
    pub(crate) sandbox: tokio::sync::Mutex<Option<Arc<Sandbox>>>,
}

/// What is noted about an output.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputDetails {
    /// The request, by which a cursor without an id finds its output.
    request: Option<RunRequest>,
    /// How the command ended, once it has.
    outcome: Option<Outcome>,
    /// The command with secrets masked, and when it started, if that is known.
    command: String,
    location: Option<Location>,
    started_at: Option<SystemTime>,
}

/// A kept output.
#[derive(Debug, Clone)]
pub struct KeptOutput {
    pub output: Output,
    /// How its command ended, once it has.
    pub outcome: Option<Outcome>,
    /// The command with secrets masked, and where and when it started, as far as that is known.
    command: String,
    location: Option<Location>,
    pub started_at: Option<SystemTime>,
    /// A compressed copy of its stdout, if one was made.
    pub gzipped: Option<Output>,
}

impl KeptOutput {
    pub fn new(output: Output, outcome: Option<Outcome>) -> Self {
        let about = OutputDetails { outcome, ..OutputDetails::default() };
        Kept { output, about, gzipped: None }.into()
    }

    /// Whether it is of an earlier run of the same command in the same directory, which has ended.
    fn is_before(&self, later: &Self) -> bool {
        self.outcome.is_some()
            && self.location.is_some()
            && (&self.command, &self.location) == (&later.command, &later.location)
            && self.started_at < later.started_at
    }
}

impl OutputDetails {
    /// What is known of a run that has just started.
    fn of(run: &RunDetails) -> Self {
        let (command, location) = (run.command.clone(), run.location.get().cloned());
        Self { command, location, started_at: Some(SystemTime::now()), ..Self::default() }
    }
}

impl Owner {
    pub(crate) fn new(
        identity: OwnerIdentity,
        jobs: Jobs,
        outputs: Outputs<OutputDetails>,
    ) -> Self {
        Self {
            identity,
            jobs: Arc::new(jobs),
            outputs: Arc::new(outputs),
            sessions: Sessions::default(),
            sandbox: tokio::sync::Mutex::default(),
        }
    }

    /// Its name in the audit trail. The name grants no access.
    pub fn name(&self) -> &str {
        self.identity.name()
    }

    /// Releases its sandbox. The sandbox and its temporary files go when its last command ends.
    pub fn leave_sandbox(&self) {
        // A locked sandbox is being made for a command.
        if let Ok(mut sandbox) = self.sandbox.try_lock() {
            sandbox.take();
        }
    }

    /// An empty output, for another form of a kept one.
    pub fn new_output(&self) -> Output {
        self.identity.new_output()
    }

    /// Keeps the output of a command that ended, under the id of its run.
    pub(crate) fn keep(&self, outcome: Outcome, command: String) {
        let (id, output) = (outcome.id.clone(), outcome.output.clone());
        let started_at = SystemTime::now().checked_sub(outcome.usage.wall);
        let location = outcome.location.clone();
        let outcome = Some(outcome);
        let about = OutputDetails { request: None, outcome, command, location, started_at };
        self.outputs.keep(&id, output, about);
    }

    /// Keeps the output of a running command, under the id of its run.
    pub(crate) fn follow(&self, run: &RunDetails, request: Option<RunRequest>) {
        let about = OutputDetails { request, ..OutputDetails::of(run) };
        self.outputs.keep_new(&run.id, run.output.clone(), about);
    }

    /// The same for a job.
    pub(crate) fn follow_job(&self, job: &Job) {
        self.outputs.keep_new(&job.run, job.output.clone(), OutputDetails::default());
    }

    /// Notes how a followed command ended.
    pub fn note_end(&self, id: &str, outcome: &Outcome) {
        self.outputs.note(id, |about| about.outcome = Some(outcome.clone()));
    }

    /// Keeps a compressed copy beside an output.
    pub fn keep_gzipped(&self, id: &str, gzipped: Output) {
        self.outputs.keep_gzipped(id, gzipped);
    }

    /// Drops an output nobody needs.
    pub fn forget(&self, id: &str) {
        self.outputs.forget(id);
    }

    pub fn find(&self, id: &str) -> Option<KeptOutput> {
        self.outputs.find(id).map(|kept| self.with_job(id, kept))
    }

    /// The newest earlier run of the same command in the same directory whose output is kept, with its id.
    pub fn find_earlier(&self, id: &str) -> Option<(String, KeptOutput)> {
        let later = self.find(id)?;
        let earlier = self.list().into_iter().filter(|(_, kept)| kept.is_before(&later));
        earlier.max_by_key(|(_, kept)| kept.started_at)
    }

    /// A job itself knows best what is known of it.
    fn with_job(&self, id: &str, kept: Kept<OutputDetails>) -> KeptOutput {
        let mut kept = KeptOutput::from(kept);
        if let Some(job) = self.jobs.of_run(id) {
            // The end of a detached job can be known before its output is here.
            let is_known = !job.is_detached() || job.output.is_finished();
            let end = is_known.then(|| job.end().outcome).flatten();
            kept.outcome = kept.outcome.or_else(|| end.and_then(Result::ok));
            (kept.command, kept.location) = (job.command.clone(), job.location().cloned());
            kept.started_at = Some(job.started_at);
        }
        kept
    }

    /// The newest run of the same request, with its id.
    pub fn find_newest(&self, request: &RunRequest) -> Option<(String, KeptOutput)> {
        let found = self.outputs.find_newest(|about| about.request.as_ref() == Some(request));
        found.map(|(id, kept)| (id, kept.into()))
    }

    /// Everything kept, oldest first.
    pub fn list(&self) -> Vec<(String, KeptOutput)> {
        let each = |(id, kept): (String, _)| {
            let kept = self.with_job(&id, kept);
            (id, kept)
        };
        self.outputs.list().into_iter().map(each).collect()
    }

    /// Turns what commands leave running into jobs, for as long as the owner exists.
    pub(crate) fn adopter(&self) -> Adopter {
        Adopter { jobs: Arc::downgrade(&self.jobs), outputs: Arc::downgrade(&self.outputs) }
    }
}

/// Everything kept for the owner with this name, as people see it.
pub(crate) fn kept_runs(owner: &Arc<str>, outputs: &Outputs<OutputDetails>) -> Vec<KeptRun> {
    let each = |(id, Kept { output, about, .. }): (String, Kept<OutputDetails>)| KeptRun {
        run: id.into(),
        owner: owner.clone(),
        command: about.command,
        started_at: about.started_at.unwrap_or_else(SystemTime::now),
        end: about.outcome.map(|outcome| (outcome.end, outcome.usage.wall)),
        is_job: false,
        output,
    };
    outputs.list().into_iter().map(each).collect()
}

impl From<Kept<OutputDetails>> for KeptOutput {
    fn from(kept: Kept<OutputDetails>) -> Self {
        let OutputDetails { outcome, command, location, started_at, .. } = kept.about;
        Self { output: kept.output, outcome, command, location, started_at, gzipped: kept.gzipped }
    }
}

/// Turns what commands leave running into jobs.
pub(crate) struct Adopter {
    jobs: Weak<Jobs>,
    outputs: Weak<Outputs<OutputDetails>>,
}

impl Adopter {
    /// Turns what a run left behind into a job and returns its id. If the owner is gone, stops it.
    pub fn adopt(&self, handle: RunHandle, outcome: &Outcome) -> Option<String> {
        let (Some(jobs), Some(outputs)) = (self.jobs.upgrade(), self.outputs.upgrade()) else {
            handle.controls().stop(Job::STOP_GRACE);
            return None;
        };
        let job = jobs.adopt(handle, outcome);
        outputs.keep_new(&job.run, job.output.clone(), OutputDetails::default());
        Some(job.id().to_owned())
    }
}
