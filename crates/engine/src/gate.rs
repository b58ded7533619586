//! The only door to running anything.
//!
//! Nobody else can make a [`Cleared`], and nothing but a `Cleared` is run. It holds what was judged
//! byte for byte, so what was checked is what runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use mcpz_agent::{Program, Spawn, Stdin};
use mcpz_policy::Verdict;

use crate::engine::Settings;
use crate::error::Error;
use crate::request::RunRequest;

/// A command that may run.
pub struct Cleared {
    spawn: Spawn,
    pending: Pending,
}

/// What the run's own task needs of a cleared command.
pub struct Pending {
    pub shell: PathBuf,
    pub directory: PathBuf,
    pub timeout: Duration,
    pub stdin: Option<Vec<u8>>,
}

impl Cleared {
    /// Gives up the proof for what the agent and the run's task need. It works once.
    pub fn into_parts(self) -> (Spawn, Pending) {
        (self.spawn, self.pending)
    }
}

/// Judges a request and turns it into what will run.
pub fn clear(settings: &Settings, request: RunRequest) -> Result<Cleared, Error> {
    check_bytes(&request)?;
    let variables = request.environment.iter().map(|(name, _)| name.as_str());
    if let Verdict::Deny(denial) = settings.policy.judge(&request.script, variables) {
        return Err(Error::Refused(denial));
    }
    let directory = match request.directory {
        Some(directory) => settings.working_directory.join(directory),
        None => settings.working_directory.clone(),
    };
    let environment = request.environment.into_iter();
    let spawn = Spawn {
        program: Program::Script {
            shell: settings.shell.clone().into(),
            text: OsString::from(request.script),
        },
        directory: Some(directory.clone()),
        environment: environment.map(|(name, value)| (name.into(), Some(value.into()))).collect(),
        stdin: if request.stdin.is_some() { Stdin::Pipe } else { Stdin::Null },
    };
    let pending = Pending {
        shell: settings.shell.clone(),
        directory,
        timeout: request.timeout.unwrap_or(settings.timeout),
        stdin: request.stdin,
    };
    Ok(Cleared { spawn, pending })
}

/// Refuses what no program could be given, with its name.
fn check_bytes(request: &RunRequest) -> Result<(), Error> {
    if request.script.contains('\0') {
        return Err(Error::NulByte { what: "command" });
    }
    let directory = request.directory.as_ref().map(|path| path.as_os_str().as_encoded_bytes());
    if directory.is_some_and(|path| path.contains(&0)) {
        return Err(Error::NulByte { what: "working directory" });
    }
    for (name, value) in &request.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::BadVariable(name.clone()));
        }
        if value.contains('\0') {
            return Err(Error::NulByte { what: "environment" });
        }
    }
    Ok(())
}
