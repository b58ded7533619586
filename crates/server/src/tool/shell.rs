//! The face that answers in sentences: runs a command and says how it went, with the details in the structure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::signal_name;
use mcpz_engine::{End, Outcome, RunRequest};
use mcpz_output::{Measure, Room};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::advice::{EndedCommand, advice};
use super::answer::{Answer, answer, notices};
use super::ending::{LOST, RunReport, why_closed};
use super::error::{ToolError, check_not_blank};
use super::excerpt::{Excerpt, Omission, excerpt, excerpt_at_most};
use super::handover::{JobHandle, PartialOutput};
use super::paging::MAX_BYTES;
use super::timeout::{in_seconds, timed_out};
use super::{Call, FaceSettings};
use crate::budget::size;
use crate::watcher::CallOutcome;

pub const DESCRIPTION: &str = "Execute shell commands with timeout and output capture.";

/// The most characters of an answer's sentence, with the blocks beside it.
const SENTENCE: usize = 600;

/// The settings of `shell`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSettings {
    pub default_timeout: Duration,
    pub max_timeout: Duration,
    /// The most bytes of output in an answer.
    pub max_output: usize,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_secs(300),
            max_timeout: Duration::from_secs(1800),
            max_output: 10_000_000,
        }
    }
}

impl ShellSettings {
    /// The most bytes a call can ask for.
    fn most_shown(&self) -> usize {
        self.max_output.min(MAX_BYTES)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The shell command to execute
    #[schemars(length(min = 1))]
    command: String,
    /// Working directory for command execution (optional, defaults to current directory)
    working_directory: Option<String>,
    /// Command timeout in seconds (optional)
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Additional environment variables to set (optional)
    environment: Option<BTreeMap<String, String>>,
    // `adapt` adds the description, which depends on a setting.
    #[schemars(range(min = 1))]
    max_output_size: Option<usize>,
}

impl Params {
    fn request(self, default: Duration) -> RunRequest {
        RunRequest {
            directory: self.working_directory.map(PathBuf::from),
            timeout: Some(self.timeout.map_or(default, Duration::from_secs)),
            environment: self.environment.unwrap_or_default().into_iter().collect(),
            ..RunRequest::script(self.command)
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`timeout` must be from 1 to {max} seconds, not {timeout}")]
    Timeout { timeout: u64, max: u64 },
    #[error("`max_output_size` must be 1 or more, not 0")]
    MaxOutputSize,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<bool>,
    // The sentence, where the exit code does not say everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    execution_time_ms: u64,
    working_directory: String,
    #[serde(flatten)]
    run: Option<RunReport>,
    #[serde(flatten)]
    omission: Omission,
    #[serde(flatten)]
    job: Option<JobHandle>,
}

pub fn adapt(mut tool: Tool, timeout: Duration, faces: &FaceSettings) -> Tool {
    let (default, settings) = (timeout.as_secs(), &faces.shell);
    let timeout = &mut Arc::make_mut(&mut tool.input_schema)["properties"]["timeout"];
    timeout["description"] =
        format!("Command timeout in seconds (optional, defaults to {})", in_words(default)).into();
    timeout["maximum"] = settings.max_timeout.as_secs().into();
    timeout["default"] = default.into();
    let max_output = &mut Arc::make_mut(&mut tool.input_schema)["properties"]["max_output_size"];
    max_output["description"] = format!(
        "Bytes of output to show (optional, defaults to what fits into an answer; at most {})",
        settings.most_shown()
    )
    .into();
    tool
}

/// Seconds, with minutes where those are plainer.
fn in_words(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes @ 2.., 0) => format!("{seconds} seconds / {minutes} minutes"),
        _ => in_seconds(Duration::from_secs(seconds)),
    }
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let settings = &call.faces.shell;
    check_not_blank("command", &params.command)?;
    let max = settings.max_timeout.as_secs();
    if let Some(timeout) = params.timeout.filter(|timeout| !(1..=max).contains(timeout)) {
        return Err(ToolError::arguments(Invalid::Timeout { timeout, max }));
    }
    if params.max_output_size == Some(0) {
        return Err(ToolError::arguments(Invalid::MaxOutputSize));
    }
    let asked = params.max_output_size;
    let command = call.echo(&params.command);
    let request = params.request(call.default_timeout());
    let outcome = call.run(request.clone()).await.map_err(ToolError::NotRun)?;
    let path = call.engine.directory_of(call.owner, request);
    let directory = call.echo(&path.display().to_string());
    let outcome = match outcome {
        CallOutcome::Ended(outcome) => outcome,
        CallOutcome::HandedOver(job) => {
            let reply = Reply { command, working_directory: directory, ..Reply::default() };
            let room = reply.room(&call, false);
            return Ok(reply.running(PartialOutput::read(&call, &job, room).await?));
        }
    };
    let mut reply = Reply::new(command, directory, &outcome);
    let excerpt = fitting(&call, &reply, &outcome, asked).await?;
    let (end, stderr) = (outcome.end, excerpt.stderr.as_str());
    let ended = EndedCommand { command: &reply.command, directory: &path, end, stderr };
    let advice = match outcome.limit {
        None => advice(&call, &ended).await,
        Some(_) => None,
    };
    let (sentence, is_error) = (sentence(&call, &outcome, advice.as_deref()), is_failure(&outcome));
    // Some clients show only the structure.
    if reply.exit_code.is_none() || outcome.limit.is_some() || advice.is_some() {
        reply.message = Some(sentence.clone());
    }
    let output = outcome.output.join(excerpt.stdout.clone(), &excerpt.stderr);
    let content = vec![ContentBlock::text(sentence), ContentBlock::text(output)];
    let omission = excerpt.notice(&call);
    let lowered = asked.filter(|_| omission.is_some()).and_then(|it| lowered(it, settings));
    let cuts = omission.into_iter().chain(lowered).collect();
    let notices = [notices(&call, &outcome), cuts].concat();
    let content = [content, notices, excerpt.links.clone()].concat();
    Ok(answer(&reply.with_output(&outcome, excerpt), content, is_error))
}

/// As many bytes of output as the call asks for, or what fits into an answer. Never more than the settings allow.
async fn fitting(
    call: &Call<'_>,
    reply: &Reply,
    outcome: &Outcome,
    asked: Option<usize>,
) -> Result<Excerpt, ToolError> {
    if let Some(asked) = asked {
        return excerpt(call, outcome, Room::bytes(asked.min(call.faces.shell.most_shown()))).await;
    }
    let most = call.faces.shell.max_output;
    let room = reply.room(call, outcome.end != End::Exited(0));
    excerpt_at_most(call, outcome, room, most).await
}

/// Why the answer shows less than the call asks for, if it does.
fn lowered(asked: usize, settings: &ShellSettings) -> Option<ContentBlock> {
    let most = settings.most_shown();
    let why = match most < MAX_BYTES {
        true => "the server's settings allow",
        false => "an answer shows",
    };
    let text = format!("[`max_output_size` lowered from {asked} to {most}, the most that {why}]");
    (asked > most).then(|| ContentBlock::text(text))
}

fn is_failure(outcome: &Outcome) -> bool {
    outcome.limit.is_some() || outcome.end != End::Exited(0)
}

/// How the command ended.
fn sentence(call: &Call<'_>, outcome: &Outcome, advice: Option<&str>) -> String {
    if let Some(limit) = outcome.limit {
        return format!("Command was ended: {limit}");
    }
    let text = match outcome.end {
        End::Exited(0) if advice.is_some() => {
            "Command ended with exit code 0, but something in it was not found".into()
        }
        End::Exited(0) => "Command executed successfully".into(),
        End::Exited(code) => format!("Command failed with exit code {code}"),
        End::Signalled(signal) => format!("Command was ended by signal {}", signal_name(signal)),
        End::TimedOut { after } => {
            format!("Command {}. {}", timed_out(after), longer(after, &call.faces.shell))
        }
        End::Cancelled => "Command was cancelled".into(),
        End::Lost => format!("Command failed: {LOST}"),
        End::Closed(why) => format!("Command was ended: {}", why_closed(why)),
    };
    let advice = advice.map(|advice| format!(": {advice}"));
    text + &advice.unwrap_or_default()
}

/// What to do about a timeout.
fn longer(after: Duration, settings: &ShellSettings) -> String {
    let max = settings.max_timeout;
    match after < max {
        true => format!(
            "Pass a larger `timeout` (up to {}), or run it in the background with `&`",
            in_seconds(max)
        ),
        false => "Run it in the background with `&`: `timeout` is already at its maximum".into(),
    }
}

impl Reply {
    /// Room for output in an answer that says this.
    fn room(&self, call: &Call<'_>, is_error: bool) -> Room {
        let max_answer = call.faces.max_answer.of_both(is_error);
        max_answer.room(size(self) + SENTENCE, Measure::Quoted)
    }

    /// The answer for a command that continues as a job.
    fn running(self, partial: PartialOutput) -> CallToolResult {
        let PartialOutput { job, stdout, stderr, joined, message, elapsed, links } = partial;
        let sentence = format!("Command is {message}");
        let reply = Self {
            stdout: Some(stdout),
            stderr: Some(stderr),
            message: Some(sentence.clone()),
            execution_time_ms: elapsed.as_millis() as u64,
            job: Some(job),
            ..self
        };
        let content = vec![ContentBlock::text(sentence), ContentBlock::text(joined)];
        answer(&reply, [content, links].concat(), false)
    }

    /// Everything but the output.
    fn new(command: String, directory: String, outcome: &Outcome) -> Self {
        let reply = Self {
            command,
            execution_time_ms: outcome.usage.wall.as_millis() as u64,
            working_directory: directory,
            run: Some(outcome.into()),
            ..Self::default()
        };
        match outcome.end {
            End::TimedOut { after } => {
                let timed_out = Some(true);
                Self { timed_out, timeout_seconds: Some(after.as_secs()), ..reply }
            }
            End::Exited(code) => Self { exit_code: Some(code), ..reply },
            End::Signalled(signal) => Self { signal: Some(signal_name(signal)), ..reply },
            End::Cancelled | End::Lost | End::Closed(_) => reply,
        }
    }

    fn with_output(self, outcome: &Outcome, excerpt: Excerpt) -> Self {
        let Excerpt { stdout, stderr, omission, .. } = excerpt;
        let (stdout, stderr) = (Some(stdout), Some(stderr));
        match outcome.end {
            End::TimedOut { .. } => {
                Self { partial_stdout: stdout, partial_stderr: stderr, omission, ..self }
            }
            _ => Self { stdout, stderr, omission, ..self },
        }
    }
}
