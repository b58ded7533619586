//! What commands are started with: their variables, the shell that runs them, the secrets masked in
//! what they print.
//!
//!     our variables ──┬─────────────▶ filter ─▶ variables of commands
//!     login shell's ──┘                └─▶ secrets ─▶ values to mask
//!
//! With `login_env`, both come once the login shell has answered; until then nothing runs.

mod agent_variables;
mod filter;
mod login;
mod secrets;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcpz_engine::{Environment, Error, Login, Variables};
use mcpz_output::Secrets;
use rustix::fs::Access;

use crate::environment;
use crate::log::Format;

pub use filter::{InvalidPattern, VariableFilter};
pub use login::SUBCOMMAND as LOGIN_SUBCOMMAND;

/// What the settings say about it.
#[derive(Debug)]
pub struct CommandEnvironment {
    pub filter: VariableFilter,
    /// Whether commands learn that a program reads what they print.
    pub tells_of_agents: bool,
    /// A path, or a name to look up on `PATH`.
    pub shell: PathBuf,
    pub mask_secrets: bool,
    /// Whether to recognise tokens by their form, if secrets are masked.
    pub mask_tokens: bool,
    /// Variables that are secret although their names do not say so.
    pub secrets: Vec<String>,
    /// Tokens that let HTTP clients in.
    pub tokens: Vec<String>,
    pub log: Format,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use {} as the shell", path.display())]
pub struct UnusableShell {
    path: PathBuf,
    source: io::Error,
}

impl CommandEnvironment {
    /// What commands get of the given variables.
    pub fn build(&self, variables: &[(OsString, OsString)], shell: PathBuf) -> Environment {
        let known = || secrets::find(variables, &self.secrets, &self.tokens);
        let secrets = match (self.mask_secrets, self.mask_tokens) {
            (true, true) => known().with_tokens(),
            (true, false) => known(),
            (false, _) => Secrets::default(),
        };
        let mut passed = self.filter.apply(variables);
        if self.tells_of_agents {
            agent_variables::tell(&mut passed, |name| self.filter.drops(name));
        }
        Environment { variables: Variables::new(passed), shell, secrets }
    }

    /// How to ask the login shell for its variables, which are then added to `ours`.
    pub fn login(self: Arc<Self>, ours: Vec<(OsString, OsString)>) -> Login {
        login::login(Arc::new(move |answer| {
            let variables = match answer {
                Ok(theirs) => login::merge(&ours, &theirs),
                Err(Error::Closed) => ours.clone(),
                Err(error) => {
                    let why = error.chain();
                    let text = format!("commands get the server's own environment: {why}");
                    self.log.warn(&text);
                    ours.clone()
                }
            };
            let shell = self.find_shell(&variables).unwrap_or_else(|_| self.fallback_shell());
            self.build(&variables, shell)
        }))
    }

    /// The shell's full path. Resolved once, by our own `PATH` and working directory: a request can
    /// change both for its command.
    pub fn find_shell(&self, variables: &[(OsString, OsString)]) -> Result<PathBuf, UnusableShell> {
        let find = || {
            let found = match self.needs_lookup() {
                true => self.look_up(variables).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::NotFound, "it is not on PATH; give its full path")
                })?,
                false => std::path::absolute(&self.shell)?,
            };
            rustix::fs::access(&found, Access::EXEC_OK)?;
            Ok(found)
        };
        find().map_err(|source| UnusableShell { path: self.shell.clone(), source })
    }

    /// The shell in a place: a full path, or a name to look up on the `PATH` there.
    pub fn shell_there(&self) -> PathBuf {
        match self.needs_lookup() {
            true => self.shell.clone(),
            false => std::path::absolute(&self.shell).unwrap_or_else(|_| self.shell.clone()),
        }
    }

    /// Whether the shell is a bare name.
    pub fn needs_lookup(&self) -> bool {
        !self.shell.as_os_str().as_encoded_bytes().contains(&b'/')
    }

    fn look_up(&self, variables: &[(OsString, OsString)]) -> Option<PathBuf> {
        let (_, path) = variables.iter().find(|(name, _)| name == "PATH")?;
        environment::folders(path)
            .map(|folder| folder.join(&self.shell))
            .find(|found| rustix::fs::access(found, Access::EXEC_OK).is_ok())
    }

    /// A path for a shell that was not found. Commands then fail with an error that names it.
    pub fn fallback_shell(&self) -> PathBuf {
        PathBuf::from("/bin").join(&self.shell)
    }
}
