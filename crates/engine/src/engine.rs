//! The handle everything else holds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpz_agent::Link;
use mcpz_policy::Policy;

use crate::error::Error;
use crate::gate::{self, Cleared};
use crate::output::Output;
use crate::request::RunRequest;
use crate::run::Run;
use crate::spill::{Spill, SpillSettings};

/// The longest timeout there is: a day.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that is an agent when it is given the argument `agent`.
    pub agent: PathBuf,
    pub working_directory: PathBuf,
    pub shell: PathBuf,
    pub timeout: Duration,
    pub policy: Policy,
    pub spill: SpillSettings,
}

/// Runs commands. Clones share everything. Needs a tokio runtime.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    spill: Arc<Spill>,
    link: Mutex<Agent>,
}

/// The agent, as far as there is one.
enum Agent {
    NotNeededYet,
    Linked(Link),
    /// The engine was closed: nothing is started any more.
    Closed,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        let spill = Arc::new(Spill::new(settings.spill.clone()));
        Self { shared: Arc::new(Shared { settings, spill, link: Mutex::new(Agent::NotNeededYet) }) }
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Has the agent started, so that the first command does not wait for it.
    pub fn warm_up(&self) {
        if let Err(error) = self.link() {
            tracing::warn!("{}", error.chain());
        }
    }

    /// Starts a command, if the gate lets it through.
    pub fn start(&self, request: RunRequest) -> Result<Run, Error> {
        tracing::info!("executing {:?}", request.command);
        let max_output = request.max_output;
        let cleared = gate::clear(&self.shared.settings, request)
            .inspect_err(|error| tracing::info!("not run: {}", error.chain()))?;
        self.launch(cleared, max_output)
    }

    /// Ends every command and the agent, and waits until they are gone.
    pub async fn close(&self) {
        let before = std::mem::replace(&mut *self.lock(), Agent::Closed);
        if let Agent::Linked(link) = before {
            link.close().await;
        }
    }

    fn launch(&self, cleared: Cleared, max_output: Option<u64>) -> Result<Run, Error> {
        let (spawn, pending) = cleared.into_parts();
        let process = self.link()?.spawn(spawn)?;
        Ok(Run::start(process, pending, Output::new(self.shared.spill.quota(max_output))))
    }

    /// The agent: the one we have, or a new one if that was killed.
    fn link(&self) -> Result<Link, Error> {
        let mut agent = self.lock();
        match &*agent {
            Agent::Linked(link) if !link.is_closed() => return Ok(link.clone()),
            Agent::Closed => return Err(Error::Closed),
            _ => {}
        }
        let link = Link::start(&self.shared.settings.agent)?;
        *agent = Agent::Linked(link.clone());
        Ok(link)
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.shared.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
