//! What the log says of a command that is about to run, or was not let through.

use super::Engine;
use crate::error::Error;
use crate::gate::Cleared;
use crate::request::{Origin, RunRequest};
use crate::store::Owner;

impl Engine {
    /// What the log says of a request, if it says anything.
    pub(super) fn line(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: &RunRequest,
    ) -> Option<Executing> {
        tracing::enabled!(tracing::Level::INFO).then(|| Executing {
            tool: origin.tool.clone(),
            owner: owner.name().to_owned(),
            directory: self.directory_of(request).display().to_string(),
            command: self.settings().log_commands.then(|| self.shown(&request.command)),
        })
    }

    /// Has it logged what is about to run, or was not let through.
    pub(super) fn logged(
        &self,
        line: Option<Executing>,
        cleared: Result<Cleared, Error>,
    ) -> Result<Cleared, Error> {
        if let Some(line) = line {
            let run = cleared.as_ref().ok().map(|cleared| cleared.id().clone());
            self.shared.later.add(move || line.say(run.as_deref()));
        }
        cleared
    }
}

/// What the log says of a command.
pub struct Executing {
    tool: String,
    owner: String,
    directory: String,
    /// Unless it must not be said.
    command: Option<String>,
}

impl Executing {
    fn say(self, run: Option<&str>) {
        let Self { tool, owner, directory, command } = self;
        // Debug formatting leaves no control character.
        let what =
            command.as_ref().map_or("a command".to_owned(), |command| format!("{command:?}"));
        tracing::info!(run, tool, owner, directory, command, "executing {what}");
    }
}
