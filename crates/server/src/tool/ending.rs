//! How a command ended and what it used, as parts of an answer.

use mcpz_engine::{Closing, End, Limit, Outcome, signal_name};
use mcpz_output::{Room, shortened};
use schemars::JsonSchema;
use serde::Serialize;

use super::deadline::timed_out;

/// How many processes that were left running are told.
pub(crate) const MOST_PIDS: usize = 100;

/// How many remarks are told, and how long each may be.
const MOST_REMARKS: usize = 10;
const LONGEST_REMARK: usize = 300;

/// What a command used; part of every answer to one that ran.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Used {
    duration_ms: u64,
    // Nobody knows what a command in a session used.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rss_bytes: Option<u64>,
    // What it had too much of
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    // Processes still running
    #[serde(skip_serializing_if = "Option::is_none")]
    background_pids: Option<Vec<i32>>,
    // The job they are, for stop_job
    #[serde(skip_serializing_if = "Option::is_none")]
    background_job: Option<String>,
    // Bytes of output that could not be kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    // Why the command looks dangerous
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

impl From<&Outcome> for Used {
    fn from(outcome: &Outcome) -> Self {
        let counted = Some(outcome.usage).filter(|_| outcome.session.is_none());
        Self {
            duration_ms: outcome.usage.wall.as_millis() as u64,
            cpu_ms: counted.map(|usage| usage.cpu.as_millis() as u64),
            max_rss_bytes: counted.map(|usage| usage.max_rss_bytes),
            limit: outcome.limit.map(Limit::name),
            background_pids: Some(pids(outcome)).filter(|pids| !pids.is_empty()),
            background_job: outcome.job.clone(),
            lost_bytes: Some(outcome.output.lost()).filter(|lost| *lost > 0),
            warnings: Some(remarks(outcome)).filter(|remarks| !remarks.is_empty()),
        }
    }
}

/// Processes that were left running; of very many, some.
pub(crate) fn pids(outcome: &Outcome) -> Vec<i32> {
    outcome.background.iter().copied().take(MOST_PIDS).collect()
}

/// What there is to say about a command beside its end and its output, in few words.
pub(crate) fn remarks(outcome: &Outcome) -> Vec<String> {
    let remarks = outcome.remarks().into_iter().take(MOST_REMARKS);
    remarks.map(|remark| shortened(&remark, Room::bytes(LONGEST_REMARK)).into_owned()).collect()
}

/// How a command ended, where its exit code does not say it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Ending {
    // Signal that ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    // What else there is to know
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Ending {
    pub fn said(text: impl Into<String>) -> Self {
        Self { message: Some(text.into()), ..Self::default() }
    }

    /// The same with what to do about a timeout, if it was one.
    pub fn advising(self, advice: &str) -> Self {
        let add = |message| match self.timed_out {
            Some(true) => format!("{message}; {advice}"),
            _ => message,
        };
        Self { message: self.message.map(add), ..self }
    }

    /// What there is to say, in words.
    pub fn words(&self) -> &str {
        self.message.as_deref().or(self.signal.as_deref()).unwrap_or_default()
    }
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Self {
        let limit = outcome.limit.map(|limit| limit.to_string());
        let ending = Self::from(outcome.end);
        Self { message: limit.or(ending.message), ..ending }
    }
}

impl From<End> for Ending {
    fn from(end: End) -> Self {
        match end {
            End::Exited(_) => Self::default(),
            End::Signalled(signal) => Self { signal: Some(signal_name(signal)), ..Self::default() },
            End::TimedOut { after } => {
                Self { timed_out: Some(true), ..Self::said(timed_out(after)) }
            }
            End::Cancelled => Self::said("cancelled"),
            End::Lost => Self::said(LOST),
            End::Closed(why) => Self::said(closed(why)),
        }
    }
}

/// Whether an answer is an error: a command that ran and failed is none.
pub(crate) fn is_error(end: End) -> bool {
    matches!(end, End::TimedOut { .. } | End::Lost | End::Closed(_))
}

/// What a run that was lost is answered with.
pub(crate) const LOST: &str =
    "the process that minded this command was killed, and the command with it";

/// What is said of a command that ends because the server does.
pub(crate) fn closed(why: Closing) -> &'static str {
    match why {
        Closing::ClientLeft => {
            "the client closed its input before this command had ended, so the server is ending, and \
             the command with it; `--finish-time` gives commands longer"
        }
        Closing::Told => "the server was told to end, and the command with it",
    }
}
