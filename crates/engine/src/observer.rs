//! Observers learn how runs end.
//!
//! The engine knows nothing of traces or metrics. A caller names an observer for its request instead, and the observer
//! is called once, with the outcome. A run that has become a job is reported when its command ends. Requests that never
//! started and detached jobs are not reported.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;

/// Called once for each run that started, with its result.
pub type Observer = Arc<dyn Fn(&Finished<'_>) + Send + Sync>;

/// A run that ended.
pub struct Finished<'a> {
    /// As the log shows it, or `None` if the log must not contain commands.
    pub command: Option<&'a str>,
    pub took: Duration,
    pub answer: &'a Result<Outcome, Error>,
}

/// The observer of one run.
pub(crate) struct RunObserver {
    pub observer: Observer,
    pub command: Option<String>,
}

impl RunObserver {
    pub fn notify(&self, took: Duration, answer: &Result<Outcome, Error>) {
        (self.observer)(&Finished { command: self.command.as_deref(), took, answer });
    }
}
