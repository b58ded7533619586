//! One client of the engine: who it is, and everything it has running or kept.

use std::sync::{Arc, Weak};

use mcpz_output::{Kept, Output, Outputs};

use crate::jobs::Jobs;
use crate::outcome::Outcome;
use crate::owner::Owner;
use crate::request::RunRequest;
use crate::run::Handle;
use crate::sandbox::Sandbox;
use crate::sessions::Sessions;

/// A client. Its jobs and sessions end, and its outputs go, when it is dropped.
#[derive(Debug)]
pub struct Client {
    pub(crate) owner: Owner,
    pub jobs: Arc<Jobs>,
    outputs: Arc<Outputs<About>>,
    pub(crate) sessions: Sessions,
    /// The sandbox of its commands, once there is one.
    pub(crate) sandbox: tokio::sync::Mutex<Option<Arc<Sandbox>>>,
}

/// What is noted about an output.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// What was asked for: how a cursor without an id finds its output.
    request: Option<RunRequest>,
    /// How the command ended, once it has.
    outcome: Option<Outcome>,
}

/// An output that was found again.
#[derive(Debug, Clone)]
pub struct Found {
    pub output: Output,
    /// How its command ended, once it has.
    pub outcome: Option<Outcome>,
    /// A compressed copy of its stdout, if there is one.
    pub zipped: Option<Output>,
}

impl Found {
    pub fn new(output: Output, outcome: Option<Outcome>) -> Self {
        Self { output, outcome, zipped: None }
    }
}

impl Client {
    pub(crate) fn new(owner: Owner, jobs: Jobs, outputs: Outputs<About>) -> Self {
        Self {
            owner,
            jobs: Arc::new(jobs),
            outputs: Arc::new(outputs),
            sessions: Sessions::default(),
            sandbox: tokio::sync::Mutex::default(),
        }
    }

    /// Its name in the audit trail, which opens nothing.
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// Lets go of its sandbox, with the temporary files in it, once none of its commands runs there.
    pub fn leave_sandbox(&self) {
        // One that is being made is needed.
        if let Ok(mut sandbox) = self.sandbox.try_lock() {
            sandbox.take();
        }
    }

    /// An empty output for another form of one that is kept.
    pub fn new_output(&self) -> Output {
        self.owner.new_output()
    }

    /// Keeps what a command that ended has printed, under the id of its run.
    pub fn keep(&self, outcome: Outcome) {
        let (id, output) = (outcome.id.clone(), outcome.output.clone());
        self.outputs.keep(&id, output, About { outcome: Some(outcome), ..About::default() });
    }

    /// Keeps what a command prints, from now on, under the id of its run.
    pub fn follow(&self, id: &str, request: Option<RunRequest>, output: Output) {
        self.outputs.keep_new(id, output, About { request, outcome: None });
    }

    /// Notes how a command that is followed ended.
    pub fn note_end(&self, id: &str, outcome: &Outcome) {
        self.outputs.note(id, |about| about.outcome = Some(outcome.clone()));
    }

    /// Keeps a compressed copy beside an output.
    pub fn keep_zipped(&self, id: &str, zipped: Output) {
        self.outputs.keep_zipped(id, zipped);
    }

    /// Drops an output nobody needs.
    pub fn forget(&self, id: &str) {
        self.outputs.forget(id);
    }

    pub fn find(&self, id: &str) -> Option<Found> {
        self.outputs.find(id).map(Found::from)
    }

    /// The newest run of the same request, with its id.
    pub fn find_newest(&self, request: &RunRequest) -> Option<(String, Found)> {
        let found = self.outputs.find_newest(|about| about.request.as_ref() == Some(request));
        found.map(|(id, kept)| (id, kept.into()))
    }

    /// Everything that is kept, oldest first.
    pub fn list(&self) -> Vec<(String, Found)> {
        self.outputs.list().into_iter().map(|(id, kept)| (id, kept.into())).collect()
    }

    /// Takes over what commands leave running, for as long as the client is there.
    pub(crate) fn adopter(&self) -> Adopter {
        Adopter { jobs: Arc::downgrade(&self.jobs), outputs: Arc::downgrade(&self.outputs) }
    }
}

impl From<Kept<About>> for Found {
    fn from(kept: Kept<About>) -> Self {
        Self { output: kept.output, outcome: kept.about.outcome, zipped: kept.zipped }
    }
}

/// Makes jobs of what commands leave running.
pub(crate) struct Adopter {
    jobs: Weak<Jobs>,
    outputs: Weak<Outputs<About>>,
}

impl Adopter {
    /// Makes a job of what is left of a run that ended so, and returns its id. Nothing is left running for a client
    /// that is gone.
    pub fn adopt(&self, handle: Handle, outcome: &Outcome) -> Option<String> {
        let (Some(jobs), Some(outputs)) = (self.jobs.upgrade(), self.outputs.upgrade()) else {
            handle.controls().stop(crate::jobs::STOP_GRACE);
            return None;
        };
        let job = jobs.adopt(handle, outcome);
        outputs.keep_new(&job.run, job.output.clone(), About::default());
        Some(job.id().to_owned())
    }
}
