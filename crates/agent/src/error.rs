//! Why the server could not start an agent or have it start a program.

use std::io;

use crate::frame::FrameError;

/// Why nothing could be started.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("cannot start the agent")]
    Start(#[source] io::Error),
    #[error("the agent cannot start another keeper")]
    Ask(#[source] io::Error),
    #[error("cannot confine commands as required: {0}")]
    Confinement(String),
    #[error("the agent is gone")]
    Gone,
    #[error("the request is too long")]
    TooLong(#[source] FrameError),
}
