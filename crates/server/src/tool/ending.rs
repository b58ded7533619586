//! How a command ended and what it used, as parts of an answer.
//!
//! Processes that a command leaves running (`server &`) are listed in `background_pids`. They go on printing into the
//! run's output, are a job, and end with their owner.
//!
//! The fields' doc comments are descriptions in the schema; plain comments are not.

use mcpz_agent::signal_name;
use mcpz_engine::{Closing, End, Limit, Outcome};
use mcpz_output::{Room, Stream, shorten};
use schemars::JsonSchema;
use serde::Serialize;

use super::timeout::timed_out;

/// How many of the processes left running an answer lists.
pub const MOST_PIDS: usize = 100;

/// How many remarks an answer has, and the longest of them in bytes.
const MOST_REMARKS: usize = 10;
const LONGEST_REMARK: usize = 500;

/// What an answer says of a command whose supervising process was killed.
pub const LOST: &str =
    "the process supervising this command was killed or is out of reach, which ended the command";

/// What to do if an editor was still open. A longer timeout would not help.
const IN_EDITOR: &str = "an editor waited for somebody to type; pass the text as an argument, such as \
    `git commit -m TEXT`, or write the file";

/// What a command used and left behind; part of every answer to one that ran.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunReport {
    duration_ms: u64,
    // Unknown for a command in a session, which is not a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rss_bytes: Option<u64>,
    // The limit it exceeded
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    // Processes still running
    #[serde(skip_serializing_if = "Option::is_none")]
    background_pids: Option<Vec<i32>>,
    // The job they belong to, for stop_job
    #[serde(skip_serializing_if = "Option::is_none")]
    background_job: Option<String>,
    // Bytes of output that could not be kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    // Why the command looks dangerous
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

impl From<&Outcome> for RunReport {
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

/// The processes left running, or the first of very many.
pub fn pids(outcome: &Outcome) -> Vec<i32> {
    outcome.background.iter().copied().take(MOST_PIDS).collect()
}

/// Whether a command said what vi says without a terminal. It waits for keys all the same.
fn waited_in_editor(outcome: &Outcome) -> bool {
    let said = outcome.output.last_lines(&[Stream::Stderr]);
    said.contains("Vim: Warning: Input is not from a terminal")
}

/// What else there is to say about a command, in short lines.
pub fn remarks(outcome: &Outcome) -> Vec<String> {
    shortened(outcome.remarks())
}

/// No more remarks than fit into an answer, and none that is too long.
pub fn shortened(remarks: Vec<String>) -> Vec<String> {
    let remarks = remarks.into_iter().take(MOST_REMARKS);
    remarks.map(|remark| shorten(&remark, Room::bytes(LONGEST_REMARK)).into_owned()).collect()
}

/// How a command ended, where its exit code does not say so.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Ending {
    // Signal that ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    // Further details
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Ending {
    pub fn message(text: impl Into<String>) -> Self {
        Self { message: Some(text.into()), ..Self::default() }
    }

    /// How a command ended, with advice about the timeout, if it ran into that.
    pub fn advising(outcome: &Outcome, advice: &str) -> Self {
        let ending = Self::from(outcome);
        let advice = if ending.timed_out == Some(true) && waited_in_editor(outcome) {
            IN_EDITOR
        } else {
            advice
        };
        let add = |message| match ending.timed_out {
            Some(true) => format!("{message}; {advice}"),
            _ => message,
        };
        Self { message: ending.message.map(add), ..ending }
    }

    /// The message, or else the signal.
    pub fn text(&self) -> &str {
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
                Self { timed_out: Some(true), ..Self::message(timed_out(after)) }
            }
            End::Cancelled => Self::message("cancelled"),
            End::Lost => Self::message(LOST),
            End::Closed(why) => Self::message(why_closed(why)),
        }
    }
}

/// Whether the answer to a command that ended so is an error. A command that ran and failed is not.
pub fn is_error(end: End) -> bool {
    matches!(end, End::TimedOut { .. } | End::Lost | End::Closed(_))
}

/// What an answer says of a command that ended because the server did.
pub fn why_closed(why: Closing) -> &'static str {
    match why {
        Closing::ClientLeft => {
            "the client closed its input before this command finished, so the server shut down and \
             ended it; a larger `--finish-time` gives commands longer"
        }
        Closing::Told => "the server is shutting down and ended the command",
    }
}
