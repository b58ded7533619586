//! How a command ended.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use mcpz_agent::Usage;
use mcpz_agent::{Limit, signal_name};
use mcpz_audit::RunEnd;
use mcpz_output::{Output, Stream};
use serde::{Deserialize, Serialize};

/// How many processes left running the audit trail names at most.
const MAX_PIDS: usize = 1000;

/// A command that ran, however it ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Identifies the run in the audit trail and in the output store.
    pub id: Arc<str>,
    /// The command with secrets masked.
    pub command: String,
    /// Where it started, if that is known.
    pub(crate) location: Option<Location>,
    pub end: End,
    /// The limit that ended it, if one did.
    pub limit: Option<Limit>,
    pub usage: Usage,
    pub output: Output,
    /// Processes of the command that are still running.
    pub background: Vec<i32>,
    /// Why the command looked dangerous, if it did.
    pub warnings: Vec<&'static str>,
    /// What its sandbox refused, in words.
    pub refused: Vec<String>,
    /// The id of the job that consists of what is still running.
    pub job: Option<String>,
    /// The session it ran in.
    pub session: Option<Box<SessionState>>,
}

/// Where a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub directory: PathBuf,
    /// The place, if that is not this machine.
    pub place: Option<Arc<str>>,
}

/// The session a command ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    pub name: String,
    /// The current directory of its shell.
    pub directory: Option<PathBuf>,
    /// Whether it ended with this command.
    pub ended: bool,
    /// How long the previous session of this name was idle, if that ended it.
    pub expired: Option<Duration>,
    /// Whether the previous session of this name was lost, if no outcome has said so.
    pub was_lost: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    /// The number of the signal that ended it.
    Signalled(i32),
    TimedOut {
        after: Duration,
    },
    Cancelled,
    /// Its keeper was killed, and the command with it.
    Lost,
    /// The engine closed.
    Closed(Closing),
}

/// For the log.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by {}", signal_name(*signal)),
            Self::TimedOut { after } => write!(f, "timed out after {} s", after.as_secs_f64()),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Lost => f.write_str("lost: its keeper was killed"),
            Self::Closed(Closing::ClientLeft) => f.write_str("ended because the client left"),
            Self::Closed(Closing::Told) => f.write_str("ended because the server shut down"),
        }
    }
}

/// Why the engine closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closing {
    /// The only client has left.
    ClientLeft,
    /// Someone asked for it.
    Told,
}

impl Outcome {
    /// The outcome in the form the audit trail takes.
    pub(crate) fn ended(&self) -> RunEnd {
        let (result, signal) = match self.end {
            End::Exited(_) => ("exited", None),
            End::Signalled(signal) => ("signalled", Some(signal_name(signal))),
            End::TimedOut { .. } => ("timed_out", None),
            End::Cancelled => ("cancelled", None),
            End::Lost => ("lost", None),
            End::Closed(_) => ("server_ended", None),
        };
        RunEnd {
            result,
            exit_code: self.end.exit_code(),
            signal,
            limit: self.limit.map(Limit::name),
            took: self.usage.wall,
            cpu: self.usage.cpu,
            max_rss_bytes: self.usage.max_rss_bytes,
            stdout_bytes: self.output.kept_length(Stream::Stdout),
            stderr_bytes: self.output.kept_length(Stream::Stderr),
            lost_bytes: self.output.lost(),
            background: self.background.iter().copied().take(MAX_PIDS).collect(),
            refused: self.refused.clone(),
        }
    }

    /// Warnings, refusals, and why output was lost: everything to report besides its end and its output.
    pub fn remarks(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(ToString::to_string);
        warnings.chain(self.refused.iter().cloned()).chain(self.output.why_lost()).collect()
    }
}

impl End {
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }
}
