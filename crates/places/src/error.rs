//! Why a place cannot be used.

use std::io;
use std::path::PathBuf;

use mcpz_agent::StreamError;
use mcpz_runtime::with_causes;

use crate::container_error::ContainerError;
use crate::kubernetes_error::KubernetesError;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("it was not ready after {seconds} seconds{}; `start_time` sets how long to wait", with(.said))]
    Late { seconds: u64, said: String },
    #[error("cannot start {program}: {error}; {advice}")]
    Program { program: String, error: io::Error, advice: &'static str },
    #[error("cannot read {}, which becomes the agent there", path.display())]
    Agent { path: PathBuf, source: io::Error },
    #[error(
        "it is a {theirs} machine, but {} is a program for {ours}; name one for {theirs} with --place-agent, or \
         `agent` in its table",
        path.display()
    )]
    Architecture { path: PathBuf, ours: String, theirs: String },
    #[error("the agent could not be copied there{}", with(.said))]
    Copy { said: String },
    #[error("{}{}", with_causes(.error), with(.said))]
    Stream { said: String, error: StreamError },
    #[error("the connection to it failed")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Container(#[from] ContainerError),
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
}

/// What a program said about it.
fn with(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
