//! What the log says about a command that is about to run, or was refused.

use super::Engine;
use crate::client::Client;
use crate::error::Error;
use crate::gate::Cleared;
use crate::request::Origin;
use crate::resolved::Resolved;

impl Engine {
    /// The line for a request, if the log takes it.
    pub(super) fn line(
        &self,
        client: &Client,
        origin: &Origin,
        request: &Resolved,
        shown: &str,
    ) -> Option<Executing> {
        tracing::enabled!(tracing::Level::INFO).then(|| Executing {
            tool: origin.tool.clone(),
            owner: client.name().to_owned(),
            directory: request.directory.display().to_string(),
            command: self.settings().log_commands.then(|| shown.to_owned()),
        })
    }

    /// Logs what is about to run, or was refused.
    pub(super) fn logged(
        &self,
        line: Option<Executing>,
        cleared: Result<Cleared, Error>,
    ) -> Result<Cleared, Error> {
        if let Some(line) = line {
            let run = cleared.as_ref().ok().map(|cleared| cleared.id().clone());
            self.shared.later.add(move || line.log(run.as_deref()));
        }
        cleared
    }
}

/// A command, for the log.
pub struct Executing {
    tool: String,
    owner: String,
    directory: String,
    /// Unless the log must not contain it.
    command: Option<String>,
}

impl Executing {
    fn log(self, run: Option<&str>) {
        let Self { tool, owner, directory, command } = self;
        // Debug formatting leaves no control character.
        let what =
            command.as_ref().map_or("a command".to_owned(), |command| format!("{command:?}"));
        tracing::info!(run, tool, owner, directory, command, "executing {what}");
    }
}
