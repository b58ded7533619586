//! Observers of runs.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;

/// Called once for each run that has begun, with its answer.
pub type Observer = Arc<dyn Fn(&Finished<'_>) + Send + Sync>;

/// A run that was answered.
pub struct Finished<'a> {
    /// As the log shows it; nothing if the log must not.
    pub command: Option<&'a str>,
    pub took: Duration,
    pub answer: &'a Result<Outcome, Error>,
}

/// An observer of one run.
pub(crate) struct Waiting {
    pub observer: Observer,
    pub command: Option<String>,
}

impl Waiting {
    pub fn tell(&self, took: Duration, answer: &Result<Outcome, Error>) {
        (self.observer)(&Finished { command: self.command.as_deref(), took, answer });
    }
}
