//! Jobs that outlive whoever started them.
//!
//!     server ── Order ──▶ recorder ─ keeper ─ run        a process that nobody is above
//!        │                   │
//!        └── follower ◀─ desk┤                           while it lives
//!                 ▲          ▼
//!                 └──── job.json, output, end.json       and after it
//!
//! A recorder writes what its run prints to a file, without the secrets, and how it ended. It is asked
//! at its desk to write to the run or to stop it. A server that finds its folder follows the run as if
//! it had started it.

mod follower;
mod launch;
mod permit;
mod recorder;
mod shelf;

use std::time::{Duration, SystemTime};

use mcpz_agent::{Identity, Limit};
use serde::{Deserialize, Serialize};

pub(crate) use follower::follow;
pub(crate) use launch::{Order, enclose, launch};
pub use recorder::record;
pub use shelf::{Shelf, Standing};

use crate::jobs::{Job, State};
use crate::outcome::{End, Usage};
use crate::request::Input;

/// What is known of a detached job from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// What the run is known by, here and in the audit trail.
    pub run: String,
    /// Whose it is, so that nobody else finds it.
    pub estate: String,
    /// The name of its owner, for the record.
    pub owner: String,
    /// What was asked for, as it may be shown.
    pub command: String,
    pub started_at: SystemTime,
    /// How it can be written to, if it can.
    pub input: Option<Input>,
    /// The process that keeps it.
    pub recorder: i32,
    /// The server it was started by.
    #[serde(default)]
    pub server: Option<Identity>,
}

/// What became of a job when nothing is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The first process.
    pub pid: Option<i32>,
    /// How it ended, or why there was none.
    pub outcome: Result<(End, Usage), String>,
    /// The limit that ended it, if one did.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Whether that is because it was told to.
    pub stopped: bool,
    /// How long it took until nothing of it was left.
    pub took: Duration,
    /// Processes that could not be ended.
    pub survivors: Vec<i32>,
    /// Bytes of its output that were not kept.
    pub lost: u64,
    /// What its sandbox has refused.
    pub refused: Vec<String>,
}

impl Card {
    /// What its owner calls it: nothing that another job of theirs is called.
    pub fn name(&self) -> String {
        format!("job-{}", self.run.get(..8).unwrap_or(&self.run))
    }
}

impl Ending {
    pub fn of(job: &Job) -> Self {
        let ended = job.end();
        let mut refused = Vec::new();
        let limit = match &ended.outcome {
            Some(Ok(outcome)) => outcome.limit,
            _ => None,
        };
        let outcome = match ended.outcome {
            Some(Ok(outcome)) => {
                refused = outcome.refused;
                Ok((outcome.end, outcome.usage))
            }
            Some(Err(text)) => Err(text),
            None => Ok((End::Lost, Usage::default())),
        };
        Self {
            pid: job.pid(),
            outcome,
            limit,
            stopped: job.state() == State::Stopped,
            took: job.duration(),
            survivors: ended.survivors.unwrap_or_default(),
            lost: job.output.lost(),
            refused,
        }
    }

    /// That of a job whose recorder was killed, and it with that, after so long.
    fn lost(took: Duration) -> Self {
        let outcome = Ok((End::Lost, Usage::default()));
        Self {
            pid: None,
            outcome,
            limit: None,
            stopped: false,
            took,
            survivors: Vec::new(),
            lost: 0,
            refused: Vec::new(),
        }
    }
}
