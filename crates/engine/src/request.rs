//! What a caller asks the engine to run.

use std::path::PathBuf;
use std::time::Duration;

use mcpz_audit::Source;
use serde::{Deserialize, Serialize};

use crate::observer::Observer;

/// One command. The engine's settings fill in what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    pub command: Command,
    /// Where it runs, relative to the engine's working directory.
    pub directory: Option<PathBuf>,
    pub timeout: Option<Duration>,
    /// Variables set on top of the environment.
    pub environment: Vec<(String, String)>,
    /// Its standard input; empty if missing.
    pub stdin: Option<Vec<u8>>,
    /// How it takes input while it runs, if it does.
    pub input: Option<Input>,
    /// Whether it has no timeout, unless it names one.
    pub lasting: bool,
    /// Whether stderr goes to the same pipe as stdout.
    pub joined: bool,
    /// The session whose shell runs it. Directory and variables apply only to a session that this command starts.
    pub session: Option<String>,
    /// The place it runs in, if it names one.
    pub place: Option<String>,
    /// What it is for, in words for people.
    pub description: Option<String>,
}

/// What a command reads from while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    Pipe,
    Terminal(TerminalSize),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// Where a request comes from, for the audit trail.
#[derive(Clone, Default)]
pub struct Origin {
    /// The tool that was called.
    pub tool: String,
    /// The program that called it, by the name it gives itself.
    pub client: Option<String>,
    /// Learns how the run ends.
    pub observer: Option<Observer>,
}

impl Origin {
    /// The same with the owner's name, for the audit trail.
    pub(crate) fn source<'a>(&'a self, owner: &'a str) -> Source<'a> {
        Source { tool: &self.tool, client: self.client.as_deref(), owner }
    }
}

/// What to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A script for a shell, or for the engine's shell if it names none.
    Script { text: String, shell: Option<PathBuf> },
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

impl RunRequest {
    /// A script for the engine's shell.
    pub fn script(text: impl Into<String>) -> Self {
        Self::new(Command::Script { text: text.into(), shell: None })
    }

    pub fn new(command: Command) -> Self {
        Self {
            command,
            directory: None,
            timeout: None,
            environment: Vec::new(),
            stdin: None,
            input: None,
            lasting: false,
            joined: false,
            session: None,
            place: None,
            description: None,
        }
    }
}
