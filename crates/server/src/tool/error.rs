//! Why a call is answered with nothing but an error.
//!
//! `Display` is what the client reads. A tool's own errors are types in its file; here they are boxed, because they are
//! all handled alike.

use std::error::Error;
use std::sync::Arc;

use crate::blocking::BlockingError;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("Invalid arguments: {0}")]
    Arguments(Box<dyn Error + Send + Sync>),
    /// Something only this tool can fail at.
    #[error("{0}")]
    Failed(Box<dyn Error + Send + Sync>),
    #[error("{}", why_not_run(.0))]
    NotRun(mcpz_engine::Error),
    /// The engine says why.
    #[error("Failed to execute: {}", .0.chain())]
    NotStarted(Arc<mcpz_engine::Error>),
    #[error("{}", .0.chain())]
    Engine(mcpz_engine::Error),
    #[error("{}", .0.chain())]
    Output(mcpz_output::Error),
    #[error("cancelled")]
    Cancelled,
    #[error("{0}")]
    Blocking(BlockingError),
}

/// A command, or another text that must say something, that is blank.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is empty")]
struct Blank(&'static str);

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a cursor; pass next_cursor unchanged")]
pub struct InvalidCursor(pub String);

impl ToolError {
    pub fn arguments(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Arguments(Box::new(error))
    }

    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Refuses a command that says nothing: it would run, and nobody would know what for.
pub fn check_not_blank(argument: &'static str, command: &str) -> Result<(), ToolError> {
    match command.trim().is_empty() {
        true => Err(ToolError::arguments(Blank(argument))),
        false => Ok(()),
    }
}

/// Why a command did not run, for the client that sent it.
pub fn why_not_run(error: &mcpz_engine::Error) -> String {
    match error {
        mcpz_engine::Error::Refused(denial) => {
            format!("Command denied by security policy: {denial}")
        }
        error => format!("Failed to execute: {}", error.chain()),
    }
}

impl From<mcpz_engine::Error> for ToolError {
    fn from(error: mcpz_engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<mcpz_output::Error> for ToolError {
    fn from(error: mcpz_output::Error) -> Self {
        Self::Output(error)
    }
}

impl From<BlockingError> for ToolError {
    fn from(error: BlockingError) -> Self {
        Self::Blocking(error)
    }
}
