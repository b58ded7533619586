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
mod recorder;
mod shelf;

use std::time::SystemTime;

use mcpz_agent::Limit;
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
    /// Processes that could not be ended.
    pub survivors: Vec<i32>,
    /// Bytes of its output that were not kept.
    pub lost: u64,
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
        let limit = match &ended.outcome {
            Some(Ok(outcome)) => outcome.limit,
            _ => None,
        };
        let outcome = match ended.outcome {
            Some(Ok(outcome)) => Ok((outcome.end, outcome.usage)),
            Some(Err(text)) => Err(text),
            None => Ok((End::Lost, Usage::default())),
        };
        Self {
            pid: job.pid(),
            outcome,
            limit,
            stopped: job.state() == State::Stopped,
            survivors: ended.survivors.unwrap_or_default(),
            lost: job.output.lost(),
        }
    }

    /// That of a job whose recorder was killed, and it with that.
    fn lost() -> Self {
        let outcome = Ok((End::Lost, Usage::default()));
        let (limit, survivors) = (None, Vec::new());
        Self { pid: None, outcome, limit, stopped: false, survivors, lost: 0 }
    }
}
