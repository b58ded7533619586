//! Jobs that outlive the server that started them.
//!
//!     server ── Launch ──▶ recorder ─ keeper ─ run       a process without a parent
//!        │                    │
//!        └── follower ◀─ control socket                  while it lives
//!                 ▲           ▼
//!                 └──── job.json, output, end.json       and after it
//!
//! A recorder writes what its run prints to a file, with secrets masked, and how it ended. Its control socket takes
//! input for the run, and stops it. A server that finds the folder follows the run as if it had started it.

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

use crate::request::Input;

/// What is known about a detached job from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Identifies the run, here and in the audit trail.
    pub run: String,
    /// The key of its owner: nobody else finds it.
    #[serde(alias = "estate")]
    pub owner_key: String,
    /// The name of its owner, for the record.
    pub owner: String,
    /// The command, as it may be shown.
    pub command: String,
    pub started_at: SystemTime,
    /// How it can be written to, if it can.
    pub input: Option<Input>,
    /// The process that records it.
    pub recorder: i32,
    /// The server that started it.
    #[serde(default)]
    pub server: Option<Identity>,
}

impl Manifest {
    /// Its id in the tools, different from those of all other jobs of its owner.
    pub fn name(&self) -> String {
        format!("job-{}", self.run.get(..8).unwrap_or(&self.run))
    }
}
