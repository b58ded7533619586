//! How a job ended, as sent to other processes and as written to the disk.

use std::time::Duration;

use mcpz_agent::{Limit, Usage};
use serde::{Deserialize, Serialize};

use super::{Job, JobState};
use crate::outcome::End;

/// The end of a job with no processes left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// The first process.
    pub pid: Option<i32>,
    pub outcome: JobOutcome,
    /// The limit that ended it, if one did.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Whether someone stopped it.
    pub stopped: bool,
    /// How long it took until none of its processes was left.
    pub took: Duration,
    /// Processes that could not be killed.
    pub survivors: Vec<i32>,
    /// Bytes of its output that were not kept.
    pub lost: u64,
    /// What its sandbox refused.
    pub refused: Vec<String>,
}

/// How a job's first process ended. Serialized like a `Result`, which is what older versions read.
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
            stopped: job.state() == JobState::Stopped,
            took: job.duration(),
            survivors: ended.survivors.unwrap_or_default(),
            lost: job.output.lost(),
            refused,
        }
    }

    /// The end of a job that was lost with its recorder after `took`.
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
