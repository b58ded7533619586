//! The face of a sandbox's one tool: runs a program or a shell command and answers with its output, whose middle
//! is left out beyond a limit.

use std::time::Duration;

use mcpz_engine::{Command, End, Error, MAX_TIMEOUT, Outcome, RunRequest};
use mcpz_output::{Measure, Room};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, answer_as_json};
use super::deadline::say_default;
use super::ending::{Ending, LOST, Used};
use super::error::ToolError;
use super::handed_over::{HandedOver, SoFar};
use super::shown::{Shown, Spilled, show, show_at_most};
use super::{Call, FaceSettings};
use crate::budget::size_as_json;
use crate::progress::Ran;

pub const DESCRIPTION: &str = "Runs a command and returns the captured output. With args, the command \
    is executed directly without a shell.";

/// What to do about a timeout.
const ADVICE: &str =
    "pass a larger `timeout_ms`, or run it in the background with `&` (and without `args`)";

/// Settings of this face alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteSettings {
    /// The most of stdout and stderr together that is answered.
    pub max_output_bytes: usize,
    /// Whether all that is answered is logged too.
    pub log_full_output: bool,
    /// How much is logged otherwise.
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
    /// Arguments; with them, no shell is used
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
        let timeout = self.timeout_ms.map(|ms| Duration::from_millis(ms).min(MAX_TIMEOUT));
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
    // What else there is to know
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    used: Option<Used>,
    #[serde(flatten)]
    spilled: Spilled,
    #[serde(flatten)]
    job: Option<HandedOver>,
}

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    say_default(tool, "timeout_ms", timeout.as_millis())
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
        Ok(Ran::Ended(outcome)) => outcome,
        Ok(Ran::HandedOver(job)) => {
            let left = call.faces.max_answer.left(0, Measure::QuotedTwice);
            let room = Room { size: left.size.min(limit), ..left };
            let (reply, links) = Reply::going(SoFar::read(&call, &job, room).await?);
            reply.log(&call.faces.execute);
            return Ok(answer_as_json(&reply, links, false));
        }
        Err(error @ (Error::Refused(_) | Error::Audit(_))) => {
            return Err(ToolError::NotRun(error));
        }
        Err(error) => {
            let why = call.faces.max_answer.of(true).most(&call.masked(&error.chain()));
            return Ok(failure("spawn", &why));
        }
    };
    if outcome.end == End::Lost {
        return Ok(failure("wait", LOST));
    }
    let cut_short = matches!(outcome.end, End::TimedOut { .. } | End::Closed(_));
    let reply = Reply::ended(&outcome);
    let max = call.faces.max_answer;
    let shown = match max.is_chosen() || cut_short {
        true => {
            let room = max.of(cut_short).left(size_as_json(&reply), Measure::QuotedTwice);
            show_at_most(&call, &outcome, room, limit).await?
        }
        false => show(&call, &outcome, Room::bytes(limit)).await?,
    };
    let (reply, links) = reply.showing(shown);
    reply.log(&call.faces.execute);
    Ok(answer_as_json(&reply, links, cut_short))
}

/// The document's own words for what failed, and why it did.
fn failure(what: &str, why: &str) -> CallToolResult {
    let text = format!("Error: execute: {what} failed");
    CallToolResult::error(vec![ContentBlock::text(text), ContentBlock::text(why)])
}

impl Reply {
    /// The answer for a command that ran, without its output.
    fn ended(outcome: &Outcome) -> Self {
        let (exit_code, signal) = match outcome.end {
            End::Exited(code) => (code, None),
            End::Signalled(signal) => (-1, Some(mcpz_engine::signal_name(signal))),
            _ => (-1, None),
        };
        Self {
            exit_code,
            timed_out: matches!(outcome.end, End::TimedOut { .. }),
            elapsed_ms: outcome.usage.wall.as_millis() as u64,
            signal,
            message: Ending::from(outcome).advising(ADVICE).message,
            used: Some(outcome.into()),
            ..Self::default()
        }
    }

    fn showing(self, shown: Shown) -> (Self, Vec<ContentBlock>) {
        let Shown { stdout, stderr, spilled, links, cut } = shown;
        let (stdout_truncated, stderr_truncated) = cut;
        (Self { stdout, stderr, stdout_truncated, stderr_truncated, spilled, ..self }, links)
    }

    /// The answer for a command that goes on.
    fn going(so_far: SoFar) -> (Self, Vec<ContentBlock>) {
        let SoFar { job, stdout, stderr, message, elapsed, links } = so_far;
        let (message, job, elapsed_ms) = (Some(message), Some(job), elapsed.as_millis() as u64);
        let reply =
            Self { stdout, stderr, exit_code: -1, elapsed_ms, message, job, ..Self::default() };
        (reply, links)
    }

    /// Logs what was printed, or its beginning. Debug formatting leaves no control character.
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
