//! The handle everything else holds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_agent::Link;
use mcpz_policy::Policy;

use crate::error::Error;
use crate::gate::{self, Cleared};
use crate::output::Output;
use crate::request::RunRequest;
use crate::run::Run;
use crate::spill::{Spill, SpillSettings};

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
    link: Mutex<Option<Link>>,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        let spill = Arc::new(Spill::new(settings.spill.clone()));
        Self { shared: Arc::new(Shared { settings, spill, link: Mutex::new(None) }) }
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
        tracing::info!("executing {:?}", request.script);
        let cleared = gate::clear(&self.shared.settings, request)
            .inspect_err(|error| tracing::info!("not run: {}", error.chain()))?;
        self.launch(cleared)
    }

    /// Ends every command and the agent, and waits until they are gone.
    pub async fn close(&self) {
        let link = self.lock().take();
        if let Some(link) = link {
            link.close().await;
        }
    }

    fn launch(&self, cleared: Cleared) -> Result<Run, Error> {
        let (spawn, pending) = cleared.into_parts();
        let process = self.link()?.spawn(spawn)?;
        Ok(Run::start(process, pending, Output::new(self.shared.spill.quota())))
    }

    /// The agent: the one we have, or a new one if that was killed.
    fn link(&self) -> Result<Link, Error> {
        let mut link = self.lock();
        match &*link {
            Some(link) if !link.is_closed() => Ok(link.clone()),
            _ => Ok(link.insert(Link::start(&self.shared.settings.agent)?).clone()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Link>> {
        self.shared.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
