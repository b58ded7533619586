//! What the tools for jobs have in common: how a job is told of, read and waited for.

use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Condition, End, Job, MAX_TIMEOUT, Met, Outcome, Place, State, signal_name};
use mcpz_output::{Data, Error, Filter, Measure, PageRequest, Point, Reader, Room, Stream};
use mcpz_runtime::aside;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::deadline::timed_out;
use super::ending::{LOST, closed, remarks};
use super::error::{InvalidCursor, ToolError};
use crate::blocking::{BlockingError, run_blocking};
use crate::budget::{MaxAnswer, size_as_json};
use crate::kept::OutputUri;
use crate::memory::PAGE;

/// How long is waited if nothing else is said, in seconds.
const DEFAULT_WAIT: f64 = 30.0;

/// What is told when somebody has typed something at the job's terminal.
const BY_A_PERSON: &str = "[input by a person]";

/// What to do about a job that was ended at its deadline.
const LONGER: &str = "start it with a larger `timeout`, or with none";

/// How long a job is silent before it counts as quiet, if nothing else is said.
const DEFAULT_QUIET: u64 = 500;

/// More than a line takes that says how much of an output is missing.
const NOTICE: usize = 64;

// What may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    Exit,
    Output,
    Quiet,
    Text,
    Port,
}

/// How to wait, as part of a tool's arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct WaitParams {
    pub wait_for: Option<WaitFor>,
    /// Regex for the line to wait for
    pub pattern: Option<String>,
    pub port: Option<u16>,
    /// [default: 500]
    pub quiet_ms: Option<u64>,
    /// Seconds to wait [default: 30]
    pub timeout: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
enum InvalidWait {
    #[error("`timeout` must be more than 0 and at most a day")]
    Timeout,
    #[error("`{0}` is needed for this `wait_for`")]
    Missing(&'static str),
}

impl WaitParams {
    /// What to wait for, if anything, and how long.
    pub async fn condition(&self) -> Result<Option<(Condition, Duration)>, ToolError> {
        let seconds = self.timeout.unwrap_or(DEFAULT_WAIT);
        if !(seconds > 0.0 && seconds <= MAX_TIMEOUT.as_secs_f64()) {
            return Err(ToolError::arguments(InvalidWait::Timeout));
        }
        let missing = |name| ToolError::arguments(InvalidWait::Missing(name));
        let condition = match self.wait_for {
            None => return Ok(None),
            Some(WaitFor::Exit) => Condition::Exit,
            Some(WaitFor::Output) => Condition::Output,
            Some(WaitFor::Quiet) => {
                Condition::Quiet(Duration::from_millis(self.quiet_ms.unwrap_or(DEFAULT_QUIET)))
            }
            Some(WaitFor::Text) => {
                let pattern = self.pattern.clone().ok_or_else(|| missing("pattern"))?;
                // It can take a tenth of a second to compile.
                aside(move || Condition::text(&pattern)).await.map_err(BlockingError::Thread)??
            }
            Some(WaitFor::Port) => Condition::Port(self.port.ok_or_else(|| missing("port"))?),
        };
        Ok(Some((condition, Duration::from_secs_f64(seconds))))
    }
}

/// What is told of a job.
#[derive(Debug, Default, Serialize)]
pub struct Told {
    pub job_id: String,
    /// running, exited, stopped or lost
    pub state: String,
    /// What it printed since the cursor, or since the last answer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How much is before the last lines that are told, if more of them were wanted than fit
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// Pass it on to read what comes after this
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What it had too much of
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// The line that was waited for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// What was waited for did not happen in time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// How much of what it printed was more than is kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// What looked dangerous, and what the sandbox has refused
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(flatten)]
    pub look: Look,
}

/// What a program that asks shows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Look {
    // See `write_job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for_input: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    // What the terminal shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor_row: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor_column: Option<u16>,
}

impl Look {
    fn at(job: &Job, waits: bool, max_answer: MaxAnswer) -> Self {
        let screen = job.screen();
        Self {
            waiting_for_input: waits.then_some(true),
            prompt: waits.then(|| max_answer.echo(&job.prompt())),
            cursor_row: screen.as_ref().map(|screen| screen.row),
            cursor_column: screen.as_ref().map(|screen| screen.column),
            screen: screen.map(|screen| max_answer.most(&screen.text)),
        }
    }
}

impl Told {
    pub fn new(job: &Job) -> Self {
        let ended = job.end();
        let (job_id, state) = (job.id().to_owned(), job.state().name().to_owned());
        let lost_bytes = Some(job.output.lost()).filter(|lost| *lost > 0);
        let mut told = Self { job_id, state, lost_bytes, ..Self::default() };
        match ended.outcome {
            Some(Ok(outcome)) => told.ended(&outcome),
            Some(Err(text)) => told.message = Some(text),
            None => {}
        }
        if job.is_detached() && job.state() == State::Lost {
            told.message = Some(KEPT_BY_NOBODY.to_owned());
        }
        if let Some(time) = job.expired() {
            told.message = Some(ended_unused(time));
        }
        told
    }

    fn ended(&mut self, outcome: &Outcome) {
        self.warnings = remarks(outcome);
        match outcome.end {
            End::Exited(code) => self.exit_code = Some(code),
            End::Signalled(signal) => self.signal = Some(signal_name(signal)),
            End::TimedOut { after } => {
                self.message = Some(format!("{}; {LONGER}", timed_out(after)));
            }
            End::Cancelled => self.message = Some("cancelled".to_owned()),
            End::Lost => self.message = Some(LOST.to_owned()),
            End::Closed(why) => self.message = Some(closed(why).to_owned()),
        }
        if let Some(limit) = outcome.limit {
            (self.limit, self.message) = (Some(limit.name()), Some(limit.to_string()));
        }
    }
}

/// What is said of a detached job that nobody keeps any more. It ends then, unless all of ours above it were killed
/// at once.
const KEPT_BY_NOBODY: &str = "what kept this job was killed, or the machine was restarted; `ps` shows whether \
    anything of it still runs";

/// What is said of something that was ended because nobody used it.
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

/// A place as clients are given it: `bytes:N`, or `bytes:N+M` where stderr is apart. In a line that has
/// no end yet, it says what was told of that as well: `bytes:N~LENGTH.PRINT`.
pub fn cursor(place: Place) -> String {
    let point = |point: Point| match point {
        Point { offset, line: 0, .. } => offset.to_string(),
        Point { offset, line, print } => format!("{offset}~{line}.{print:x}"),
    };
    let Place { stdout, stderr } = place;
    match stderr.offset {
        0 => format!("bytes:{}", point(stdout)),
        _ => format!("bytes:{}+{}", point(stdout), point(stderr)),
    }
}

pub fn parse_cursor(text: &str) -> Result<Place, ToolError> {
    let point = |text: &str| {
        let Some((offset, told)) = text.split_once('~') else {
            return Some(Point::at(text.parse().ok()?));
        };
        let (line, print) = told.split_once('.')?;
        let print = u64::from_str_radix(print, 16).ok()?;
        Some(Point { offset: offset.parse().ok()?, line: line.parse().ok()?, print })
    };
    let place = text.strip_prefix("bytes:").and_then(|rest| {
        let (stdout, stderr) = rest.split_once('+').unwrap_or((rest, "0"));
        Some(Place { stdout: point(stdout)?, stderr: point(stderr)? })
    });
    place.ok_or_else(|| ToolError::failed(InvalidCursor(text.to_owned())))
}

/// Which part of a job's output is wanted.
#[derive(Debug)]
pub struct Wanted {
    pub from: Place,
    /// Only the last lines.
    pub tail: Option<usize>,
    /// At most so many bytes, if that was asked for.
    pub limit: Option<usize>,
    pub grep: Option<String>,
    /// How long the answer may be otherwise, and what others than this job have of it.
    pub max_answer: MaxAnswer,
    pub taken: usize,
}

impl Wanted {
    /// Everything, as far as it fits into one answer.
    pub fn new(call: &Call<'_>) -> Self {
        let (from, max_answer) = (Place::default(), call.faces.max_answer);
        Self { from, tail: None, limit: None, grep: None, max_answer, taken: 0 }
    }
}

/// What a job printed.
pub struct Printed {
    pub text: String,
    /// Where to read on.
    pub next: Place,
    /// How much is before the last lines, if more of them were wanted than fit.
    pub omitted: u64,
}

/// What a job printed to some of its streams, and where to read on.
pub async fn read(
    call: &Call<'_>,
    job: &Job,
    streams: &'static [Stream],
    wanted: Wanted,
    room: Room,
) -> Result<Printed, ToolError> {
    let (output, view) = (job.output.clone(), job.view());
    call.watcher.wait_for_room(PAGE).await;
    let read = run_blocking(&call.watcher.cancelled, move |stop| {
        let filter = Filter::new(wanted.grep.as_deref(), None)?;
        let mut printed = Printed { text: String::new(), next: wanted.from, omitted: 0 };
        let mut left = room;
        for stream in streams {
            let reader = Reader::new(output.clone(), *stream, view).until(stop.clone()).live();
            let place = match stream {
                Stream::Stdout => &mut printed.next.stdout,
                Stream::Stderr => &mut printed.next.stderr,
            };
            let (page, omitted) = match wanted.tail {
                Some(tail) => last_lines(&reader, &filter, tail, left, place)?,
                None if left.size == 0 => break,
                None => {
                    let (page, told) = reader.read_on(&filter, *place, left)?;
                    *place = told;
                    (shown(page.data), 0)
                }
            };
            left = left.less(left.measure.of(&page));
            printed.text.push_str(&page);
            printed.omitted += omitted;
        }
        Ok(printed)
    });
    Ok(read.await?)
}

fn shown(data: Data) -> String {
    match data {
        Data::Text(text) => text,
        Data::Binary(bytes) => format!("[{} bytes, not shown]", bytes.len()),
    }
}

/// The last lines that are wanted and fit, and how much is before them, if those are fewer. What is
/// newest is wanted: what does not fit is cut off in front.
fn last_lines(
    reader: &Reader,
    filter: &Filter,
    tail: usize,
    room: Room,
    place: &mut Point,
) -> Result<(String, u64), Error> {
    let length = filter.page(reader, PageRequest::bytes(u64::MAX, 1))?.total;
    if room.size == 0 {
        return Ok((String::new(), length));
    }
    // A character more than fits shows whether what fits begins with a line.
    let size = room.size + 4;
    let from = match filter {
        Filter::Everything => reader.last(size as u64).map_err(Error::Read)?,
        _ => length.saturating_sub(size as u64),
    };
    let (page, told) = reader.read_on(filter, Point::at(from), Room::bytes(size + NOTICE))?;
    *place = told;
    if tail == 0 {
        return Ok((String::new(), 0));
    }
    let text = shown(page.data);
    let ends = text.rmatch_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < text.len());
    let wanted = ends.take(tail).nth(tail - 1);
    let last = &text[wanted.unwrap_or(0)..];
    let last = match room.end(last) {
        0 => last,
        cut if last.as_bytes()[cut - 1] == b'\n' => &last[cut..],
        cut => {
            let lines = last[cut..].split_once('\n').map(|(_, lines)| lines);
            lines.filter(|lines| !lines.is_empty()).unwrap_or(&last[cut..])
        }
    };
    let before = text.len() - last.len();
    let all = wanted == Some(before) || (wanted.is_none() && page.start == 0 && before == 0);
    Ok((last.to_owned(), if all { 0 } else { page.start + before as u64 }))
}

#[derive(Debug, thiserror::Error)]
#[error("there is no job {0}")]
struct NoJob(String);

/// The job of this name, if it is the caller's.
pub async fn find(call: &Call<'_>, id: &str) -> Result<Arc<Job>, ToolError> {
    let job = call.engine.job(call.owner, id).await;
    job.ok_or_else(|| ToolError::failed(NoJob(id.to_owned())))
}

/// The resource a job's output is, as long as it is kept.
pub fn output_uri(call: &Call<'_>, job: &Job) -> Option<String> {
    call.owner.find(&job.run)?;
    Some(OutputUri::new(&job.run, Stream::Stdout).to_string())
}

/// What is told of a job after it was waited for, with what it printed.
pub async fn tell(
    call: &Call<'_>,
    job: &Arc<Job>,
    wanted: Wanted,
    met: Option<Met>,
) -> Result<Told, ToolError> {
    // Before the output: of a job that is told to have ended, nothing is left out.
    let mut told = Told::new(job);
    let (looked, max_answer) = (job.clone(), wanted.max_answer);
    let waits = job.waits_for_input().await;
    let look = move |_| Ok(Look::at(&looked, waits, max_answer));
    told.look = run_blocking(&call.watcher.cancelled, look).await?;
    if job.news_of_person() {
        let before = told.message.map(|message| format!("{message}; ")).unwrap_or_default();
        told.message = Some(format!("{before}{BY_A_PERSON}"));
    }
    match met {
        Some(Met::Yes(line)) => told.matched = line.map(|line| max_answer.echo(&line)),
        Some(Met::TimedOut) => told.timed_out = Some(true),
        Some(Met::Ended | Met::Asked) | None => {}
    }
    let room = match wanted.limit {
        Some(limit) => Room::bytes(limit),
        None => max_answer.left(wanted.taken + size_as_json(&told), Measure::QuotedTwice),
    };
    let filtered = wanted.grep.is_some();
    let Printed { text, next, omitted } =
        read(call, job, call.watcher.streams, wanted, room).await?;
    // A place among the lines that match is not one in the output.
    if !filtered {
        job.note_told(next);
    }
    told.output = Some(text);
    told.omitted_bytes = Some(omitted).filter(|omitted| *omitted > 0);
    told.next_cursor = Some(cursor(next));
    Ok(told)
}
