//! The face of a coding assistant: runs a command with bash, in the foreground or in the background, and reports one
//! line for each field.

use std::path::PathBuf;
use std::time::Duration;

use mcpz_engine::{Command, Condition, End, Limit, Outcome, Position, Run, RunRequest};
use mcpz_output::{Measure, Room, Stream};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::answer::{Answer, answer, notices};
use super::ending::{Ending, MOST_PIDS, is_error, pids, remarks};
use super::error::{check_not_blank, why_not_run};
use super::excerpt::{Excerpt, Omission, excerpt, resource_link};
use super::handover::{JobHandle, PartialOutput};
use super::timeout::describe_timeout;
use super::{Call, FaceSettings};
use crate::budget::{size, size_of_text};
use crate::output_uri::OutputUri;
use crate::watcher::CallOutcome;

pub const DESCRIPTION: &str = "Runs a command with bash -c. Set is_background to true for processes \
    that keep running, such as servers and watchers (shown as [background]), and to false for commands that finish.";

/// What to do about a timeout.
const ON_TIMEOUT: &str = "set `is_background` for commands that take longer, or start the \
    server with a larger `--timeout`";

/// How long a background command must run so that the answer says it is running.
const AT_ONCE: Duration = Duration::from_millis(200);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Exact shell command to execute
    command: String,
    /// What it is for, shown to the user
    description: Option<String>,
    /// Directory to run it in, relative to the project root
    directory: Option<String>,
    /// Whether to run it in the background
    is_background: bool,
}

impl Params {
    fn request(&self, timeout: Duration) -> RunRequest {
        let shell = Some(PathBuf::from("bash"));
        // A trailing `&` would put it into the background twice: the shell would end at once, and the job with it.
        let stripped = self.command.trim_end().strip_suffix('&');
        let stripped = stripped.filter(|text| self.is_background && !text.ends_with(['&', '\\']));
        let text = stripped.unwrap_or(&self.command).to_owned();
        RunRequest {
            directory: self.directory.as_ref().map(PathBuf::from),
            timeout: Some(timeout),
            environment: vec![("QWEN_CODE".into(), "1".into())],
            description: description(self),
            ..RunRequest::new(Command::Script { text, shell })
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    command: String,
    directory: String,
    stdout: String,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Number of the signal that ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    background_pids: Vec<i32>,
    /// Job id of these processes, for stop_job
    #[serde(skip_serializing_if = "Option::is_none")]
    background_job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rss_bytes: Option<u64>,
    /// The limit it exceeded: oom_killed, pids_limit, cpu_limit or file_size_limit
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    /// Why the command looks dangerous, and what the sandbox refused
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<bool>,
    /// Further details
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    omission: Omission,
    #[serde(flatten)]
    job: Option<JobHandle>,
}

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    describe_timeout(tool, timeout)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    check_not_blank("command", &params.command)?;
    let relative = params.directory.clone().unwrap_or_default();
    let reply = Reply {
        command: call.echo(&params.command),
        directory: if relative.is_empty() { "(root)".into() } else { call.echo(&relative) },
        description: description(&params).map(|text| call.echo(&text)),
        ..Reply::default()
    };
    let request = params.request(call.default_timeout());
    if params.is_background {
        return background(&call, request, reply).await;
    }
    match call.run(request).await {
        Ok(CallOutcome::Ended(outcome)) => {
            reply.ended(&call, &outcome, is_error(outcome.end)).await
        }
        Ok(CallOutcome::HandedOver(job)) => {
            let room = reply.room(&call, false);
            Ok(reply.running(PartialOutput::read(&call, &job, room).await?))
        }
        Err(error) => Ok(reply.failed(&call, &why_not_run(&error))),
    }
}

/// Starts the command and answers while it runs.
async fn background(call: &Call<'_>, request: RunRequest, reply: Reply) -> Answer {
    let reserved = match call.engine.reserve_job(call.owner) {
        Ok(reserved) => reserved,
        Err(error) => return Ok(reply.failed(call, &error.chain())),
    };
    let mut run = match call.watcher.start(call.engine, call.owner, request.clone()).await {
        Ok(run) => run,
        Err(error) => return Ok(reply.failed(call, &why_not_run(&error))),
    };
    if run.started().await.is_none() {
        return match run.outcome().await {
            Ok(outcome) => reply.ended(call, &outcome, true).await,
            Err(error) => Ok(reply.failed(call, &why_not_run(&error))),
        };
    }
    let (omission, links) = follow(call, request, &run);
    let job = call.engine.hand_over(call.owner, run);
    drop(reserved);
    job.wait_for(&Condition::Exit, Position::default(), Instant::now() + AT_ONCE).await;
    if let Some(Ok(outcome)) = job.end().outcome {
        return reply.ended_at_once(call, &outcome).await;
    }
    let (handle, first) = (JobHandle::new(&job).await?, job.pid());
    let others =
        job.processes().await.into_iter().filter(|pid| Some(*pid) != first).take(MOST_PIDS);
    let background_pids = first.into_iter().chain(others).collect();
    let job = Some(handle);
    Ok(Reply { background_pids, job, omission, ..reply }.render(false, links))
}

/// Keeps what a background command prints, so that it can be read while it runs.
fn follow(call: &Call<'_>, request: RunRequest, run: &Run) -> (Omission, Vec<ContentBlock>) {
    let (id, output) = (run.id(), run.output());
    call.engine.keep_running(call.owner, run, request);
    let uri = |stream| OutputUri::new(id, stream).to_string();
    let has_stderr = call.watcher.streams.contains(&Stream::Stderr);
    let (stdout, stderr) = (uri(Stream::Stdout), has_stderr.then(|| uri(Stream::Stderr)));
    let stderr_link = stderr.as_ref().map(|uri| resource_link(uri, output, Stream::Stderr));
    let links = [Some(resource_link(&stdout, output, Stream::Stdout)), stderr_link];
    let omission =
        Omission { spill_uri: Some(stdout), stderr_spill_uri: stderr, ..Omission::default() };
    (omission, links.into_iter().flatten().collect())
}

fn description(params: &Params) -> Option<String> {
    match (&params.description, params.is_background) {
        (Some(text), true) if text.ends_with("[background]") => Some(text.clone()),
        (Some(text), true) => Some(format!("{text} [background]")),
        (None, true) => Some("[background]".into()),
        (text, false) => text.clone(),
    }
}

impl Reply {
    /// The answer for a command that ended.
    async fn ended(self, call: &Call<'_>, outcome: &Outcome, is_error: bool) -> Answer {
        let reply = self.ran(outcome);
        let excerpt = excerpt(call, outcome, reply.room(call, is_error)).await?;
        let notes = [notices(call, outcome), excerpt.notice(call).into_iter().collect()].concat();
        let Excerpt { stdout, stderr, omission, links, .. } = excerpt;
        Ok(Self { stdout, stderr, omission, ..reply }.render(is_error, [notes, links].concat()))
    }

    /// Room for output in an answer that says this.
    fn room(&self, call: &Call<'_>, is_error: bool) -> Room {
        let max_answer = call.faces.max_answer.of_both(is_error);
        let remainder = self.remainder().as_ref().map_or(0, size);
        let taken = size(self).max(size_of_text(&self.report()) + remainder);
        max_answer.room(taken, Measure::Quoted)
    }

    /// The report of a command that continues as a job. It has a note behind it, and is not an error.
    fn running(self, partial: PartialOutput) -> CallToolResult {
        let PartialOutput { job, stdout, stderr, message, elapsed, links, .. } = partial;
        let note = ContentBlock::text(format!("[{message}]"));
        let background_pids = job.pid.into_iter().collect();
        let (message, job) = (Some(message), Some(job));
        let duration_ms = Some(elapsed.as_millis() as u64);
        let reply = Self { stdout, stderr, background_pids, duration_ms, message, job, ..self };
        reply.render(false, [vec![note], links].concat())
    }

    /// The answer for a background command that ended at once.
    async fn ended_at_once(self, call: &Call<'_>, outcome: &Outcome) -> Answer {
        let error = match outcome.end {
            End::Exited(0) => None,
            End::Exited(code) => Some(format!("it exited immediately with code {code}")),
            end => Some(format!("it ended immediately: {}", Ending::from(end).text())),
        };
        let reply = Self { error, ..self };
        reply.ended(call, outcome, is_error(outcome.end)).await
    }

    /// Everything but the output.
    fn ran(self, outcome: &Outcome) -> Self {
        let ending = Ending::advising(outcome, ON_TIMEOUT);
        Self {
            error: self.error.or(ending.message),
            timed_out: ending.timed_out,
            exit_code: outcome.end.exit_code(),
            signal: match outcome.end {
                End::Signalled(signal) => Some(signal),
                _ => None,
            },
            background_pids: pids(outcome),
            background_job: outcome.job.clone(),
            duration_ms: Some(outcome.usage.wall.as_millis() as u64),
            cpu_ms: Some(outcome.usage.cpu.as_millis() as u64),
            max_rss_bytes: Some(outcome.usage.max_rss_bytes),
            limit: outcome.limit.map(Limit::name),
            lost_bytes: Some(outcome.output.lost()).filter(|lost| *lost > 0),
            warnings: Some(remarks(outcome)).filter(|remarks| !remarks.is_empty()),
            ..self
        }
    }

    fn failed(self, call: &Call<'_>, error: &str) -> CallToolResult {
        let error = call.faces.max_answer.of(true).shorten(&call.masked(error));
        Self { error: Some(error), ..self }.render(true, Vec::new())
    }

    /// One line for each field, in the order of the tool's document.
    fn report(&self) -> String {
        let or = |text: &str, otherwise: &str| match text.is_empty() {
            true => otherwise.to_owned(),
            false => text.to_owned(),
        };
        let number = |number: Option<i32>| number.map_or("(none)".to_owned(), |n| n.to_string());
        let pids: Vec<_> = self.background_pids.iter().map(ToString::to_string).collect();
        [
            format!("Command: {}", self.command),
            format!("Directory: {}", self.directory),
            format!("Stdout: {}", or(self.stdout.trim_end_matches('\n'), "(empty)")),
            format!("Stderr: {}", or(self.stderr.trim_end_matches('\n'), "(empty)")),
            format!("Error: {}", self.error.as_deref().unwrap_or("(none)")),
            format!("Exit Code: {}", number(self.exit_code)),
            format!("Signal: {}", number(self.signal)),
            format!("Background PIDs: {}", or(&pids.join(", "), "(none)")),
        ]
        .join("\n")
    }

    /// What the document has no line for: the purpose of the command, and its job.
    fn remainder(&self) -> Option<ContentBlock> {
        let description = self.description.iter().map(|text| format!("Description: {text}"));
        let job = self.job.iter().map(|job| format!("Job: {}", job.job_id));
        let lines: Vec<_> = description.chain(job).collect();
        (!lines.is_empty()).then(|| ContentBlock::text(lines.join("\n")))
    }

    fn render(self, is_error: bool, notes: Vec<ContentBlock>) -> CallToolResult {
        let report = ContentBlock::text(self.report());
        let blocks = [Some(report), self.remainder()].into_iter().flatten().chain(notes);
        answer(&self, blocks.collect(), is_error)
    }
}
