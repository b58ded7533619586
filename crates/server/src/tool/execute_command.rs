//! The native tool: runs a command and answers with its output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Condition, Input, Job, MAX_TIMEOUT, Outcome, Place, RunRequest, Size, wait};
use mcpz_output::{Measure, Stream};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::answer::{Answer, answer, answer_as_json};
use super::deadline::say_default;
use super::ending::{Ending, Used, is_error};
use super::error::{ToolError, check_not_blank, why_not_run};
use super::handed_over::{HandedOver, how_to_go_on};
use super::jobs::{Look, Wanted, ended_unused, output_uri, tell};
use super::shown::{Shown, Spilled, resource_link, show};
use super::{Call, FaceSettings};
use crate::budget::{size, size_as_json};
use crate::progress::Ran;

pub const DESCRIPTION: &str = "Execute a shell command and return its output. A timeout ends everything \
    it started.";

/// How output is counted: the answer's text is JSON, and sent as a string.
const MEASURE: Measure = Measure::QuotedTwice;

/// The longest name of a session.
const MAX_NAME: usize = 64;

const MAX_SECONDS: u64 = MAX_TIMEOUT.as_secs();

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Shell command to execute
    command: String,
    /// Where to run it [default: the server's]
    working_directory: Option<String>,
    /// Seconds until it is ended, unless it is a job
    #[schemars(range(max = MAX_SECONDS), extend("exclusiveMinimum" = 0))]
    timeout: Option<f64>,
    /// Variables to set
    environment: Option<BTreeMap<String, String>>,
    /// Text it reads
    stdin: Option<String>,
    /// Let it run as a job: see read_job
    #[serde(default)]
    background: bool,
    /// A job that outlives the server
    #[serde(default)]
    detach: bool,
    /// Give it a terminal
    #[serde(default)]
    tty: bool,
    /// Name of a shell that keeps directory and variables
    session: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`session` is 1 to {MAX_NAME} letters, digits, `_`, `-` or `.`")]
    SessionName,
    #[error("a command in a `session` has no `background`, `detach`, `tty` or `stdin`")]
    InSession,
    #[error("`timeout` must be more than 0 and at most {MAX_SECONDS} seconds")]
    Timeout,
}

impl Params {
    /// Whether what is asked of a session can be.
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
            ..Self::script(params.command)
        }
    }
}

/// What is said when a session is gone.
const SESSION_ENDED: &str =
    "the session has ended with this command; the next one of this name begins anew";

/// What is said when one was gone, and nobody was told of it.
const SESSION_BEGUN: &str = "this command began it anew";

/// What to do about a timeout.
const ADVICE: &str = "pass a larger `timeout`, or run it with `background`";
const ADVICE_IN_SESSION: &str =
    "pass a larger `timeout`, or run it with `background` and without `session`";

/// The terminal a command gets.
const SIZE: Size = Size { rows: 24, columns: 80 };

/// How long the first output of a job is waited for.
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
    used: Option<Used>,
    #[serde(flatten)]
    spilled: Spilled,
    #[serde(flatten)]
    job: Option<Going>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    // Where the session is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

/// A command that goes on as a job.
#[derive(Debug, Serialize, JsonSchema)]
struct Going {
    #[serde(flatten)]
    job: HandedOver,
    next_cursor: String,
    #[serde(flatten)]
    terminal: Look,
}

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    say_default(tool, "timeout", timeout.as_secs())
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let fits = |seconds| seconds > 0.0 && seconds <= MAX_TIMEOUT.as_secs_f64();
    if !params.timeout.is_none_or(fits) {
        return Err(ToolError::arguments(Invalid::Timeout));
    }
    check_not_blank("command", &params.command)?;
    params.check_session()?;
    let command = call.echo(&params.command);
    let (background, detach) = (params.background || params.detach, params.detach);
    let mut request = RunRequest::from(params);
    request.joined = background && call.watcher.streams.contains(&Stream::Stderr);
    let (engine, owner) = (call.engine, call.owner);
    let patience = call.patience.filter(|_| request.session.is_none());
    let waited = patience.filter(|_| !background && request.input.is_none());
    let ran = match background {
        true if detach => {
            call.watcher.start_detached(engine, owner, request).await.map(Ran::HandedOver)
        }
        true => call.watcher.start_job(engine, owner, request).await.map(Ran::HandedOver),
        false if patience.is_some() || request.input.is_some() => {
            call.watcher.run_or_hand_over(engine, owner, request, patience).await
        }
        false => call.watcher.run(engine, owner, request).await.map(Ran::Ended),
    };
    Ok(match ran {
        Ok(Ran::HandedOver(job)) => handed_over(&call, &job, command, waited).await?,
        Ok(Ran::Ended(outcome)) => {
            let (reply, failed) = (Reply::ran(command, &outcome), is_error(outcome.end));
            let room = call.faces.max_answer.of(failed).left(size_as_json(&reply), MEASURE);
            let Shown { stdout, stderr, spilled, links, .. } = show(&call, &outcome, room).await?;
            let reply = Reply { output: stdout + &stderr, spilled, ..reply };
            told(&call, &reply, failed, links)
        }
        Err(error) => not_run(&call, command, &why_not_run(&error)),
    })
}

/// The answer for a command that could not be run.
fn not_run(call: &Call<'_>, command: String, why: &str) -> CallToolResult {
    let output = call.faces.max_answer.of(true).most(&call.masked(why));
    let reply = Reply { command, output, return_code: -1, ..Reply::default() };
    told(call, &reply, true, Vec::new())
}

/// The answer for a command that goes on: what it has printed so far, and how to ask for more.
/// It is said how if that was nobody's wish, but took longer than was waited for.
async fn handed_over(
    call: &Call<'_>,
    job: &Arc<Job>,
    command: String,
    waited: Option<Duration>,
) -> Answer {
    if let Err(text) = job.started().await {
        return Ok(not_run(call, command, &format!("Failed to execute: {text}")));
    }
    wait(job, &Condition::Output, Place::default(), Instant::now() + FIRST_OUTPUT).await;
    let reply = Reply { command, ..Reply::default() };
    let wanted = Wanted { taken: size_as_json(&reply), ..Wanted::new(call) };
    let seen = tell(call, job, wanted, None).await?;
    let reply = Reply {
        output: seen.output.unwrap_or_default(),
        return_code: seen.exit_code.unwrap_or(-1),
        ending: waited.map(|waited| Ending::said(how_to_go_on(job, waited))).unwrap_or_default(),
        job: Some(Going {
            job: HandedOver { job_id: seen.job_id, pid: job.pid(), state: seen.state },
            next_cursor: seen.next_cursor.unwrap_or_default(),
            terminal: seen.look,
        }),
        ..reply
    };
    let link = |uri: String| resource_link(&uri, &job.output, Stream::Stdout);
    Ok(told(call, &reply, false, output_uri(call, job).map(link).into_iter().collect()))
}

impl Reply {
    /// All but the output.
    fn ran(command: String, outcome: &Outcome) -> Self {
        let session = outcome.session.as_deref();
        let advice = session.map_or(ADVICE, |_| ADVICE_IN_SESSION);
        let mut ending = Ending::from(outcome).advising(advice);
        let expired = session.and_then(|session| session.expired);
        let ended = session.is_some_and(|session| session.ended);
        let told = [
            expired.map(|time| format!("the session {}; {SESSION_BEGUN}", ended_unused(time))),
            ending.message.take(),
            ended.then(|| SESSION_ENDED.to_owned()),
        ];
        let told: Vec<_> = told.into_iter().flatten().collect();
        ending.message = (!told.is_empty()).then(|| told.join("; "));
        Self {
            session: session.map(|session| session.name.clone()),
            cwd: session
                .and_then(|session| session.directory.as_ref())
                .map(|directory| directory.to_string_lossy().into_owned()),
            command,
            return_code: outcome.end.exit_code().unwrap_or(-1),
            ending,
            used: Some(outcome.into()),
            ..Self::default()
        }
    }
}

/// The same answer twice: as text and as structure. The text is laid out for people while it is
/// short; a client that shows both shows a long one once, if they are the same to the letter.
fn told(
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
