//! How a job has ended, as other processes are told and as it is written to the disk.

use std::time::Duration;

use mcpz_agent::{Limit, Usage};
use serde::{Deserialize, Serialize};

use super::{Job, State};
use crate::outcome::End;

/// What became of a job when nothing is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// The first process.
    pub pid: Option<i32>,
    pub outcome: JobOutcome,
    /// The limit that ended it, if one did.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Whether it ended because someone stopped it.
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

/// What became of a job's first process. Written as a `Result` would be, which older versions read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobOutcome {
    #[serde(rename = "Ok")]
    Ran(End, Usage),
    /// There was no process, for this reason.
    #[serde(rename = "Err")]
    NotStarted(String),
}

impl JobEnd {
    pub(crate) fn of(job: &Job) -> Self {
        let ended = job.end();
        let (mut limit, mut refused) = (None, Vec::new());
        let outcome = match ended.outcome {
            Some(Ok(outcome)) => {
                (limit, refused) = (outcome.limit, outcome.refused);
                JobOutcome::Ran(outcome.end, outcome.usage)
            }
            Some(Err(error)) => JobOutcome::NotStarted(error.chain()),
            None => JobOutcome::Ran(End::Lost, Usage::default()),
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

    /// The end of a job that was lost with its recorder, after so long.
    pub(crate) fn lost(took: Duration) -> Self {
        Self {
            pid: None,
            outcome: JobOutcome::Ran(End::Lost, Usage::default()),
            limit: None,
            stopped: false,
            took,
            survivors: Vec::new(),
            lost: 0,
            refused: Vec::new(),
        }
    }
}
