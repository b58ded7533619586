//! A place as the settings describe it, and as it is when it is open.

use std::path::PathBuf;
use std::time::Duration;

use mcpz_agent::{FarLink, PlaceFacts, StreamError};
use tokio::time::{Instant, timeout_at};

use crate::error::PlaceError;
use crate::made::{Ending, Made};
use crate::opening::Opening;
use crate::{container, kubernetes, process, slurm, ssh};

/// A place that commands can run in.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub kind: Kind,
    pub per: Per,
    /// How long one may be unused before it is ended.
    pub idle: Duration,
    /// How many there may be at once.
    pub max: usize,
    /// How many are made before anybody needs them.
    pub ready: usize,
    /// Where commands start, if not where the place itself does.
    pub directory: Option<PathBuf>,
    /// The program that becomes the agent there, if it is not this one.
    pub agent: Option<PathBuf>,
    /// How long it may take to make.
    pub start_time: Duration,
    /// How often both ends say something. After three silent beats each takes the other for gone.
    pub beat: Duration,
}

/// What kind of place it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// On this machine. For tests and measurements.
    Process,
    Ssh(ssh::Ssh),
    Slurm(slurm::Slurm),
    Container(container::Container),
    Kubernetes(kubernetes::Kubernetes),
}

impl Kind {
    /// Whether commands there see the files of this machine by the same names.
    pub fn shares_files(&self) -> bool {
        match self {
            Self::Process | Self::Slurm(_) => true,
            Self::Ssh(_) | Self::Kubernetes(_) => false,
            Self::Container(container) => container.directory.is_some(),
        }
    }

    /// Whether files that are only there are gone once it has ended.
    pub fn is_thrown_away(&self) -> bool {
        match self {
            Self::Process | Self::Ssh(_) | Self::Slurm(_) => false,
            Self::Container(container) => matches!(container.base, container::Base::Image(_)),
            Self::Kubernetes(pod) => matches!(pod.source, kubernetes::PodSource::Image(_)),
        }
    }
}

/// Who shares a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Per {
    /// All commands of the server.
    #[default]
    Server,
    /// All commands of an owner.
    Owner,
    /// A session. Commands without a session share one for their owner.
    Session,
}

/// A place that takes commands.
pub struct Opened {
    pub link: FarLink,
    pub facts: PlaceFacts,
    pub ending: Box<dyn Ending>,
}

impl Place {
    /// Removes what servers left behind that were killed. Returns how much that was.
    pub async fn sweep(&self, opening: &Opening<'_>) -> Result<usize, PlaceError> {
        match &self.kind {
            Kind::Container(container) => container.sweep(opening).await,
            Kind::Kubernetes(kubernetes) => kubernetes.sweep(opening).await,
            Kind::Process | Kind::Ssh(_) | Kind::Slurm(_) => Ok(0),
        }
    }

    /// Makes the place, and connects to an agent in it.
    pub async fn open(&self, opening: &Opening<'_>) -> Result<Opened, PlaceError> {
        let late = |said| PlaceError::Late { seconds: self.start_time.as_secs(), said };
        let deadline = Instant::now() + self.start_time;
        let made = timeout_at(deadline, self.make(opening)).await;
        let Made { stream, mut ending } = made.unwrap_or_else(|_| Err(late(String::new())))?;
        let left = deadline.saturating_duration_since(Instant::now());
        match FarLink::connect(Box::into_pin(stream), left, self.beat).await {
            Ok((link, facts)) => {
                ending.opened();
                Ok(Opened { link, facts, ending })
            }
            Err(StreamError::Late(_)) => Err(late(ending.end().await)),
            Err(error) => Err(PlaceError::Stream { said: ending.end().await, error }),
        }
    }

    async fn make(&self, opening: &Opening<'_>) -> Result<Made, PlaceError> {
        let agent = self.agent.as_deref().unwrap_or(opening.program);
        match &self.kind {
            Kind::Process => Made::through(process::start(agent, opening)?),
            Kind::Ssh(ssh) => Made::through(ssh.start(agent, opening).await?),
            Kind::Slurm(slurm) => Made::through(slurm.start(agent, opening)?),
            Kind::Container(container) => container.start(agent, opening).await,
            Kind::Kubernetes(kubernetes) => kubernetes.start(agent, self.start_time, opening).await,
        }
    }

    /// What it is, in a few words.
    pub fn description(&self) -> String {
        match &self.kind {
            Kind::Process => "process".to_owned(),
            Kind::Ssh(ssh) => format!("ssh {}", ssh.host()),
            Kind::Slurm(slurm) => slurm.description(),
            Kind::Container(container) => container.description(),
            Kind::Kubernetes(kubernetes) => kubernetes.description(),
        }
    }
}
