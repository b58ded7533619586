//! A step of a batch job, by `srun`.
//!
//! The step ends the whole job when its agent has ended, so that an allocation goes even if the server was killed.
//! While it is pending there is no step yet, and `srun` does not read its input: the supervisor ends `srun`, which then
//! cancels what it waits for.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::child::{Child, supervised};
use crate::error::PlaceError;
use crate::opening::Opening;

/// What runs in the step, with the agent as its first argument.
const STEP: &str = "\"$1\" agent --stream; scancel \"$SLURM_JOB_ID\" >/dev/null 2>&1";

/// How to ask for an allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slurm {
    pub partition: Option<String>,
    pub account: Option<String>,
    /// As `srun` takes it: minutes, or `hours:minutes:seconds`.
    pub time: Option<String>,
    /// More options for `srun`.
    pub options: Vec<String>,
}

impl Slurm {
    /// Asks for an allocation, and starts the agent in it.
    pub fn start(&self, agent: &Path, opening: &Opening<'_>) -> Result<Child, PlaceError> {
        let failed = |error| PlaceError::Program {
            program: "srun".to_owned(),
            error,
            advice: "install the client programs of Slurm",
        };
        let command = self.command(agent, opening);
        command.and_then(|command| Child::start(command, opening)).map_err(failed)
    }

    fn command(&self, agent: &Path, opening: &Opening<'_>) -> io::Result<Command> {
        let mut command = supervised("srun", opening)?;
        // In an allocation of the user's, this would be a step of that job, which our end would cancel.
        if opening.variables.iter().any(|(name, _)| name == "SLURM_JOB_ID") {
            let names = opening.variables.iter().filter_map(|(name, _)| name.to_str());
            for name in names.filter(|name| name.starts_with("SLURM_") && *name != "SLURM_CONF") {
                command.env_remove(name);
            }
        }
        // Bytes go through as they come, and a step that fails ends at once.
        command.args(["--ntasks=1", "--unbuffered", "--job-name=mcpz", "--kill-on-bad-exit=1"]);
        let options =
            [("partition", &self.partition), ("account", &self.account), ("time", &self.time)];
        for (name, value) in options {
            if let Some(value) = value {
                command.arg(format!("--{name}={value}"));
            }
        }
        command.args(&self.options);
        command.args(["--", "sh", "-c", STEP, "mcpz"]).arg(agent);
        Ok(command)
    }

    pub fn description(&self) -> String {
        match &self.partition {
            Some(partition) => format!("slurm {partition}"),
            None => "slurm".to_owned(),
        }
    }
}
