//! What a place is made with.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use mcpz_agent::Limits;
use tokio::sync::watch;

/// What is known when a place is made.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// This program.
    pub program: &'a Path,
    /// The variables of this process, for the programs that lead to the place.
    pub variables: &'a [(OsString, OsString)],
    pub limits: &'a Limits,
    pub working_directory: &'a Path,
    /// Has a receiver for each process that leads to a place, until that has ended, and for each that is being made.
    pub children: &'a watch::Sender<()>,
}

impl Opening<'_> {
    /// Where a folder is that an engine sees as well, if it is on this machine: a service may have a `/tmp` of its own.
    pub fn runtime_folder(&self) -> PathBuf {
        const VARIABLES: [&str; 3] = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR"];
        let value = |wanted: &str| self.variables.iter().rev().find(|(name, _)| name == wanted);
        let set = VARIABLES.into_iter().find_map(value).map(|(_, value)| PathBuf::from(value));
        set.filter(|path| path.is_absolute()).unwrap_or_else(|| "/tmp".into())
    }

    /// Makes something in a task of its own, which goes on when nobody waits any longer. The server does not end before
    /// it.
    pub async fn finish<T: Send + 'static>(
        &self,
        making: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let alive = self.children.subscribe();
        let made = tokio::spawn(async move {
            let made = making.await;
            drop(alive);
            made
        });
        made.await.map_err(|_| io::ErrorKind::Interrupted.into())
    }
}
