//! Reasons why kept output cannot be read or searched.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the pattern is not a valid regular expression: {0}")]
    Pattern(String),
    #[error("the path is not a valid JMESPath expression: {0}")]
    Path(String),
    #[error("the output is binary and cannot be searched")]
    Binary,
    #[error("the output is not JSON")]
    NoJson(#[source] serde_json::Error),
    #[error(
        "the path needs more than {limit} bytes of the output at once; narrow it down, for example \
         to `items[?id=='x'].name`, `items[0]` or `items[:10]`"
    )]
    DocumentTooLong { limit: u64 },
    #[error("cannot read the kept output")]
    Read(#[source] io::Error),
}

impl Error {
    /// Formats the error and all its causes on one line.
    pub fn chain(&self) -> String {
        mcpz_runtime::with_causes(self)
    }
}
