//! Errors about writing records and reading the trail.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "nothing runs without an audit record, and none can be written to {}; make room there, let \
         the server write there, or choose another folder for the records",
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
