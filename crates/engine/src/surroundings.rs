//! What commands find around them: their variables, and the shell that reads them.
//!
//! It is known at once or, where the login shell of whoever started us is asked, when that has told.
//! Nothing runs before.
//!
//!     Login ─▶ shell ─▶ program of ours ─fd 62▶ Variables ─settle▶ Surroundings
//!
//! The variables come on a descriptor of their own, as files that a shell reads at its start print
//! whatever they like.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{REPLY_FD, encode};

use crate::error::Error;
use crate::variables::Variables;
use mcpz_output::Secrets;

/// What depends on the variables there are.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// All variables commands get, but for those a request sets.
    pub variables: Variables,
    pub shell: PathBuf,
    /// What commands may see, but nobody in what they print.
    pub secrets: Secrets,
}

/// How to ask a login shell for its variables.
#[derive(Clone)]
pub struct Login {
    /// The shell, and what has it run a program that calls [`tell`].
    pub command: Vec<String>,
    pub directory: PathBuf,
    /// What is set for it on top of the variables commands get without it.
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    /// What to make of what it has told, or of why it has not.
    pub settle: Settle,
}

pub type Settle = Arc<dyn Fn(Result<Variables, Error>) -> Surroundings + Send + Sync>;

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Tells the engine that has this process run which variables it has.
pub fn tell(variables: &Variables) -> io::Result<()> {
    let mut frame = Vec::new();
    encode(variables, &mut frame).map_err(io::Error::other)?;
    File::options().write(true).open(format!("/dev/fd/{REPLY_FD}"))?.write_all(&frame)
}
