//! What became of a command.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::Limit;
pub use mcpz_agent::Usage;
use mcpz_audit::Ended;
use mcpz_output::{Output, Stream};
use serde::{Deserialize, Serialize};

use crate::signals::signal_name;

/// How many processes that were left running are put on record.
const MOST_PIDS: usize = 1000;

/// A command that ran, however it ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What the run is known by, in the audit trail and where its output is kept.
    pub id: Arc<str>,
    pub end: End,
    /// The limit that ended it, if one did.
    pub limit: Option<Limit>,
    pub usage: Usage,
    pub output: Output,
    /// Processes of the command that are still running.
    pub background: Vec<i32>,
    /// What the command looked like, if that is a reason to be careful.
    pub warnings: Vec<&'static str>,
    /// What its sandbox has refused, in words, if it failed.
    pub refused: Vec<String>,
    /// The job that what is still running has become.
    pub job: Option<String>,
    /// The session it ran in.
    pub session: Option<Box<SessionState>>,
}

/// The session a command ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    pub name: String,
    /// Where it is now.
    pub directory: Option<PathBuf>,
    /// Whether it has ended with the command.
    pub ended: bool,
    /// How long the session before this one was idle, if it was ended for that.
    pub expired: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    /// A signal ended it, by its number.
    Signalled(i32),
    TimedOut {
        after: Duration,
    },
    Cancelled,
    /// The process that minded it was killed, and it with that.
    Lost,
    /// Everything ended, and it with that.
    Closed(Closing),
}

/// For a log.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by {}", signal_name(*signal)),
            Self::TimedOut { after } => write!(f, "timed out after {} s", after.as_secs_f64()),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Lost => f.write_str("lost: the process that minded it was killed"),
            Self::Closed(Closing::ClientLeft) => f.write_str("ended as the client left"),
            Self::Closed(Closing::Told) => f.write_str("ended with the server"),
        }
    }
}

/// Why everything ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closing {
    /// The only one who could have asked for something does not any more.
    ClientLeft,
    /// Somebody said so.
    Told,
}

impl Outcome {
    /// What is put on record of it.
    pub(crate) fn ended(&self) -> Ended {
        let (result, signal) = match self.end {
            End::Exited(_) => ("exited", None),
            End::Signalled(signal) => ("signalled", Some(signal_name(signal))),
            End::TimedOut { .. } => ("timed_out", None),
            End::Cancelled => ("cancelled", None),
            End::Lost => ("lost", None),
            End::Closed(_) => ("server_ended", None),
        };
        Ended {
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
            background: self.background.iter().copied().take(MOST_PIDS).collect(),
            refused: self.refused.clone(),
        }
    }

    /// All there is to be said about it that is neither its end nor its output.
    pub fn remarks(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(ToString::to_string);
        warnings.chain(self.refused.iter().cloned()).collect()
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
