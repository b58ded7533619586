//! The face for large outputs: runs a command and answers with the first page of what it printed.
//!
//! A cursor never starts a command: it reads on in the output of a run that was. `bytes:0` without
//! a run is no place to read on from, but the beginning, as in the document's own example.

mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Command, Condition, End, Found, Job, Outcome, Place, RunRequest, wait};
use mcpz_output::{Error, Measure, Output, PageRequest, Room, Stream, Summary, View};
use rmcp::model::{ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::answer::{Answer, IN_PARTS, answer, answer_as_json};
use super::deadline::say_deadline;
use super::ending::{Ending, Used, is_error};
use super::error::{ToolError, check_not_blank};
use super::handed_over::{HandedOver, how_to_go_on};
use super::paging::{checked_limit, filter, parse_cursor, read_patiently};
use super::shown::resource_link;
use super::{Call, FaceSettings};
use crate::blocking::run_blocking;
use crate::budget::{MaxAnswer, size_as_json};
use crate::kept::{Cursor, OutputUri};
use crate::progress::Ran;

use reading::{Read, Reading, is_binary, shown};

pub const DESCRIPTION: &str = "Executes shell commands in a controlled environment. Supports \
    pagination via limit_bytes and next_cursor. Automatically spills large outputs to file with \
    spill_uri.";

/// What to do about a timeout.
const ADVICE: &str = "run it in the background with `&` (and without `args`), or start the server \
    with a larger `--timeout`";

/// What an answer takes at most beside its chunks, what stands aside and what became of the command:
/// numbers, counts, the kind of output, and that it is binary.
const FRAME: usize = 800;

/// How long it may take to hear how a command ended that prints nothing any more.
const AT_LAST: Duration = Duration::from_secs(1);

/// Two previews, and what went wrong with a filter.
const ASIDES: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Program, or without args a shell command
    cmd: String,
    /// Arguments, passed on without a shell
    args: Option<Vec<String>>,
    /// Directory to run it in
    cwd: Option<String>,
    /// Variables to set
    env: Option<BTreeMap<String, String>>,
    page: Option<PageParams>,
    /// What to do with output over the limit [default: spill]
    #[serde(default)]
    on_large_output: OnLargeOutput,
    /// Only lines of stdout and stderr that match this regex
    grep: Option<String>,
    /// Only what this JMESPath finds in JSON on stdout
    json_path: Option<String>,
    /// Compress the spill of stdout with gzip
    #[serde(default)]
    zip: bool,
    /// Count lines, errors and warnings
    #[serde(default)]
    summary: bool,
    /// Remove control sequences [default: true]
    ansi_strip: Option<bool>,
    /// Line ends: \n or \r\n [default: \n]
    #[serde(default)]
    newline: Newline,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageParams {
    /// next_cursor of the page before
    cursor: Option<String>,
    /// [default: 65536]
    #[schemars(range(min = 1, max = 262_144))]
    limit_bytes: Option<usize>,
    /// [default: 2000]
    #[schemars(range(min = 1))]
    limit_lines: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OnLargeOutput {
    #[default]
    Spill,
    Truncate,
    Error,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
enum Newline {
    #[default]
    #[serde(rename = "\n")]
    Lf,
    #[serde(rename = "\r\n")]
    CrLf,
}

/// How much a page has unless something else is asked for.
const DEFAULT_BYTES: usize = 65_536;
const DEFAULT_LINES: usize = 2000;

/// How much a page may have.
struct Limits {
    /// What was asked for.
    bytes: Option<usize>,
    lines: usize,
}

impl PageParams {
    /// The limits, or what is wrong with them.
    fn limits(&self) -> Result<Limits, ToolError> {
        let lines = self.limit_lines.unwrap_or(DEFAULT_LINES);
        if lines == 0 {
            return Err(ToolError::arguments(NoLines));
        }
        let bytes = self.limit_bytes.map(checked_limit).transpose()?;
        Ok(Limits { bytes, lines })
    }
}

impl Limits {
    /// Room for output in an answer that so far has what became of the command. One that says what went wrong
    /// is short even if nobody has set how long answers are.
    fn room(&self, max_answer: MaxAnswer, reply: &Reply, failed: bool) -> Room {
        match self.bytes {
            None if max_answer.is_chosen() || failed => {
                let taken = size_as_json(reply) + FRAME + ASIDES * max_answer.aside().size;
                max_answer.left(taken, Measure::QuotedTwice)
            }
            bytes => Room::bytes(bytes.unwrap_or(DEFAULT_BYTES)),
        }
    }
}

impl Params {
    fn view(&self) -> View {
        let newline = match self.newline {
            Newline::Lf => mcpz_output::Newline::Lf,
            Newline::CrLf => mcpz_output::Newline::CrLf,
        };
        View { ansi_strip: self.ansi_strip.unwrap_or(true), newline, ..View::default() }
    }

    fn request(&self, timeout: Duration) -> RunRequest {
        let command = match &self.args {
            None => Command::Script { text: self.cmd.clone(), shell: None },
            Some(args) => Command::Argv([std::slice::from_ref(&self.cmd), args].concat()),
        };
        RunRequest {
            directory: self.cwd.as_ref().map(Into::into),
            timeout: Some(timeout),
            environment: self.env.clone().unwrap_or_default().into_iter().collect(),
            ..RunRequest::new(command)
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    stdout_chunk: String,
    stderr_chunk: String,
    bytes_start: u64,
    /// Last byte of the chunk; left out when there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_end: Option<u64>,
    total_bytes: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_spill_uri: Option<String>,
    mime: String,
    line_count: u64,
    stderr_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    head_preview: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_preview: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Counts>,
    #[serde(flatten)]
    ending: Ending,
    #[serde(flatten)]
    used: Option<Used>,
    #[serde(flatten)]
    job: Option<HandedOver>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    lines: u64,
    errors: u64,
    warnings: u64,
}

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    say_deadline(tool, timeout)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let page = params.page.clone().unwrap_or_default();
    let cursor = parse_cursor(page.cursor.as_deref())?;
    let limits = page.limits()?;
    let (grep, json_path) = (params.grep.as_deref(), params.json_path.as_deref());
    let filter = filter(&call.watcher.cancelled, grep, json_path).await?;
    let request = params.request(call.default_timeout());
    let begins = cursor == Cursor::default();
    let mut job = None;
    let (id, mut found) = match &cursor.id {
        _ if begins => {
            check_not_blank("cmd", &params.cmd)?;
            let (engine, owner) = (call.engine, call.owner);
            let ran = call.watcher.run_followed(engine, owner, request, call.patience).await;
            match ran.map_err(ToolError::NotRun)? {
                (id, Ran::Ended(outcome)) => {
                    (id, Found::new(outcome.output.clone(), Some(outcome)))
                }
                (id, Ran::HandedOver(going)) => {
                    let output = going.output.clone();
                    job = Some(going);
                    (id, Found::new(output, None))
                }
            }
        }
        None => call.owner.find_newest(&request).ok_or_else(gone)?,
        Some(id) => (id.clone(), call.owner.find(id).ok_or_else(gone)?),
    };
    let going = match &found.outcome {
        None => job_of(&call, &id).await,
        Some(_) => None,
    };
    if let Some(going) = &going {
        found.outcome = going.end().outcome.and_then(Result::ok);
    }
    let mut reply = Reply::about(&found);
    if let Some(going) = going.as_ref().filter(|_| found.outcome.is_none()) {
        reply.ending.message = Some(match job {
            Some(_) => how_to_go_on(going, call.patience.unwrap_or_default()),
            None => format!("the command is still running as {}", going.id()),
        });
        reply.job = Some(HandedOver::new(going).await?);
    }
    let failed = found.outcome.as_ref().is_some_and(|outcome| is_error(outcome.end));
    let max_answer = call.faces.max_answer.of(failed);
    let room = limits.room(max_answer, &reply, failed);
    let wanted = PageRequest { offset: cursor.offset, room, limit_lines: limits.lines };
    let ended = found.outcome.is_some();
    let reading = Reading {
        output: found.output.clone(),
        wanted,
        aside: max_answer.aside(),
        filter: Arc::new(filter),
        ended,
        view: params.view(),
        first: cursor.offset == 0 && cursor.stderr == 0,
        // A place that somebody made up says nothing of stderr.
        stderr: match cursor.id.is_some() || begins {
            true => cursor.stderr,
            false => u64::MAX,
        },
        has_stderr: call.watcher.streams.contains(&Stream::Stderr),
        summary: params.summary,
    };
    let may_get_more = |read: &Read| !begins && read.is_pending(ended);
    let read = move |stop| reading.read(stop);
    let read = read_patiently(&call.watcher.cancelled, &found.output, read, may_get_more).await?;
    if let Some(going) = going.filter(|_| !ended && found.output.is_finished()) {
        wait(&going, &Condition::Exit, Place::default(), Instant::now() + AT_LAST).await;
        found.outcome = going.end().outcome.and_then(Result::ok);
        reply = Reply::about(&found);
    }
    reply.tell(&read);
    let (over, mode) = (read.is_over(), params.on_large_output);
    let cuts = mode != OnLargeOutput::Spill && job.is_none();
    reply.truncated = cuts && over;
    // What is only announced can be read, or the announcement would be wrong.
    let announced = read.is_binary() && !(over && mode == OnLargeOutput::Error);
    if (!cuts || announced) && (read.is_more() || !begins) {
        let links = reply.point_to_rest(&call, &params, (&id, &found), read).await?;
        return Ok(answer_as_json(&reply, links, failed));
    }
    let cancelled = found.outcome.as_ref().is_some_and(|outcome| outcome.end == End::Cancelled);
    // What this call has not told, and will not tell, can still be read.
    if begins && !cancelled {
        call.owner.forget(&id);
    }
    if over && mode == OnLargeOutput::Error {
        let end = found.outcome.as_ref().map_or("the command still runs".into(), how_it_ended);
        let reply = reply.without_output(format!("{}; {end}", read.excess(wanted)));
        let text = reply.ending.message.clone().unwrap_or_default();
        return Ok(answer(&reply, vec![ContentBlock::text(text)], true));
    }
    Ok(answer_as_json(&reply, Vec::new(), failed))
}

impl Reply {
    /// Says where to read on, and returns links to it.
    async fn point_to_rest(
        &mut self,
        call: &Call<'_>,
        params: &Params,
        (id, found): (&str, &Found),
        read: Read,
    ) -> Result<Vec<ContentBlock>, ToolError> {
        let cursor = |(offset, stderr)| Cursor { offset, stderr, id: Some(id.to_owned()) };
        self.next_cursor = read.next(found.outcome.is_some()).map(|next| cursor(next).to_string());
        let (uri, spilled) = match params.zip {
            true => (OutputUri::zipped(id), zipped(call, id, found).await?),
            false => (OutputUri::new(id, Stream::Stdout), found.output.clone()),
        };
        let uri = uri.to_string();
        let mut links = vec![resource_link(&uri, &spilled, Stream::Stdout)];
        self.spill_uri = Some(uri);
        if read.has_stderr {
            let uri = OutputUri::new(id, Stream::Stderr).to_string();
            links.push(resource_link(&uri, &found.output, Stream::Stderr));
            self.stderr_spill_uri = Some(uri);
        }
        if let Some((head, tail)) = read.previews {
            (self.head_preview, self.tail_preview) = (Some(head), Some(tail));
        }
        Ok(links)
    }

    /// The same of a command whose output is too long to be told.
    fn without_output(mut self, message: String) -> Self {
        self.ending.message = Some(message);
        let (stdout_chunk, stderr_chunk) = (String::new(), String::new());
        let (bytes_end, line_count, stderr_count) = (None, 0, 0);
        Self { stdout_chunk, stderr_chunk, bytes_end, line_count, stderr_count, ..self }
    }
}

/// How a command ended, in a few words.
fn how_it_ended(outcome: &Outcome) -> String {
    match outcome.end.exit_code() {
        Some(code) => format!("the command ended with exit code {code}"),
        None => format!("the command ended: {}", Ending::from(outcome).words()),
    }
}

/// The job that a command was handed over as, if it was.
async fn job_of(call: &Call<'_>, id: &str) -> Option<Arc<Job>> {
    let jobs = call.engine.jobs(call.owner).await;
    jobs.into_iter().find(|job| *job.run == *id)
}

/// The compressed form of what was printed, which is made once.
async fn zipped(call: &Call<'_>, id: &str, found: &Found) -> Result<Output, ToolError> {
    if let Some(zipped) = &found.zipped {
        return Ok(zipped.clone());
    }
    let (source, target) = (found.output.clone(), call.owner.new_output());
    let zipped = target.clone();
    run_blocking(&call.watcher.cancelled, move |stop| {
        mcpz_output::zip(&source, Stream::Stdout, &zipped, &stop).map_err(Error::Read)
    })
    .await?;
    call.owner.keep_zipped(id, target.clone());
    Ok(target)
}

#[derive(Debug, thiserror::Error)]
#[error("`limit_lines` must be at least 1")]
struct NoLines;

#[derive(Debug, thiserror::Error)]
#[error("there is no kept output for this cursor; run the command again without one")]
struct OutputGone;

fn gone() -> ToolError {
    ToolError::failed(OutputGone)
}

impl Reply {
    /// What became of the command.
    fn about(found: &Found) -> Self {
        let outcome = found.outcome.as_ref();
        Self {
            exit_code: outcome.and_then(|outcome| outcome.end.exit_code()),
            ending: match outcome {
                Some(outcome) => Ending::from(outcome).advising(ADVICE),
                None => Ending::said("the command is still running"),
            },
            used: outcome.map(Used::from),
            ..Self::default()
        }
    }

    /// Adds a page of what it printed.
    fn tell(&mut self, read: &Read) {
        let Read { stdout, stderr, .. } = read;
        let in_parts = (stdout.in_parts || stderr.in_parts).then(|| IN_PARTS.to_owned());
        let said = [self.ending.message.take(), in_parts, read.problem.clone()];
        let said: Vec<_> = said.into_iter().flatten().collect();
        self.ending.message = (!said.is_empty()).then(|| said.join("; "));
        self.stdout_chunk = shown(stdout, read.mime);
        self.stderr_chunk = shown(stderr, "application/octet-stream");
        self.bytes_start = stdout.start;
        let is_empty = stdout.end == stdout.start || is_binary(stdout);
        self.bytes_end = (!is_empty).then(|| stdout.end - 1);
        self.total_bytes = stdout.total;
        self.mime = read.mime.to_owned();
        (self.line_count, self.stderr_count) = (stdout.lines(), stderr.lines());
        let counts = |Summary { lines, errors, warnings }| Counts { lines, errors, warnings };
        self.summary = read.summary.map(counts);
    }
}
