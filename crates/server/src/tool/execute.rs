//! The face of a sandbox's one tool: runs a program or a shell command and answers with its output,
//! cut at a limit.

use std::time::Duration;

use mcpz_engine::{
    Command, Data, End, Error, MAX_TIMEOUT, Measure, Outcome, PageRequest, Reader, Room,
    RunRequest, Stop, Stream, View,
};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{
    Answer, Complaint, Effect, Ending, Used, answer_as_json, define, off_thread, refusal,
};
use super::budget::{MaxAnswer, passed_on_whole, size_as_json};
use super::deadline::say_default;
use super::handed_over::{HandedOver, SoFar};
use super::{Call, FaceSettings};
use crate::progress::Ran;

pub const NAME: &str = "execute";

const DESCRIPTION: &str = "Runs a command and returns the captured output. With args, the command \
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
struct Params {
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

#[derive(Debug, Serialize, JsonSchema)]
struct Reply {
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
    job: Option<HandedOver>,
}

pub fn definition(faces: &FaceSettings) -> rmcp::model::Tool {
    let tool = passed_on_whole(define::<Params, Reply>(NAME, DESCRIPTION, Effect::Runs));
    say_default(tool, "timeout_ms", faces.long_timeout.as_millis())
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    if params.command.trim().is_empty() {
        return Err(Complaint("Error: command: empty".into()));
    }
    if params.timeout_ms == Some(0) {
        return Err(Complaint::invalid("`timeout_ms` must be at least 1"));
    }
    let limit = call.faces.execute.max_output_bytes;
    let outcome = match call.run(params.request(call.faces.long_timeout)).await {
        Ok(Ran::Ended(outcome)) => outcome,
        Ok(Ran::HandedOver(job)) => {
            let elapsed_ms = job.duration().as_millis() as u64;
            let left = call.faces.max_answer.left(0, Measure::QuotedTwice);
            let room = Room { size: left.size.min(limit), ..left };
            let (reply, links) = Reply::going(SoFar::read(&call, &job, room).await?, elapsed_ms);
            reply.log(&call.faces.execute);
            return Ok(answer_as_json(&reply, links, false));
        }
        Err(error @ (Error::Refused(_) | Error::Audit { .. })) => {
            return Err(Complaint(refusal(&error)));
        }
        Err(error) => {
            let why = call.faces.max_answer.of(true).most(&call.masked(&error.chain()));
            let text =
                [ContentBlock::text("Error: execute: spawn failed"), ContentBlock::text(why)];
            return Ok(CallToolResult::error(text.into()));
        }
    };
    if outcome.end == End::Lost {
        return Err(Complaint("Error: execute: wait failed".into()));
    }
    let cut_short = matches!(outcome.end, End::TimedOut { .. } | End::Closed(_));
    let max_answer = Some(call.faces.max_answer).filter(|max| max.is_chosen());
    let (reading, streams) = (outcome.clone(), call.watcher.streams);
    let read = off_thread(&call.watcher.cancelled, move |stop| {
        let reply = Reply::read(&reading, streams, limit, stop)?;
        Ok(match max_answer {
            Some(max_answer) => reply.within(max_answer),
            None => reply,
        })
    });
    let reply = read.await.map_err(|Complaint(text)| {
        tracing::info!("{text}");
        Complaint("Error: execute: read failed".into())
    })?;
    reply.log(&call.faces.execute);
    Ok(answer_as_json(&reply, Vec::new(), cut_short))
}

impl Reply {
    fn read(
        outcome: &Outcome,
        streams: &[Stream],
        limit: usize,
        stop: Stop,
    ) -> Result<Self, Error> {
        let reader = |stream| {
            Reader::new(outcome.output.clone(), stream, View::default()).until(stop.clone())
        };
        let (stdout, stderr) = (reader(Stream::Stdout), reader(Stream::Stderr));
        let shows_stderr = streams.contains(&Stream::Stderr);
        let wanted = match shows_stderr {
            true => stderr.length().map_err(Error::Read)?.min(limit as u64 / 2) as usize,
            false => 0,
        };
        let (stdout, stdout_truncated) = beginning(&stdout, limit - wanted)?;
        let (stderr, stderr_truncated) = match shows_stderr {
            true => beginning(&stderr, limit.saturating_sub(stdout.len()))?,
            false => (String::new(), false),
        };
        let (exit_code, signal) = match outcome.end {
            End::Exited(code) => (code, None),
            End::Signalled(signal) => (-1, Some(mcpz_engine::signal_name(signal))),
            _ => (-1, None),
        };
        Ok(Self {
            stdout,
            stderr,
            exit_code,
            timed_out: matches!(outcome.end, End::TimedOut { .. }),
            stdout_truncated,
            stderr_truncated,
            elapsed_ms: outcome.usage.wall.as_millis() as u64,
            signal,
            message: Ending::from(outcome).advising(ADVICE).message,
            used: Some(outcome.into()),
            job: None,
        })
    }

    /// The answer for a command that goes on.
    fn going(so_far: SoFar, elapsed_ms: u64) -> (Self, Vec<ContentBlock>) {
        let SoFar { job, stdout, stderr, message, links } = so_far;
        let reply = Self {
            stdout,
            stderr,
            exit_code: -1,
            timed_out: false,
            stdout_truncated: false,
            stderr_truncated: false,
            elapsed_ms,
            signal: None,
            message: Some(message),
            used: None,
            job: Some(job),
        };
        (reply, links)
    }

    /// The same, in an answer of limited length.
    fn within(mut self, max_answer: MaxAnswer) -> Self {
        let (stdout, stderr) = (std::mem::take(&mut self.stdout), std::mem::take(&mut self.stderr));
        let room = max_answer.of(self.timed_out).left(size_as_json(&self), Measure::QuotedTwice);
        let half = Room { size: room.size / 2, ..room };
        let least = half.measure.of(&stderr).min(half.size);
        self.stdout = stdout[..room.less(least).beginning(&stdout)].to_owned();
        let left = room.less(room.measure.of(&self.stdout));
        self.stderr = stderr[..left.beginning(&stderr)].to_owned();
        self.stdout_truncated |= self.stdout.len() < stdout.len();
        self.stderr_truncated |= self.stderr.len() < stderr.len();
        self
    }

    /// Logs what was printed, or its beginning. Debug formatting leaves no control character.
    fn log(&self, settings: &ExecuteSettings) {
        let limit = match settings.log_full_output {
            true => settings.max_output_bytes,
            false => settings.log_output_bytes,
        };
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            tracing::info!("{name}: {:?}", &text[..end.unwrap_or(0)]);
        }
    }
}

/// The beginning of what a stream says, and whether there is more.
fn beginning(reader: &Reader, limit_bytes: usize) -> Result<(String, bool), Error> {
    if limit_bytes == 0 {
        return Ok((String::new(), reader.length().map_err(Error::Read)? > 0));
    }
    let page = reader.page(PageRequest::bytes(0, limit_bytes)).map_err(Error::Read)?;
    let truncated = page.end < page.total;
    Ok(match page.data {
        Data::Text(text) => (text, truncated),
        Data::Binary(_) => (format!("[{} bytes, not shown]", page.total), true),
    })
}
