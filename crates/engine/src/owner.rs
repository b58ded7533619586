//! An owner of commands: its identity, and everything it has running or kept.

use std::sync::{Arc, Weak};

use mcpz_output::{Kept, Output, Outputs};

use crate::jobs::{Job, Jobs};
use crate::outcome::Outcome;
use crate::owner_identity::OwnerIdentity;
use crate::request::RunRequest;
use crate::run::RunHandle;
use crate::sandbox::Sandbox;
use crate::sessions::Sessions;

/// An owner. Dropping it ends its jobs and sessions, and deletes its outputs.
#[derive(Debug)]
pub struct Owner {
    pub(crate) identity: OwnerIdentity,
    pub jobs: Arc<Jobs>,
    outputs: Arc<Outputs<OutputDetails>>,
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
}

/// A kept output.
#[derive(Debug, Clone)]
pub struct KeptOutput {
    pub output: Output,
    /// How its command ended, once it has.
    pub outcome: Option<Outcome>,
    /// A compressed copy of its stdout, if one was made.
    pub gzipped: Option<Output>,
}

impl KeptOutput {
    pub fn new(output: Output, outcome: Option<Outcome>) -> Self {
        Self { output, outcome, gzipped: None }
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
    pub fn keep(&self, outcome: Outcome) {
        let (id, output) = (outcome.id.clone(), outcome.output.clone());
        self.outputs.keep(
            &id,
            output,
            OutputDetails { outcome: Some(outcome), ..OutputDetails::default() },
        );
    }

    /// Keeps the output of a running command, under the id of its run.
    pub fn follow(&self, id: &str, request: Option<RunRequest>, output: Output) {
        self.outputs.keep_new(id, output, OutputDetails { request, outcome: None });
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
        self.outputs.find(id).map(KeptOutput::from)
    }

    /// The newest run of the same request, with its id.
    pub fn find_newest(&self, request: &RunRequest) -> Option<(String, KeptOutput)> {
        let found = self.outputs.find_newest(|about| about.request.as_ref() == Some(request));
        found.map(|(id, kept)| (id, kept.into()))
    }

    /// Everything kept, oldest first.
    pub fn list(&self) -> Vec<(String, KeptOutput)> {
        self.outputs.list().into_iter().map(|(id, kept)| (id, kept.into())).collect()
    }

    /// Turns what commands leave running into jobs, for as long as the owner exists.
    pub(crate) fn adopter(&self) -> Adopter {
        Adopter { jobs: Arc::downgrade(&self.jobs), outputs: Arc::downgrade(&self.outputs) }
    }
}

impl From<Kept<OutputDetails>> for KeptOutput {
    fn from(kept: Kept<OutputDetails>) -> Self {
        Self { output: kept.output, outcome: kept.about.outcome, gzipped: kept.gzipped }
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
