//! What somebody wants to have run.

use std::path::PathBuf;
use std::time::Duration;

/// One command. What is left out is taken from the engine's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// A text for the shell.
    pub script: String,
    /// Where it runs; relative to the engine's own working directory.
    pub directory: Option<PathBuf>,
    pub timeout: Option<Duration>,
    /// Variables that are set on top of the environment.
    pub environment: Vec<(String, String)>,
    /// What it reads; without it, nothing.
    pub stdin: Option<Vec<u8>>,
}

impl RunRequest {
    pub fn new(script: impl Into<String>) -> Self {
        Self { script: script.into(), ..Self::default() }
    }
}
