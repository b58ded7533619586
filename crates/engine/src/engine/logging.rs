//! Logs commands that are about to run or were refused.

use super::Engine;
use crate::error::Error;
use crate::gate::Cleared;
use crate::owner::Owner;
use crate::request::Origin;
use crate::resolved::Resolved;

impl Engine {
    /// The log entry for a request, if the log is on.
    pub(super) fn log_entry(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: &Resolved,
        shown: &str,
    ) -> Option<LogEntry> {
        tracing::enabled!(tracing::Level::INFO).then(|| LogEntry {
            tool: origin.tool.clone(),
            owner: owner.name().to_owned(),
            directory: self.mask(&request.directory.display().to_string()),
            command: self.settings().log_commands.then(|| shown.to_owned()),
        })
    }

    /// Logs a request once it is decided.
    pub(super) fn log_start(
        &self,
        entry: Option<LogEntry>,
        cleared: Result<Cleared, Error>,
    ) -> Result<Cleared, Error> {
        if let Some(entry) = entry {
            let run = cleared.as_ref().ok().map(|cleared| cleared.id().clone());
            self.shared.later.add(move || entry.log(run.as_deref()));
        }
        cleared
    }
}

/// A command, for the log.
pub struct LogEntry {
    tool: String,
    owner: String,
    directory: String,
    /// `None` if the log must not contain commands.
    command: Option<String>,
}

impl LogEntry {
    fn log(self, run: Option<&str>) {
        let Self { tool, owner, directory, command } = self;
        // Debug formatting escapes control characters.
        let what =
            command.as_ref().map_or("a command".to_owned(), |command| format!("{command:?}"));
        tracing::info!(run, tool, owner, directory, command, "executing {what}");
    }
}
