//! The face for large outputs: runs a command and answers with the first page of what it printed.
//!
//! A cursor never starts a command: it continues in the output of an earlier run. `bytes:N@exec-ID` names the run; a
//! plain `bytes:N` means the newest run of the same request. Only a plain `bytes:0` begins a new run, as in the example
//! of the tool's document.

mod page;
mod reply;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Command, RunRequest};
use mcpz_output::{Measure, PageRequest, Rendering, Room, Stream};
use rmcp::model::{ContentBlock, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{Answer, answer, answer_as_json};
use super::error::ToolError;
use super::paging::{check_limit, filter, parse_cursor, read_page};
use super::timeout::describe_timeout;
use super::{Call, FaceSettings};
use crate::budget::{MaxAnswer, size_as_json};
use crate::output_uri::Cursor;
use page::{PageQuery, RunPage};
use source::Source;

pub use reply::Reply;

pub const DESCRIPTION: &str = "Executes shell commands in a controlled environment. Supports \
    pagination via limit_bytes and next_cursor. Automatically spills large outputs to file with \
    spill_uri.";

/// The most characters of an answer beside chunks, previews and how the command ended: numbers, counts, the kind of
/// output, and the notice that it is binary.
const FRAME: usize = 800;

/// Two previews, and what went wrong with a filter.
const PREVIEWS: usize = 3;

/// How much a page has if the call does not say.
const DEFAULT_BYTES: usize = 65_536;
const DEFAULT_LINES: usize = 2000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Program; without args, a shell command
    cmd: String,
    /// Arguments, passed without a shell
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
    /// next_cursor of the previous page
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

/// How much a page may have.
struct Limits {
    /// What the call asks for, if it does.
    bytes: Option<usize>,
    lines: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("`limit_lines` must be at least 1")]
struct NoLines;

impl PageParams {
    fn limits(&self) -> Result<Limits, ToolError> {
        let lines = self.limit_lines.unwrap_or(DEFAULT_LINES);
        if lines == 0 {
            return Err(ToolError::arguments(NoLines));
        }
        let bytes = self.limit_bytes.map(check_limit).transpose()?;
        Ok(Limits { bytes, lines })
    }
}

impl Limits {
    /// Room for output in an answer that says how the command ended. An error is short even if nobody has set how
    /// long answers may be.
    fn room(&self, max_answer: MaxAnswer, reply: &Reply, failed: bool) -> Room {
        match self.bytes {
            None if max_answer.is_chosen() || failed => {
                let taken = size_as_json(reply) + FRAME + PREVIEWS * max_answer.preview().size;
                max_answer.room(taken, Measure::QuotedTwice)
            }
            bytes => Room::bytes(bytes.unwrap_or(DEFAULT_BYTES)),
        }
    }
}

impl Params {
    fn rendering(&self) -> Rendering {
        let newline = match self.newline {
            Newline::Lf => mcpz_output::Newline::Lf,
            Newline::CrLf => mcpz_output::Newline::CrLf,
        };
        Rendering { ansi_strip: self.ansi_strip.unwrap_or(true), newline, ..Rendering::default() }
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

pub fn adapt(tool: Tool, timeout: Duration, _: &FaceSettings) -> Tool {
    describe_timeout(tool, timeout)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let page = params.page.clone().unwrap_or_default();
    let cursor = parse_cursor(page.cursor.as_deref())?;
    let limits = page.limits()?;
    let (grep, json_path) = (params.grep.as_deref(), params.json_path.as_deref());
    let filter = filter(&call.watcher.cancelled, grep, json_path).await?;
    let begins = cursor == Cursor::default();
    let mut source = match begins {
        true => Source::run(&call, &params).await?,
        false => Source::find(&call, &params, &cursor).await?,
    };
    let mut reply = Reply::new(&call, &source).await?;
    let (ended, failed) = (source.has_ended(), source.has_failed());
    let max_answer = call.faces.max_answer.of(failed);
    let room = limits.room(max_answer, &reply, failed);
    let wanted = PageRequest { offset: cursor.offset, room, limit_lines: limits.lines };
    let query = PageQuery {
        output: source.found.output.clone(),
        wanted,
        preview: max_answer.preview(),
        filter: Arc::new(filter),
        ended,
        rendering: params.rendering(),
        is_first: cursor.offset == 0 && cursor.stderr == 0,
        // A cursor that a client made up says nothing of stderr.
        stderr: match cursor.id.is_some() || begins {
            true => cursor.stderr,
            false => u64::MAX,
        },
        has_stderr: call.watcher.streams.contains(&Stream::Stderr),
        summary: params.summary,
    };
    let may_get_more = |page: &RunPage| !begins && page.is_pending(ended);
    let (cancelled, output) = (&call.watcher.cancelled, &source.found.output);
    let page = read_page(cancelled, output, move |stop| query.read(stop), may_get_more).await?;
    if !ended && source.learn_end().await {
        reply = Reply::ended(&source.found);
    }
    reply.add_page(&page);
    let (over, mode) = (page.is_over(), params.on_large_output);
    let cuts = mode != OnLargeOutput::Spill && !source.became_job;
    reply.truncated = cuts && over;
    // Binary output is only announced, so it must stay readable.
    let announced = page.is_binary() && !(over && mode == OnLargeOutput::Error);
    if (!cuts || announced) && (page.has_more() || !begins) {
        let links = reply.point_to_rest(&call, params.zip, &source, page).await?;
        return Ok(answer_as_json(&reply, links, failed));
    }
    // A cancelled call is not answered, so its output must stay readable.
    if begins && !source.was_cancelled() {
        call.owner.forget(&source.id);
    }
    if over && mode == OnLargeOutput::Error {
        let reply =
            reply.without_output(format!("{}; {}", page.excess(wanted), source.how_it_ended()));
        let text = reply.ending.message.clone().unwrap_or_default();
        return Ok(answer(&reply, vec![ContentBlock::text(text)], true));
    }
    Ok(answer_as_json(&reply, Vec::new(), failed))
}
