//! What is around commands, by what the settings say and the environment has.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcpz_engine::{Error, Login, Surroundings};
use mcpz_output::Secrets;
use rustix::fs::Access;

use crate::environment::Sieve;
use crate::log::Format;
use crate::{login, secrets};

/// What the settings say.
#[derive(Debug)]
pub struct Around {
    pub sieve: Sieve,
    /// A path, or a name.
    pub shell: PathBuf,
    pub masks: bool,
    /// Variables that are secret although their names do not say so.
    pub secrets: Vec<String>,
    /// What lets clients in.
    pub tokens: Vec<String>,
    pub log: Format,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use {} as the shell", path.display())]
pub struct NoShell {
    path: PathBuf,
    source: io::Error,
}

impl Around {
    pub fn surroundings(
        &self,
        environment: &[(OsString, OsString)],
        shell: PathBuf,
    ) -> Surroundings {
        let secrets = match self.masks {
            true => secrets::find(environment, &self.secrets, &self.tokens),
            false => Secrets::default(),
        };
        Surroundings { variables: self.sieve.sift(environment), shell, secrets }
    }

    /// How the login shell is asked for what it has besides `ours`.
    pub fn login(self, ours: Vec<(OsString, OsString)>) -> Login {
        login::login(Arc::new(move |told| {
            let environment = match told {
                Ok(told) => login::overlaid(&ours, &told),
                Err(Error::Closed) => ours.clone(),
                Err(error) => {
                    let why = error.chain();
                    let text = format!("commands get the server's own environment: {why}");
                    self.log.warn(&text);
                    ours.clone()
                }
            };
            let shell = self.find_shell(&environment).unwrap_or_else(|_| self.fallback_shell());
            self.surroundings(&environment, shell)
        }))
    }

    /// The shell's full path. It is found once, by our own `PATH` and directory: a request can change
    /// both.
    pub fn find_shell(&self, environment: &[(OsString, OsString)]) -> Result<PathBuf, NoShell> {
        let find = || {
            let found = match self.names_shell() {
                true => self.on_path(environment).ok_or_else(|| {
                    io::Error::new(
                        io::ErrorKind::NotFound,
                        "it is not on PATH; name its whole path",
                    )
                })?,
                false => std::path::absolute(&self.shell)?,
            };
            rustix::fs::access(&found, Access::EXEC_OK)?;
            Ok(found)
        };
        find().map_err(|source| NoShell { path: self.shell.clone(), source })
    }

    /// Whether the shell has to be looked for.
    pub fn names_shell(&self) -> bool {
        !self.shell.as_os_str().as_encoded_bytes().contains(&b'/')
    }

    fn on_path(&self, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
        let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
        std::env::split_paths(path)
            .map(|folder| folder.join(&self.shell))
            .find(|found| rustix::fs::access(found, Access::EXEC_OK).is_ok())
    }

    /// Where a shell would be that is nowhere: whoever runs something is told that it is not there.
    pub fn fallback_shell(&self) -> PathBuf {
        PathBuf::from("/bin").join(&self.shell)
    }
}
