//! Writes to a job's input: text, keys, or the end of the input.

use std::time::Duration;

use mcpz_engine::{Condition, JobState, TerminalSize, Typing};
use mcpz_output::{KEY_NAMES, key_bytes};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use super::Call;
use super::answer::{Answer, answer_as_json};
use super::error::ToolError;
use super::jobs::{OutputRequest, WaitParams, find_job, report};
use crate::blocking::run_blocking;

pub const DESCRIPTION: &str = "Type into a background job and see what it prints; end a line with \\n \
    or the key enter";

/// How long a job must print nothing before the answer to a call without `wait_for` is sent.
const QUIET: Duration = Duration::from_millis(150);

/// How long such a call waits at most.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    job_id: String,
    text: Option<String>,
    /// Pressed after text: enter, ctrl-c, up, f1, …
    keys: Option<Vec<String>>,
    /// Close its input
    eof: Option<bool>,
    /// Height; needs columns
    rows: Option<u16>,
    columns: Option<u16>,
    #[serde(flatten)]
    wait: WaitParams,
}

#[derive(Debug, thiserror::Error)]
#[error("unknown key `{0}`; available: {KEY_NAMES}")]
struct UnknownKey(String);

/// What an answer says when something was typed into a job that had ended.
const LATE: &str = "the job had ended before this was typed";

/// The same for a job whose command has left processes running.
const LATE_BUT_LEFT: &str =
    "the command had ended before this was typed: only processes that it left running may read it";

/// Why nothing can be typed into a job.
#[derive(Debug, thiserror::Error)]
enum NotWritable {
    #[error("this is the shell of a session: run commands in it with `session` set to `{0}`")]
    Session(String),
    #[error("this job has no input: start it with `background` or `tty` to write to it")]
    NoInput,
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let job = find_job(&call, &params.job_id).await?;
    let viewed = job.clone();
    let screen = run_blocking(&call.watcher.cancelled, move |_| Ok(viewed.screen())).await?;
    let application = screen.is_some_and(|screen| screen.application_cursor);
    let mut typing = Typing {
        text: params.text.unwrap_or_default(),
        keys: params.keys.unwrap_or_default(),
        pressed: Vec::new(),
        eof: params.eof == Some(true),
    };
    for key in &typing.keys {
        let pressed = key_bytes(key, application);
        let unknown = || ToolError::arguments(UnknownKey(key.clone()));
        typing.pressed.extend(pressed.ok_or_else(unknown)?);
    }
    if !job.can_be_written_to() {
        return Err(ToolError::failed(match job.session() {
            Some(name) => NotWritable::Session(name.to_owned()),
            None => NotWritable::NoInput,
        }));
    }
    job.revisit();
    let place = job.told();
    let (condition, time) =
        params.wait.condition().await?.unwrap_or((Condition::Quiet(QUIET), PATIENCE));
    if let (Some(rows), Some(columns)) = (params.rows, params.columns) {
        job.resize(TerminalSize { rows, columns }).await;
    }
    let late = match job.state() {
        _ if typing.is_empty() || !job.has_ended() => None,
        JobState::Running => Some(LATE_BUT_LEFT),
        _ => Some(LATE),
    };
    if !typing.is_empty() {
        let written = call.engine.write(call.owner, &call.watcher.origin, &job, &typing).await;
        written.map_err(ToolError::NotRun)?;
    }
    let met = tokio::select! {
        met = job.wait_for(&condition, place, Instant::now() + time) => met,
        () = call.watcher.cancelled.cancelled() => return Err(ToolError::Cancelled),
    };
    let met = Some(met).filter(|_| params.wait.wait_for.is_some());
    let request = OutputRequest { from: place, ..OutputRequest::new(&call) };
    let mut report = report(&call, &job, request, met).await?;
    if let Some(late) = late {
        report.add_note(late.to_owned());
    }
    Ok(answer_as_json(&report, Vec::new(), false))
}
