//! What the tools for jobs have in common: how they find a job, wait for it, read it and report on it.

mod cursor;
mod output;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::signal_name;
use mcpz_engine::{End, Job, JobState, Met, Outcome, Position};
use mcpz_extract::Kind;
use mcpz_output::{Measure, Room, Stream};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use cursor::parse_cursor;
pub use output::{JobOutput, OutputRequest, read_output};
pub use wait::WaitParams;

use super::Call;
use super::answer::joined;
use super::changes;
use super::ending::{LOST, MOST_PIDS, remarks, shortened, why_closed};
use super::error::ToolError;
use super::extract::{Findings, Printed, find};
use super::timeout::timed_out;
use super::view::{Rest, ViewName, describe};
use crate::blocking::run_blocking;
use crate::budget::{MaxAnswer, size_as_json};
use crate::output_uri::OutputUri;
use cursor::write_cursor;

/// What a report says when somebody has typed at the job's terminal.
const BY_A_PERSON: &str = "[input by a person]";

/// What to do about a job that ran into its timeout.
const ON_TIMEOUT: &str = "start it with a larger `timeout`, or with none";

/// What a report says of a detached job whose recorder is gone. The job ends then, unless everything above it was
/// killed at once.
const RECORDER_GONE: &str = "the job's supervisor was killed, or the machine restarted; check \
    with `ps` whether any of its processes still run";

/// The state of a job and what it printed, as an answer. It is in no schema, so doc comments are just that.
#[derive(Debug, Default, Serialize)]
pub struct JobReport {
    pub job_id: String,
    /// running, exited, stopped or lost
    pub state: String,
    /// What it printed since the cursor, or since the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Bytes before the last lines, if fewer of them fit than the call wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// Where the next answer continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The limit it exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// What the command left running, if it has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background_pids: Vec<i32>,
    /// The line that the call waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// What the call waited for did not happen in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// Bytes that could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// What looked dangerous, and what the sandbox refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was found in the output, if the call asks for something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extracted: Option<Value>,
    #[serde(flatten)]
    pub terminal: TerminalView,
}

/// What is found in all that a job has printed.
async fn extracted(
    call: &Call<'_>,
    job: &Job,
    (kind, path): (Kind, Option<String>),
    room: usize,
) -> Result<Findings, ToolError> {
    let outcome = job.end().outcome.and_then(Result::ok);
    let printed = Printed::new(job.output.clone(), job.rendering()).of(outcome.as_ref());
    let printed = Printed { command: Some(job.command.clone()), ..printed };
    find(call, printed, (kind, Stream::Stdout), path, room).await
}

/// What an interactive program shows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TerminalView {
    // `write_job` answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for_input: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor_row: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor_column: Option<u16>,
}

impl TerminalView {
    /// May wait for the disk.
    fn new(job: &Job, waits: bool, max_answer: MaxAnswer) -> Self {
        let screen = job.screen();
        Self {
            waiting_for_input: waits.then_some(true),
            prompt: waits.then(|| max_answer.echo(&job.prompt())),
            cursor_row: screen.as_ref().map(|screen| screen.row),
            cursor_column: screen.as_ref().map(|screen| screen.column),
            screen: screen.map(|screen| max_answer.shorten(&screen.text)),
        }
    }
}

impl JobReport {
    /// Adds to what the report says in words.
    pub fn add_note(&mut self, note: String) {
        self.message = joined(self.message.take().into_iter().chain([note]));
    }

    fn add_findings(&mut self, findings: Findings) {
        findings.message.into_iter().for_each(|note| self.add_note(note));
        self.output = Some(findings.tail);
        self.extracted = findings.value;
    }

    /// The state of a job, without output and terminal.
    pub fn new(job: &Job) -> Self {
        let ended = job.end();
        let (job_id, state) = (job.id().to_owned(), job.state().name().to_owned());
        let lost_bytes = Some(job.output.lost()).filter(|lost| *lost > 0);
        let mut report = Self { job_id, state, lost_bytes, ..Self::default() };
        match ended.outcome {
            Some(Ok(outcome)) => report.add_end(&outcome),
            Some(Err(error)) => report.message = Some(error.chain()),
            None => report.warnings = shortened(job.remarks()),
        }
        if job.is_detached() && job.state() == JobState::Lost {
            report.message = Some(RECORDER_GONE.to_owned());
        }
        if let Some(time) = job.expired() {
            report.message = Some(ended_unused(time));
        }
        report
    }

    fn add_end(&mut self, outcome: &Outcome) {
        self.warnings = remarks(outcome);
        match outcome.end {
            End::Exited(code) => self.exit_code = Some(code),
            End::Signalled(signal) => self.signal = Some(signal_name(signal)),
            End::TimedOut { after } => {
                self.message = Some(format!("{}; {ON_TIMEOUT}", timed_out(after)));
            }
            End::Cancelled => self.message = Some("cancelled".to_owned()),
            End::Lost => self.message = Some(LOST.to_owned()),
            End::Closed(why) => self.message = Some(why_closed(why).to_owned()),
        }
        if let Some(limit) = outcome.limit {
            (self.limit, self.message) = (Some(limit.name()), Some(limit.to_string()));
        }
    }
}

/// What an answer says of a job or session that ended because nobody used it.
pub fn ended_unused(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, unit) = match seconds {
        _ if seconds.is_multiple_of(3600) => (seconds / 3600, "hour"),
        _ if seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("ended after {number} {unit}{plural} without use")
}

#[derive(Debug, thiserror::Error)]
#[error("there is no job {0}")]
struct NoJob(String);

/// The job of this id, if it belongs to the caller.
pub async fn find_job(call: &Call<'_>, id: &str) -> Result<Arc<Job>, ToolError> {
    let job = call.engine.job(call.owner, id).await;
    job.ok_or_else(|| ToolError::failed(NoJob(id.to_owned())))
}

/// The URI of a job's output, for as long as that is kept.
pub fn output_uri(call: &Call<'_>, job: &Job) -> Option<String> {
    call.owner.find(&job.run)?;
    Some(OutputUri::new(&job.run, Stream::Stdout).to_string())
}

/// Reports on a job, with what it printed and what the call waited for.
pub async fn report(
    call: &Call<'_>,
    job: &Arc<Job>,
    request: OutputRequest,
    met: Option<Met>,
) -> Result<JobReport, ToolError> {
    // JobState first, output second: an answer that says a job has ended must not miss any of its output.
    let mut report = JobReport::new(job);
    let (viewed, max_answer) = (job.clone(), request.max_answer);
    let settings = call.engine.settings();
    if settings.lock && settings.policy.restricts() {
        report.warnings.extend(shortened(job.refusals().await));
    }
    if job.is_left_running() {
        report.background_pids = job.processes().await.into_iter().take(MOST_PIDS).collect();
    }
    let waits = job.waits_for_input().await;
    let view = move |_| Ok(TerminalView::new(&viewed, waits, max_answer));
    report.terminal = run_blocking(&call.watcher.cancelled, view).await?;
    if job.news_of_person() {
        let before = report.message.map(|message| format!("{message}; ")).unwrap_or_default();
        report.message = Some(format!("{before}{BY_A_PERSON}"));
    }
    match met {
        Some(Met::Yes(line)) => report.matched = line.map(|line| max_answer.echo(&line)),
        Some(Met::TimedOut) => report.timed_out = Some(true),
        Some(Met::Ended | Met::Asked) | None => {}
    }
    let room = match request.limit {
        Some(limit) => Room::bytes(limit),
        None => max_answer.room(request.taken + size_as_json(&report), Measure::QuotedTwice),
    };
    if let Some(kind) = request.extract {
        let wanted = (kind, request.json_path);
        report.add_findings(extracted(call, job, wanted, room.size / 2).await?);
        return Ok(report);
    }
    let filtered = request.grep.is_some();
    let (mut request, mut seen) = (request, None);
    if request.view == ViewName::Changes {
        let seen_now = changes::of_job(call, job, room).await?;
        if let Some(text) = seen_now.text {
            report.add_note(seen_now.message);
            report.output = Some(text);
            return Ok(report);
        }
        request.from = Position::default();
        seen = Some(seen_now.message);
    }
    let JobOutput { text, next, omitted, left_out } =
        read_output(call, job, call.watcher.streams, request, room).await?;
    // A place among matching lines is not a place in the output.
    if !filtered {
        job.note_told(next);
    }
    seen.into_iter()
        .chain(left_out.and_then(|it| describe(it, Rest::WithoutView)))
        .for_each(|note| report.add_note(note));
    report.output = Some(text);
    report.omitted_bytes = Some(omitted).filter(|omitted| *omitted > 0);
    report.next_cursor = Some(write_cursor(next));
    Ok(report)
}
