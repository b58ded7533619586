//! The native tool: runs a command and answers with its output, or with the job that the command became.
//!
//! `output` is stdout, then stderr. The kept output also knows the order in which they came, which no answer shows. A
//! command that is a job from the start has both in one stream, so its reader sees them in that order; if answers leave
//! stderr out, the streams stay separate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Condition, Input, Job, Outcome, Position, RunRequest, Settings, TerminalSize};
use mcpz_output::{Measure, Stream};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{Answer, answer, answer_as_json, joined};
use super::ending::{Ending, RunReport, is_error};
use super::error::{ToolError, check_not_blank, why_not_run};
use super::excerpt::{Omission, resource_link};
use super::extract::{ExtractName, any_value};
use super::handover::{JobHandle, how_to_continue};
use super::jobs::{OutputRequest, TerminalView, ended_unused, output_uri, report};
use super::places::describe_places;
use super::shown::{Asked, Shown, show};
use super::timeout::describe_default;
use super::view::ViewName;
use super::{Call, FaceSettings};
use crate::budget::{size, size_as_json};
use crate::watcher::CallOutcome;

pub const DESCRIPTION: &str = "Execute a shell command and return its output. A timeout kills everything \
    it started.";

/// How output is counted: the text of the answer is JSON, and is sent as a string.
const MEASURE: Measure = Measure::QuotedTwice;

/// The longest name of a session.
const MAX_NAME: usize = 64;

const MAX_SECONDS: u64 = Settings::MAX_TIMEOUT.as_secs();

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Shell command to execute
    command: String,
    /// [default: the server's]
    working_directory: Option<String>,
    /// In seconds; for jobs only if set
    #[schemars(range(max = MAX_SECONDS), extend("exclusiveMinimum" = 0))]
    timeout: Option<f64>,
    environment: Option<BTreeMap<String, String>>,
    stdin: Option<String>,
    /// Run it as a job; see read_job
    #[serde(default)]
    background: bool,
    /// A job that outlives the server
    #[serde(default)]
    detach: bool,
    #[serde(default)]
    tty: bool,
    /// A shell that keeps directory and variables
    session: Option<String>,
    #[serde(default)]
    view: ViewName,
    #[serde(default)]
    extract: ExtractName,
    /// Only in the schema where there are several.
    #[schemars(skip)]
    place: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`session` must be 1 to {MAX_NAME} letters, digits, `_`, `-` or `.`")]
    SessionName,
    #[error("a command in a `session` cannot have `background`, `detach`, `tty` or `stdin`")]
    InSession,
    #[error(
        "`view` and `extract` work only without `background` and `detach`; pass them to read_job"
    )]
    OfJob,
    #[error("`timeout` must be more than 0 and at most {MAX_SECONDS} seconds")]
    Timeout,
}

impl Params {
    /// A session has a plain name, and runs commands only in the foreground and without input.
    fn check_session(&self) -> Result<(), ToolError> {
        let Some(name) = &self.session else { return Ok(()) };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(ToolError::arguments(Invalid::SessionName));
        }
        if self.background || self.detach || self.tty || self.stdin.is_some() {
            return Err(ToolError::arguments(Invalid::InSession));
        }
        Ok(())
    }

    /// What the answer is to show. That of a job is asked for when its output is read.
    fn asked(&self) -> Result<Asked, ToolError> {
        let asked = Asked { view: self.view, extract: self.extract };
        match (self.background || self.detach) && !asked.is_nothing() {
            true => Err(ToolError::arguments(Invalid::OfJob)),
            false => asked.check(),
        }
    }
}

impl From<Params> for RunRequest {
    fn from(params: Params) -> Self {
        Self {
            directory: params.working_directory.map(Into::into),
            timeout: params.timeout.map(Duration::from_secs_f64),
            environment: params.environment.unwrap_or_default().into_iter().collect(),
            stdin: params.stdin.map(String::into_bytes),
            input: match (params.tty, params.background || params.detach) {
                (true, _) => Some(Input::Terminal(SIZE)),
                (false, true) => Some(Input::Pipe),
                (false, false) => None,
            },
            lasting: params.background || params.detach,
            session: params.session,
            place: params.place,
            ..Self::script(params.command)
        }
    }
}

/// What an answer says when the session ended.
const SESSION_ENDED: &str =
    "this command ended the session; the next command with this name starts a new one";

/// What an answer says when the session had ended before, and no answer said so.
const SESSION_BEGUN: &str = "this command started a new one";

/// What an answer says when its command runs on, and what the call asks for has to wait.
const ASK_LATER: &str = "`view` and `extract` are not applied yet: pass them to read_job";

/// What to do about a timeout.
const ON_TIMEOUT: &str = "pass a larger `timeout`, or run it with `background`";
const ON_TIMEOUT_IN_SESSION: &str =
    "pass a larger `timeout`, or run it with `background` and without `session`";

/// The size of a command's terminal.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// How long a call waits for the first output of a job.
const FIRST_OUTPUT: Duration = Duration::from_millis(200);

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    command: String,
    /// stdout, then stderr
    output: String,
    /// Exit code; -1 if there is none
    return_code: i32,
    #[serde(flatten)]
    ending: Ending,
    #[serde(flatten)]
    run: Option<RunReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "any_value")]
    extracted: Option<Value>,
    #[serde(flatten)]
    omission: Omission,
    #[serde(flatten)]
    job: Option<RunningJob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    // The directory of the session after this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

/// A command that continues as a job.
#[derive(Debug, Serialize, JsonSchema)]
struct RunningJob {
    #[serde(flatten)]
    job: JobHandle,
    next_cursor: String,
    #[serde(flatten)]
    terminal: TerminalView,
    /// The schema has it for commands that have ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    warnings: Vec<String>,
}

pub fn adapt(tool: Tool, timeout: Duration, faces: &FaceSettings) -> Tool {
    let tool = describe_default(tool, "timeout", timeout.as_secs());
    describe_places(tool, "Where to run it", &faces.places)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let fits = |seconds| seconds > 0.0 && seconds <= Settings::MAX_TIMEOUT.as_secs_f64();
    if !params.timeout.is_none_or(fits) {
        return Err(ToolError::arguments(Invalid::Timeout));
    }
    check_not_blank("command", &params.command)?;
    params.check_session()?;
    let asked = params.asked()?;
    let command = call.echo(&params.command);
    let (background, detach) = (params.background || params.detach, params.detach);
    let mut request = RunRequest::from(params);
    request.joined = background && call.watcher.streams.contains(&Stream::Stderr);
    let (engine, owner) = (call.engine, call.owner);
    let after = call.background_after.filter(|_| request.session.is_none());
    let waited = after.filter(|_| !background && request.input.is_none());
    let ran = match background {
        true if detach => {
            call.watcher.start_detached(engine, owner, request).await.map(CallOutcome::HandedOver)
        }
        true => call.watcher.start_job(engine, owner, request).await.map(CallOutcome::HandedOver),
        false if after.is_some() || request.input.is_some() => {
            call.watcher.run_or_hand_over(engine, owner, request, after).await
        }
        false => call.watcher.run(engine, owner, request).await.map(CallOutcome::Ended),
    };
    Ok(match ran {
        Ok(CallOutcome::HandedOver(job)) => {
            handed_over(&call, &job, command, (waited, asked)).await?
        }
        Ok(CallOutcome::Ended(outcome)) => {
            let (reply, failed) = (Reply::ran(&call, command, &outcome), is_error(outcome.end));
            let room = call.faces.max_answer.of(failed).room(size_as_json(&reply), MEASURE);
            let shown = show(&call, &outcome, asked, room).await?;
            let (links, reply) = (shown.links.clone(), reply.showing(shown));
            render(&call, &reply, failed, links)
        }
        Err(error) => not_run(&call, command, &why_not_run(&error)),
    })
}

/// The answer for a command that could not be run.
fn not_run(call: &Call<'_>, command: String, why: &str) -> CallToolResult {
    let output = call.faces.max_answer.of(true).shorten(&call.masked(why));
    let reply = Reply { command, output, return_code: -1, ..Reply::default() };
    render(call, &reply, true, Vec::new())
}

/// The answer for a command that continues as a job: what it has printed so far. `waited` is how long the call waited
/// for it, if the client did not ask for a job.
async fn handed_over(
    call: &Call<'_>,
    job: &Arc<Job>,
    command: String,
    (waited, asked): (Option<Duration>, Asked),
) -> Answer {
    if let Err(text) = job.started().await {
        return Ok(not_run(call, command, &format!("Failed to execute: {text}")));
    }
    job.wait_for(&Condition::Output, Position::default(), Instant::now() + FIRST_OUTPUT).await;
    let reply = Reply { command, ..Reply::default() };
    let request = OutputRequest { taken: size_as_json(&reply), ..OutputRequest::new(call) };
    let report = report(call, job, request, None).await?;
    let later = (!asked.is_nothing()).then(|| ASK_LATER.to_owned());
    let how = waited.map(|waited| how_to_continue(job, waited));
    let reply = Reply {
        output: report.output.unwrap_or_default(),
        return_code: report.exit_code.unwrap_or(-1),
        ending: joined(how.into_iter().chain(later)).map(Ending::message).unwrap_or_default(),
        job: Some(RunningJob {
            job: JobHandle { job_id: report.job_id, pid: job.pid(), state: report.state },
            next_cursor: report.next_cursor.unwrap_or_default(),
            terminal: report.terminal,
            warnings: report.warnings,
        }),
        ..reply
    };
    let link = |uri: String| resource_link(&uri, &job.output, Stream::Stdout);
    Ok(render(call, &reply, false, output_uri(call, job).map(link).into_iter().collect()))
}

impl Reply {
    /// The same with what is shown of the output.
    fn showing(self, shown: Shown) -> Self {
        let Shown { output, omission, extracted, message, .. } = shown;
        let mut ending = self.ending;
        ending.message = joined(ending.message.take().into_iter().chain(message));
        Self { output, omission, extracted, ending, ..self }
    }

    /// Everything but the output.
    fn ran(call: &Call<'_>, command: String, outcome: &Outcome) -> Self {
        let session = outcome.session.as_deref();
        let advice = session.map_or(ON_TIMEOUT, |_| ON_TIMEOUT_IN_SESSION);
        let mut ending = Ending::advising(outcome, advice);
        let expired = session.and_then(|session| session.expired);
        let was_lost = session.is_some_and(|session| session.was_lost);
        let ended = session.is_some_and(|session| session.ended);
        let parts = [
            expired.map(|time| format!("the session {}; {SESSION_BEGUN}", ended_unused(time))),
            was_lost.then(|| format!("the session was lost; {SESSION_BEGUN}")),
            ending.message.take(),
            ended.then(|| SESSION_ENDED.to_owned()),
        ];
        ending.message = joined(parts.into_iter().flatten());
        Self {
            session: session.map(|session| call.masked(&session.name)),
            cwd: session
                .and_then(|session| session.directory.as_ref())
                .map(|directory| call.masked(&directory.to_string_lossy())),
            command,
            return_code: outcome.end.exit_code().unwrap_or(-1),
            ending,
            run: Some(outcome.into()),
            ..Self::default()
        }
    }
}

/// The same answer as text and as structure. A short text is laid out for people. A long one is the structure byte for
/// byte, so that clients which would show both show it once.
fn render(
    call: &Call<'_>,
    reply: &Reply,
    is_error: bool,
    links: Vec<ContentBlock>,
) -> CallToolResult {
    if size(reply) > call.faces.max_answer.characters() / 2 {
        return answer_as_json(reply, links, is_error);
    }
    let text = serde_json::to_string_pretty(reply).expect("strings and numbers are always JSON");
    answer(reply, [vec![ContentBlock::text(text)], links].concat(), is_error)
}
