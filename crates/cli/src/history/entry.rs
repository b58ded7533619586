//! A command in the history, from the records of the audit trail or from the server that keeps its output.

use std::time::Duration;

use mcpz_agent::signal_name;
use mcpz_audit::rfc3339;
use mcpz_engine::End;
use serde::{Deserialize, Serialize};

use super::kept::Kept;

/// The longest command to keep in memory.
const MAX_COMMAND: usize = 4 << 10;

/// What we need of a record.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Record {
    pub event: String,
    pub id: String,
    pub time: String,
    owner: String,
    place: Option<String>,
    directory: String,
    command: Option<String>,
    argv: Option<Vec<String>>,
    command_bytes: Option<u64>,
    pub writer: String,
    reason: Option<String>,
    result: String,
    exit_code: Option<i32>,
    signal: Option<String>,
    limit: Option<String>,
    duration_ms: Option<u64>,
}

impl Record {
    /// The command, unless the record is about something else.
    pub fn command(&self) -> Option<String> {
        match (&self.command, &self.argv, self.command_bytes) {
            (Some(command), _, _) => Some(command.clone()),
            (None, Some(words), _) => Some(words.join(" ")),
            (None, None, Some(bytes)) => Some(format!("({bytes} bytes)")),
            (None, None, None) => None,
        }
    }

    /// What became of a command, by the record of its end or its refusal.
    pub fn ending(&self) -> Ending {
        Ending {
            result: if self.event == "refused" { "refused" } else { &self.result }.to_owned(),
            exit_code: self.exit_code,
            signal: self.signal.clone(),
            limit: self.limit.clone(),
            reason: self.reason.clone(),
            duration_ms: self.duration_ms,
        }
    }
}

/// A command that was requested.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    pub run: String,
    /// When it was requested, in UTC.
    pub time: String,
    pub owner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub directory: String,
    pub command: String,
    #[serde(flatten)]
    pub ending: Ending,
    /// The first lines of its output that match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Whether more lines match.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more_matches: bool,
    /// How to read the output, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_output: Option<String>,
}

/// What became of a command.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ending {
    pub result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl Ending {
    /// One that no record has.
    pub fn named(result: &str) -> Self {
        Self { result: result.to_owned(), ..Self::default() }
    }

    fn of(end: Option<(End, Duration)>) -> Self {
        let Some((end, took)) = end else { return Self::named("running") };
        let mut ending = match end {
            End::Exited(code) => Self { exit_code: Some(code), ..Self::named("exited") },
            End::Signalled(signal) => {
                Self { signal: Some(signal_name(signal)), ..Self::named("signalled") }
            }
            End::TimedOut { .. } => Self::named("timed_out"),
            End::Cancelled => Self::named("cancelled"),
            End::Lost => Self::named("lost"),
            End::Closed(_) => Self::named("server_ended"),
        };
        ending.duration_ms = Some(took.as_millis() as u64);
        ending
    }

    /// Whether the command failed. One that its client or its server ended did not.
    pub fn is_failure(&self) -> bool {
        match self.result.as_str() {
            "exited" => self.exit_code != Some(0) || self.limit.is_some(),
            "running" | "cancelled" | "server_ended" => self.limit.is_some(),
            _ => true,
        }
    }

    /// In a word or two.
    pub fn words(&self) -> String {
        match (self.result.as_str(), &self.limit, &self.signal) {
            (_, Some(limit), _) => format!("over {limit}"),
            ("signalled", _, Some(signal)) => signal.clone(),
            ("exited", ..) => format!("exit {}", self.exit_code.unwrap_or_default()),
            (result, ..) => result.replace('_', " "),
        }
    }
}

impl Entry {
    /// A command, by the record of its start or its refusal.
    pub fn new(record: &Record, mut command: String, ending: Ending) -> Self {
        command.truncate(command.floor_char_boundary(MAX_COMMAND));
        Self {
            run: record.id.clone(),
            time: record.time.clone(),
            owner: record.owner.clone(),
            place: record.place.clone(),
            directory: record.directory.clone(),
            command,
            ending,
            matches: Vec::new(),
            more_matches: false,
            read_output: None,
        }
    }

    /// A command that no record was found of.
    pub fn from_kept(run: &str, kept: &Kept) -> Self {
        let record = Record {
            id: run.to_owned(),
            time: rfc3339(kept.started_at),
            owner: kept.owner.clone(),
            ..Record::default()
        };
        Self::new(&record, kept.command.clone(), Ending::of(kept.end)).with_output(kept)
    }

    pub fn with_output(self, kept: &Kept) -> Self {
        let run = self.run.get(..8).unwrap_or(&self.run);
        let how = match kept.is_job {
            true => format!("mcpz jobs logs {run}"),
            false => format!("mcpz history --output {run}"),
        };
        let (matches, more_matches) = (kept.lines.clone(), kept.more);
        Self { matches, more_matches, read_output: Some(how), ..self }
    }
}
