//! The face of a code sandbox: runs a program or a shell command and answers with its output, without the middle of a
//! long one.

use std::time::Duration;

use mcpz_engine::{Command, End, Error, Outcome, RunRequest, Settings};
use mcpz_output::{Measure, Room};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, answer_as_json};
use super::ending::{Ending, LOST, RunReport};
use super::error::ToolError;
use super::excerpt::{Excerpt, Omission, excerpt, excerpt_at_most};
use super::handover::{JobHandle, PartialOutput};
use super::timeout::describe_default;
use super::{Call, FaceSettings};
use crate::budget::size_as_json;
use crate::watcher::CallOutcome;

pub const DESCRIPTION: &str = "Runs a command and returns the captured output. With args, the command \
    is executed directly without a shell.";

/// What to do about a timeout.
const ON_TIMEOUT: &str =
    "pass a larger `timeout_ms`, or run it in the background with `&` (and without `args`)";

/// The settings of `execute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteSettings {
    /// The most bytes of stdout and stderr together in an answer.
    pub max_output_bytes: usize,
    /// Whether the log gets all the output of an answer.
    pub log_full_output: bool,
    /// How many bytes of each stream the log gets otherwise.
    pub log_output_bytes: usize,
}

impl Default for ExecuteSettings {
    fn default() -> Self {
        Self { max_output_bytes: 40_000, log_full_output: false, log_output_bytes: 2048 }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Command string or executable name
    command: String,
    /// Arguments; if given, no shell is used
    args: Option<Vec<String>>,
    /// Text passed to stdin
    stdin: Option<String>,
    /// Milliseconds until it is killed
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

impl Params {
    fn request(self, default: Duration) -> RunRequest {
        let command = match self.args {
            None => Command::Script { text: self.command, shell: Some("/bin/sh".into()) },
            Some(args) => Command::Argv([vec![self.command], args].concat()),
        };
        let timeout =
            self.timeout_ms.map(|ms| Duration::from_millis(ms).min(Settings::MAX_TIMEOUT));
        RunRequest {
            stdin: self.stdin.map(String::into_bytes),
            timeout: Some(timeout.unwrap_or(default)),
            ..RunRequest::new(command)
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("Error: command: empty")]
struct EmptyCommand;

#[derive(Debug, thiserror::Error)]
#[error("`timeout_ms` must be at least 1")]
struct NoTime;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    stdout: String,
    stderr: String,
    /// -1 if there is none
    exit_code: i32,
    timed_out: bool,
    stdout_truncated: bool,
    stderr_truncated: bool,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    run: Option<RunReport>,
    #[serde(flatten)]
    omission: Omission,
    #[serde(flatten)]
    job: Option<JobHandle>,
}

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    describe_default(tool, "timeout_ms", timeout.as_millis())
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    if params.command.trim().is_empty() {
        return Err(ToolError::failed(EmptyCommand));
    }
    if params.timeout_ms == Some(0) {
        return Err(ToolError::arguments(NoTime));
    }
    let limit = call.faces.execute.max_output_bytes;
    let outcome = match call.run(params.request(call.default_timeout())).await {
        Ok(CallOutcome::Ended(outcome)) => outcome,
        Ok(CallOutcome::HandedOver(job)) => {
            let left = call.faces.max_answer.room(0, Measure::QuotedTwice);
            let room = Room { size: left.size.min(limit), ..left };
            let (reply, links) = Reply::running(PartialOutput::read(&call, &job, room).await?);
            reply.log(&call.faces.execute);
            return Ok(answer_as_json(&reply, links, false));
        }
        Err(error @ (Error::Refused(_) | Error::Audit(_))) => {
            return Err(ToolError::NotRun(error));
        }
        Err(error) => {
            let why = call.faces.max_answer.of(true).shorten(&call.masked(&error.chain()));
            return Ok(failure("spawn", &why));
        }
    };
    if outcome.end == End::Lost {
        return Ok(failure("wait", LOST));
    }
    let cut_short = matches!(outcome.end, End::TimedOut { .. } | End::Closed(_));
    let reply = Reply::ended(&outcome);
    let max = call.faces.max_answer;
    let excerpt = match max.is_chosen() || cut_short {
        true => {
            let room = max.of(cut_short).room(size_as_json(&reply), Measure::QuotedTwice);
            excerpt_at_most(&call, &outcome, room, limit).await?
        }
        false => excerpt(&call, &outcome, Room::bytes(limit)).await?,
    };
    let (reply, links) = reply.showing(excerpt);
    reply.log(&call.faces.execute);
    Ok(answer_as_json(&reply, links, cut_short))
}

/// What failed, in the words of the tool's document, and why.
fn failure(what: &str, why: &str) -> CallToolResult {
    let text = format!("Error: execute: {what} failed");
    CallToolResult::error(vec![ContentBlock::text(text), ContentBlock::text(why)])
}

impl Reply {
    /// The reply for a command that ended, without its output.
    fn ended(outcome: &Outcome) -> Self {
        let (exit_code, signal) = match outcome.end {
            End::Exited(code) => (code, None),
            End::Signalled(signal) => (-1, Some(mcpz_agent::signal_name(signal))),
            _ => (-1, None),
        };
        Self {
            exit_code,
            timed_out: matches!(outcome.end, End::TimedOut { .. }),
            elapsed_ms: outcome.usage.wall.as_millis() as u64,
            signal,
            message: Ending::advising(outcome, ON_TIMEOUT).message,
            run: Some(outcome.into()),
            ..Self::default()
        }
    }

    fn showing(self, excerpt: Excerpt) -> (Self, Vec<ContentBlock>) {
        let Excerpt { stdout, stderr, omission, links, .. } = excerpt;
        let (stdout_truncated, stderr_truncated) = (excerpt.stdout_is_cut, excerpt.stderr_is_cut);
        (Self { stdout, stderr, stdout_truncated, stderr_truncated, omission, ..self }, links)
    }

    /// The reply for a command that continues as a job.
    fn running(partial: PartialOutput) -> (Self, Vec<ContentBlock>) {
        let PartialOutput { job, stdout, stderr, message, elapsed, links, .. } = partial;
        let (message, job, elapsed_ms) = (Some(message), Some(job), elapsed.as_millis() as u64);
        let reply =
            Self { stdout, stderr, exit_code: -1, elapsed_ms, message, job, ..Self::default() };
        (reply, links)
    }

    /// Logs the output, or its beginning. Debug formatting escapes control characters.
    fn log(&self, settings: &ExecuteSettings) {
        let limit = match settings.log_full_output {
            true => settings.max_output_bytes,
            false => settings.log_output_bytes,
        };
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            tracing::info!("{name}: {:?}", &text[..text.floor_char_boundary(limit)]);
        }
    }
}
