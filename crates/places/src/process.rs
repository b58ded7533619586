//! An agent on this machine, behind a stream: all that a place is, without another machine.

use std::path::Path;
use std::process::Command;

use crate::child::Child;
use crate::error::PlaceError;
use crate::opening::Opening;

pub fn start(agent: &Path, opening: &Opening<'_>) -> Result<Child, PlaceError> {
    let mut command = Command::new(agent);
    command.args(["agent", "--stream"]).current_dir(opening.working_directory);
    command.env_clear().envs(opening.variables.iter().map(|(name, value)| (name, value)));
    let program = agent.display().to_string();
    let failed = |error| PlaceError::Program { program, error, advice: "it becomes the agent" };
    Child::start(command, opening).map_err(failed)
}
