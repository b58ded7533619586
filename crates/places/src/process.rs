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
    let failed =
        |why| PlaceError::Program { program: "the agent", why, advice: "is it executable?" };
    Child::start(command).map_err(failed)
}
