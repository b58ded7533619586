//! A request with every default filled in: directory, shell and timeout are those it runs with.
//!
//! It is made once, before the gate. The policy, the audit trail, the log and the run all use the same value.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::environment::Environment;
use crate::request::{Command, Input, RunRequest};
use crate::settings::Settings;

/// One command, ready for the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub program: Program,
    pub directory: PathBuf,
    /// Whether the request itself names the directory, and so could point anywhere.
    pub names_directory: bool,
    /// `None` lets it run until it ends.
    pub timeout: Option<Duration>,
    pub environment: Vec<(String, String)>,
    pub stdin: Option<Vec<u8>>,
    pub input: Option<Input>,
    pub joined: bool,
    /// What the shell of its session already knows.
    pub before: Option<Beginning>,
    pub description: Option<String>,
    /// The place it runs in, if that is not this machine.
    pub place: Option<Arc<str>>,
}

/// What a shell knows before it gets the next text, and the policy has to know when it judges that text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beginning {
    /// What it ran before, or the command that started it.
    pub text: String,
    /// Where it was started, and with which variables.
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
}

/// What to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Script { text: String, shell: PathBuf },
    Argv(Vec<String>),
}

impl Resolved {
    pub fn new(
        settings: &Settings,
        environment: &Environment,
        working_directory: &Path,
        place: Option<Arc<str>>,
        request: RunRequest,
    ) -> Self {
        let program = match request.command {
            Command::Script { text, shell } => {
                let shell = shell.unwrap_or_else(|| environment.shell.clone());
                Program::Script { text, shell }
            }
            Command::Argv(words) => Program::Argv(words),
        };
        let timeout = match request.lasting {
            true => request.timeout,
            false => Some(request.timeout.unwrap_or(settings.timeout)),
        };
        let names_directory = request.directory.is_some();
        let directory = match request.directory {
            Some(directory) => working_directory.join(directory),
            None => working_directory.to_owned(),
        };
        Self {
            program,
            directory,
            names_directory,
            timeout,
            environment: request.environment,
            stdin: request.stdin,
            input: request.input,
            joined: request.joined,
            before: None,
            description: request.description,
            place,
        }
    }

    /// The same in a shell that knows this.
    pub fn behind(self, before: Beginning) -> Self {
        Self { before: Some(before), ..self }
    }

    /// What a shell knows that this starts.
    pub fn beginning(&self) -> Beginning {
        let text = match &self.program {
            Program::Script { text, .. } => text.clone(),
            Program::Argv(words) => {
                words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
        };
        Beginning { text, directory: self.directory.clone(), environment: self.environment.clone() }
    }
}

/// A text as one word of a script.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
