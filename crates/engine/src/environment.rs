//! The environment of commands: variables, the shell, and which values are secret.
//!
//! It is known from the start or, if a login shell is asked, once that has answered. No command runs before. Agents and
//! recorders start with exactly these variables, so nothing below them can have more.
//!
//!     Login ─▶ shell ─▶ our program ─fd 62▶ Variables ─resolve▶ Environment
//!
//! The variables arrive on a separate descriptor. Marks in the output would not do, because startup files print what
//! they like and may leave programs behind that keep printing.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{REPLY_FD, encode};
use mcpz_output::Secrets;

use crate::error::Error;
use crate::variables::Variables;

/// What commands start with.
#[derive(Debug, Clone)]
pub struct Environment {
    /// All variables, except those a request sets itself.
    pub variables: Variables,
    pub shell: PathBuf,
    /// Values that commands may use, and that are masked in their output.
    pub secrets: Secrets,
}

/// How to ask a login shell for its variables.
#[derive(Clone)]
pub struct Login {
    /// The shell, with arguments that make it run a program that calls [`report_variables`].
    pub command: Vec<String>,
    pub directory: PathBuf,
    /// Variables for the shell, on top of those commands get without it.
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    /// Makes an environment from the shell's answer, or from its failure.
    pub resolve: ResolveLogin,
}

pub type ResolveLogin = Arc<dyn Fn(Result<Variables, Error>) -> Environment + Send + Sync>;

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Sends the variables of this process to the engine that started it.
pub fn report_variables(variables: &Variables) -> io::Result<()> {
    let mut frame = Vec::new();
    encode(variables, &mut frame).map_err(io::Error::other)?;
    File::options().write(true).open(format!("/dev/fd/{REPLY_FD}"))?.write_all(&frame)
}
