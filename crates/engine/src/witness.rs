//! Whoever wants to know what becomes of runs.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;

/// Told once of a run that had begun, when it is answered for.
pub type Witness = Arc<dyn Fn(&Account<'_>) + Send + Sync>;

/// What is told of a run.
pub struct Account<'a> {
    /// As the log would say it; nothing if it may not.
    pub command: Option<&'a str>,
    pub took: Duration,
    pub answer: &'a Result<Outcome, Error>,
}

/// Somebody who is waiting to be told of one run.
pub(crate) struct Waiting {
    pub witness: Witness,
    pub command: Option<String>,
}

impl Waiting {
    pub fn tell(&self, took: Duration, answer: &Result<Outcome, Error>) {
        (self.witness)(&Account { command: self.command.as_deref(), took, answer });
    }
}
