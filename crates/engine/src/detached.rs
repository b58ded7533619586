//! Jobs that outlive the server that started them.
//!
//!     server ── Launch ──▶ recorder ─ keeper ─ run       a process without a parent
//!        │                    │
//!        └── follower ◀─ control socket                  while it lives
//!                 ▲           ▼
//!                 └──── job.json, output, end.json       and after it
//!
//! A recorder is the same binary, forked so that nothing above it can take it along, with a keeper of its own. It runs
//! a [`Run`](crate::Run) like any other, but writes its output, with secrets masked, to a file as it arrives, and its
//! end to another. Its control socket takes input for the run, and stops it. If the recorder or its keeper is killed,
//! the whole tree ends and the job is lost.
//!
//! The recorders of a server that a command started stay below that command's keeper, and end with the command.
//!
//! A server that finds the folder follows the run as if it had started it: the same `Run`, fed by the recorder instead
//! of a keeper, with an output that reads the recorder's file. Once the recorder has left, everything is in its folder.

mod follower;
mod job_folder;
mod jobs_folder;
mod launch;
mod lock;
mod recorder;

use std::time::SystemTime;

use mcpz_agent::Identity;
use serde::{Deserialize, Serialize};

pub(crate) use follower::follow;
pub use job_folder::JobFolder;
pub use jobs_folder::JobsFolder;
pub(crate) use launch::{Launch, LaunchError, enclose, launch};
pub use recorder::record;

use crate::outcome::Location;
use crate::request::Input;

/// What is known about a detached job from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Identifies the run, here and in the audit trail.
    pub run: String,
    /// The key of its owner. Nobody else finds the job.
    #[serde(alias = "estate")]
    pub owner_key: String,
    /// The name of its owner, for the audit trail.
    pub owner: String,
    /// The command with secrets masked.
    pub command: String,
    /// Where it started, if that can be written down.
    #[serde(default)]
    pub directory: Option<String>,
    pub started_at: SystemTime,
    /// How it takes input, if it does.
    pub input: Option<Input>,
    /// The process that records it.
    pub recorder: i32,
    /// The server that started it.
    #[serde(default)]
    pub server: Option<Identity>,
}

impl Manifest {
    /// Where it started.
    pub(crate) fn location(&self) -> Option<Location> {
        let directory = self.directory.as_ref()?.into();
        Some(Location { directory, place: None })
    }

    /// Its id in the tools, unique for its owner.
    pub fn name(&self) -> String {
        format!("job-{}", self.run.get(..8).unwrap_or(&self.run))
    }
}
