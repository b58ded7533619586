//! The face for large outputs: runs a command and answers with the first page of what it printed.
//!
//! A cursor never starts a command: it reads on in the output of a run that was. `bytes:0` without
//! a run is no place to read on from, but the beginning, as in the document's own example.

use std::collections::BTreeMap;

use mcpz_engine::{
    Command, Data, End, Error, Filter, Found, Output, Page, PageRequest, Reader, RunRequest, Stop,
    Stream, Summary, View, mime, random_name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{
    Answer, Complaint, Effect, Ending, IN_PARTS, Used, answer, define, is_error, json, off_thread,
    refusal, resource_link,
};
use crate::kept::{Cursor, OutputUri};

pub const NAME: &str = "shell_exec";

const DESCRIPTION: &str = "Executes shell commands in a controlled environment. Supports \
    pagination via limit_bytes and next_cursor. Automatically spills large outputs to file with \
    spill_uri.";

/// How much of the beginning and of the end is shown of an output that does not fit.
const PREVIEW: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
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
    /// Only lines that match this regex
    grep: Option<String>,
    /// Only what this JMESPath finds in JSON output
    json_path: Option<String>,
    /// Compress the spill with gzip
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
pub struct PageParams {
    /// next_cursor of the page before
    pub cursor: Option<String>,
    /// [default: 65536]
    #[schemars(range(min = 1, max = 262_144))]
    pub limit_bytes: Option<usize>,
    /// [default: 2000]
    #[schemars(range(min = 1))]
    pub limit_lines: Option<usize>,
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

impl PageParams {
    pub const DEFAULT_BYTES: usize = 65_536;
    pub const MAX_BYTES: usize = 1 << 18;
    const DEFAULT_LINES: usize = 2000;

    /// What to read, from an offset on, or what is wrong with the limits.
    pub fn request(&self, offset: u64) -> Result<PageRequest, Complaint> {
        let limit_bytes = self.limit_bytes.unwrap_or(Self::DEFAULT_BYTES);
        let limit_lines = self.limit_lines.unwrap_or(Self::DEFAULT_LINES);
        if !(1..=Self::MAX_BYTES).contains(&limit_bytes) {
            let max = Self::MAX_BYTES;
            let text = format!("`limit_bytes` must be from 1 to {max}, not {limit_bytes}");
            return Err(Complaint(text));
        }
        if limit_lines == 0 {
            return Err(Complaint("`limit_lines` must be at least 1".into()));
        }
        Ok(PageRequest { offset, limit_bytes, limit_lines })
    }

    /// The place to begin at.
    pub fn cursor(&self) -> Result<Cursor, Complaint> {
        match &self.cursor {
            None => Ok(Cursor::default()),
            Some(text) => text.parse().map_err(|_| {
                Complaint(format!("`{text}` is not a cursor: pass next_cursor on as it was given"))
            }),
        }
    }
}

impl Params {
    fn view(&self) -> View {
        let newline = match self.newline {
            Newline::Lf => mcpz_engine::Newline::Lf,
            Newline::CrLf => mcpz_engine::Newline::CrLf,
        };
        View { ansi_strip: self.ansi_strip.unwrap_or(true), newline }
    }
}

impl From<&Params> for RunRequest {
    fn from(params: &Params) -> Self {
        let command = match &params.args {
            None => Command::Script { text: params.cmd.clone(), shell: None },
            Some(args) => Command::Argv([std::slice::from_ref(&params.cmd), args].concat()),
        };
        Self {
            directory: params.cwd.as_ref().map(Into::into),
            environment: params.env.clone().unwrap_or_default().into_iter().collect(),
            ..Self::new(command)
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Reply {
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
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    lines: u64,
    errors: u64,
    warnings: u64,
}

pub fn definition() -> rmcp::model::Tool {
    define::<Params, Reply>(NAME, DESCRIPTION, Effect::Runs)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let page = params.page.clone().unwrap_or_default();
    let cursor = page.cursor()?;
    let wanted = page.request(cursor.offset)?;
    let filter = Filter::new(params.grep.as_deref(), params.json_path.as_deref())?;
    let request = RunRequest::from(&params);
    let started = cursor.id.is_none() && cursor.offset == 0;
    let (id, found) = match (&cursor.id, cursor.offset) {
        (None, 0) => {
            let ran = call.watcher.run_followed(call.engine, call.owner, request.clone()).await;
            let (id, outcome) = ran.map_err(|error| Complaint(refusal(&error)))?;
            (id, Found { output: outcome.output.clone(), outcome: Some(outcome) })
        }
        (None, _) => call.owner.find_newest(&request).ok_or_else(gone)?,
        (Some(id), _) => (id.clone(), call.owner.find(id).ok_or_else(gone)?),
    };
    let first = cursor.offset == 0;
    let output = found.output.clone();
    let reading = Reading {
        output: output.clone(),
        wanted,
        filter,
        view: params.view(),
        first,
        stderr: call.watcher.streams.contains(&Stream::Stderr),
        summary: params.summary,
    };
    let read = off_thread(&call.watcher.cancelled, move |stop| reading.read(stop)).await?;
    let mut reply = Reply::new(&found, &read);
    if read.stdout.in_parts {
        reply.ending.message = Some(IN_PARTS.to_owned());
    }
    let over = read.is_over();
    let mut links = Vec::new();
    if params.on_large_output == OnLargeOutput::Spill && (read.is_more() || !started) {
        let cursor = |offset| Cursor { offset, id: Some(id.clone()) }.to_string();
        reply.next_cursor = read.stdout.next().map(cursor);
        let (uri, spilled) = match params.zip && first {
            true => zipped(&call, &found).await?,
            false => (OutputUri::new(&id, Stream::Stdout).to_string(), output.clone()),
        };
        links.push(resource_link(&uri, &spilled, Stream::Stdout));
        reply.spill_uri = Some(uri);
        if read.stderr.next().is_some() {
            let uri = OutputUri::new(&id, Stream::Stderr).to_string();
            links.push(resource_link(&uri, &output, Stream::Stderr));
            reply.stderr_spill_uri = Some(uri);
        }
        if let Some((head, tail)) = read.previews {
            (reply.head_preview, reply.tail_preview) = (Some(head), Some(tail));
        }
    } else {
        reply.truncated = over;
        let cancelled = found.outcome.as_ref().is_some_and(|outcome| outcome.end == End::Cancelled);
        // What this call has not told, and will not tell, can still be read.
        if started && !cancelled {
            call.owner.forget(&id);
        }
        if over && params.on_large_output == OnLargeOutput::Error {
            let (total, bytes, lines) = (read.whole, wanted.limit_bytes, wanted.limit_lines);
            let limit = format!("the limit of {bytes} bytes and {lines} lines");
            return Err(Complaint(format!("the output of {total} bytes is over {limit}")));
        }
    }
    let failed = found.outcome.is_some_and(|outcome| is_error(outcome.end));
    Ok(answer(&reply, [vec![json(&reply)], links].concat(), failed))
}

/// Keeps a compressed form of what was printed and returns its name.
async fn zipped(call: &Call<'_>, found: &Found) -> Result<(String, Output), Complaint> {
    let (source, target) = (found.output.clone(), call.owner.new_output(None));
    let zipped = target.clone();
    off_thread(&call.watcher.cancelled, move |stop| {
        mcpz_engine::zip(&source, Stream::Stdout, &zipped, &stop).map_err(Error::Read)
    })
    .await?;
    let id = random_name().map_err(Error::Read)?;
    call.owner.follow(&id, None, target.clone());
    Ok((OutputUri::new(&id, Stream::Stdout).to_string(), target))
}

fn gone() -> Complaint {
    let text = "there is no kept output for this cursor; run the command again without one";
    Complaint(text.into())
}

/// What is to be read of a run.
struct Reading {
    output: Output,
    wanted: PageRequest,
    filter: Filter,
    view: View,
    first: bool,
    stderr: bool,
    summary: bool,
}

struct Read {
    stdout: Page,
    stderr: Page,
    /// Bytes of stdout before any filter.
    whole: u64,
    mime: &'static str,
    /// The beginning and the end, with the first page.
    previews: Option<(String, String)>,
    summary: Option<Summary>,
    /// Why there is no filter's result: the command ran, so the rest is told all the same.
    problem: Option<String>,
}

impl Reading {
    fn read(self, stop: Stop) -> Result<Read, Error> {
        let reader = Reader::new(self.output.clone(), Stream::Stdout, self.view).until(stop);
        let whole = reader.length().map_err(Error::Read)?;
        let (stdout, problem) = match self.filter.page(&reader, self.wanted) {
            Ok(page) => (page, None),
            Err(error) => (reader.page(self.wanted).map_err(Error::Read)?, Some(error.chain())),
        };
        let preview = |offset| {
            let limits = PageRequest { offset, limit_bytes: PREVIEW, limit_lines: usize::MAX };
            reader.page(limits).map_err(Error::Read).map(|page| shown(&page, ""))
        };
        let previews = match self.first {
            true => Some((preview(0)?, preview(whole.saturating_sub(PREVIEW as u64))?)),
            false => None,
        };
        Ok(Read {
            stderr: self.stderr_page(stdout.end - stdout.start)?,
            previews,
            summary: self.summary.then(|| reader.summary()).transpose().map_err(Error::Read)?,
            mime: mime(&self.output, Stream::Stdout),
            whole,
            stdout,
            problem,
        })
    }

    /// The beginning of stderr, with the first page: what stdout has left of the limit, or a
    /// quarter of it, so that both together stay small.
    fn stderr_page(&self, stdout: u64) -> Result<Page, Error> {
        let limit = self.wanted.limit_bytes;
        let limit_bytes = limit.saturating_sub(stdout as usize).max(limit / 4).max(1);
        let offset = if self.first && self.stderr { 0 } else { u64::MAX };
        let wanted = PageRequest { offset, limit_bytes, ..self.wanted };
        let reader = Reader::new(self.output.clone(), Stream::Stderr, self.view);
        reader.page(wanted).map_err(Error::Read)
    }
}

impl Read {
    /// Whether there is more than fits into a page.
    fn is_over(&self) -> bool {
        let beyond = |page: &Page| page.end < page.total;
        beyond(&self.stdout) || (self.previews.is_some() && beyond(&self.stderr))
    }

    /// Whether there is more to read than the answer tells.
    fn is_more(&self) -> bool {
        let binary = |page: &Page| matches!(page.data, Data::Binary(_));
        let running = self.stdout.running || self.stderr.running;
        let filtered = self.whole > self.stdout.total;
        self.is_over() || running || filtered || binary(&self.stdout) || binary(&self.stderr)
    }
}

/// The text of a page; bytes that are no text are announced.
fn shown(page: &Page, mime: &str) -> String {
    match &page.data {
        Data::Text(text) => text.clone(),
        Data::Binary(_) if mime.is_empty() => String::new(),
        Data::Binary(_) => {
            format!("[{} bytes of {mime}: read them with read_file_chunk]", page.total)
        }
    }
}

impl Reply {
    fn new(found: &Found, read: &Read) -> Self {
        let Read { stdout, stderr, summary, .. } = read;
        let end = found.outcome.as_ref().map(|outcome| outcome.end);
        let mut ending = match &found.outcome {
            Some(outcome) => Ending::from(outcome),
            None => Ending::said("the command is still running"),
        };
        ending.message = ending.message.or_else(|| read.problem.clone());
        Self {
            exit_code: end.and_then(End::exit_code),
            ending,
            stdout_chunk: shown(stdout, read.mime),
            stderr_chunk: shown(stderr, "application/octet-stream"),
            bytes_start: stdout.start,
            bytes_end: (stdout.end > stdout.start).then(|| stdout.end - 1),
            total_bytes: stdout.total,
            mime: read.mime.to_owned(),
            line_count: stdout.lines(),
            stderr_count: stderr.lines(),
            summary: summary.map(|Summary { lines, errors, warnings }| Counts {
                lines,
                errors,
                warnings,
            }),
            used: found.outcome.as_ref().map(Used::from),
            ..Self::default()
        }
    }
}
