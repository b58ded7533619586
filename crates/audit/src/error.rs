//! Errors about writing records and reading the trail.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "cannot write the audit record to {}, and no command runs without one; free some space, make \
         the folder writable, or choose another one",
        path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

impl Error {
    /// Formats the error and all its causes on one line.
    pub fn chain(&self) -> String {
        mcpz_runtime::with_causes(self)
    }
}

/// Makes an error about reading `path`.
pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Read { path: path.to_owned(), source }
}
