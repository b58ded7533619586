//! A connection to an agent, on this machine or in a place.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LinkError;
use crate::frame::{Confinement, Spawn};
use crate::git_configs::SharedConfig;
use crate::limits::Limits;
use crate::near_link::NearLink;
use crate::process::Process;
use crate::spawn_frame::{SpawnFrame, Unsent};
use crate::stream::FarLink;

/// A connection to an agent and its keepers. Clones share it.
#[derive(Clone)]
pub enum Link {
    Near(NearLink),
    Far(FarLink),
}

impl Link {
    /// Starts `program agent` with exactly these variables, so nothing below it can have more. The limits hold for
    /// every run. Must be called within a tokio runtime.
    pub fn start(
        program: &Path,
        variables: &[(OsString, OsString)],
        limits: Limits,
    ) -> Result<Self, LinkError> {
        NearLink::start(program, variables, limits).map(Self::Near)
    }

    /// Starts an agent that confines everything it starts, by a command that ends up executing
    /// `mcpz agent`. Returns the listener on which confined commands reach the proxy, if they have one.
    ///
    /// Must be called on a thread that outlives the agent: bubblewrap dies with the thread that starts it.
    pub async fn start_confined(
        command: Command,
        limits: Limits,
        confinement: Confinement,
        configs: Vec<SharedConfig>,
    ) -> Result<(Self, Option<TcpListener>), LinkError> {
        let started = NearLink::start_confined(command, limits, confinement, configs).await;
        started.map(|(link, listener)| (Self::Near(link), listener))
    }

    pub fn is_closed(&self) -> bool {
        match self {
            Self::Near(link) => link.is_closed(),
            Self::Far(link) => link.is_closed(),
        }
    }

    /// A process in the namespaces of a confined agent: bubblewrap's child.
    pub fn confined_process(&self) -> Option<i32> {
        self.near()?.confined_process()
    }

    /// Lets confined commands write to these paths as well, which did not exist when the agent was confined.
    pub async fn allow_writing(&self, paths: Vec<PathBuf>) {
        if let Some(link) = self.near() {
            link.allow_writing(paths).await;
        }
    }

    /// The ports on which something listens in the network of a confined agent.
    pub fn listening(&self) -> BTreeSet<u16> {
        self.near().map(NearLink::listening).unwrap_or_default()
    }

    /// Connects to a port that confined commands listen on. `None` if there is none, or the agent is gone.
    pub async fn connect_inside(&self, port: u16) -> Option<TcpStream> {
        self.near()?.connect_inside(port).await
    }

    /// Has a program started for an owner.
    pub fn spawn(&self, owner: u64, spawn: Spawn) -> Result<Process, LinkError> {
        self.send(owner, SpawnFrame::new(spawn)?).map_err(|unsent| unsent.error)
    }

    /// The same, but returns the frame on failure, so that the caller can try another agent.
    pub fn send(&self, owner: u64, frame: SpawnFrame) -> Result<Process, Unsent> {
        match self {
            Self::Near(link) => link.send(owner, frame).map(Into::into),
            Self::Far(link) => link.send(owner, frame).map(Into::into),
        }
    }

    /// Ends the agent and with it every run, and waits until they are gone.
    pub async fn close(&self) {
        match self {
            Self::Near(link) => link.close().await,
            Self::Far(link) => link.close().await,
        }
    }

    /// Ends the agent and with it every run, without waiting.
    pub fn hang_up(&self) {
        match self {
            Self::Near(link) => link.hang_up(),
            Self::Far(link) => link.hang_up(),
        }
    }

    fn near(&self) -> Option<&NearLink> {
        match self {
            Self::Near(link) => Some(link),
            Self::Far(_) => None,
        }
    }
}
