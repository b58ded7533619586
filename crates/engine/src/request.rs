//! What somebody wants to have run.

use std::path::PathBuf;
use std::time::Duration;

use mcpz_audit::Source;
use serde::{Deserialize, Serialize};

use crate::observer::Observer;

/// One command. What is left out is taken from the engine's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    pub command: Command,
    /// Where it runs; relative to the engine's own working directory.
    pub directory: Option<PathBuf>,
    pub timeout: Option<Duration>,
    /// Variables that are set on top of the environment.
    pub environment: Vec<(String, String)>,
    /// What it reads; without it, nothing.
    pub stdin: Option<Vec<u8>>,
    /// How it can be written to while it runs, if it can.
    pub input: Option<Input>,
    /// Whether it goes on until it ends by itself, unless it has a timeout of its own.
    pub lasting: bool,
    /// Whether what it writes to stderr is part of stdout.
    pub joined: bool,
    /// The session whose shell carries it out. Directory and variables are for one that begins.
    pub session: Option<String>,
    /// What it is for, in words for people.
    pub description: Option<String>,
}

/// What a command reads from while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    Pipe,
    Terminal(Size),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

/// Where a request comes from, for the record.
#[derive(Clone, Default)]
pub struct Origin {
    /// The tool that was called.
    pub tool: String,
    /// The program that called it, as it names itself.
    pub client: Option<String>,
    /// Is told what becomes of it.
    pub observer: Option<Observer>,
}

impl Origin {
    /// The same with the name of its owner, as it is put on record.
    pub(crate) fn source<'a>(&'a self, owner: &'a str) -> Source<'a> {
        Source { tool: &self.tool, client: self.client.as_deref(), owner }
    }
}

/// What is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A text for a shell, or for the engine's if none is named.
    Script { text: String, shell: Option<PathBuf> },
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

impl RunRequest {
    /// A text for the engine's shell.
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
            description: None,
        }
    }
}
