//! What `shell_exec` answers.

use mcpz_engine::KeptOutput;
use mcpz_output::{Stream, Summary};
use rmcp::model::ContentBlock;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::Call;
use super::super::answer::IN_PARTS;
use super::super::ending::{Ending, RunReport};
use super::super::error::ToolError;
use super::super::excerpt::resource_link;
use super::super::handover::{JobHandle, how_to_continue};
use super::page::{RunPage, is_binary, text_of};
use super::source::Source;
use crate::output_uri::{Cursor, OutputUri};

/// What to do about a timeout.
const ON_TIMEOUT: &str = "run it in the background with `&` (and without `args`), or start the server \
    with a larger `--timeout`";

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
    /// Output was cut, and the rest dropped unless spill_uri is set; false when spilling
    pub truncated: bool,
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
    pub ending: Ending,
    #[serde(flatten)]
    run: Option<RunReport>,
    #[serde(flatten)]
    pub job: Option<JobHandle>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    lines: u64,
    errors: u64,
    warnings: u64,
}

impl Reply {
    /// How the command is doing, without its output.
    pub async fn new(call: &Call<'_>, source: &Source) -> Result<Self, ToolError> {
        let reply = Self::ended(&source.found);
        let Some(job) = source.job.as_ref().filter(|_| !source.has_ended()) else {
            return Ok(reply);
        };
        let message = match source.became_job {
            true => how_to_continue(job, call.background_after.unwrap_or_default()),
            false => format!("the command is still running as {}", job.id()),
        };
        let handle = JobHandle::new(job).await?;
        Ok(Self { ending: Ending::message(message), job: Some(handle), ..reply })
    }

    /// How the command ended, if it did.
    pub fn ended(found: &KeptOutput) -> Self {
        let outcome = found.outcome.as_ref();
        Self {
            exit_code: outcome.and_then(|outcome| outcome.end.exit_code()),
            ending: match outcome {
                Some(outcome) => Ending::advising(outcome, ON_TIMEOUT),
                None => Ending::message("the command is still running"),
            },
            run: outcome.map(RunReport::from),
            ..Self::default()
        }
    }

    pub fn add_page(&mut self, page: &RunPage) {
        let RunPage { stdout, stderr, .. } = page;
        let in_parts = (stdout.in_parts || stderr.in_parts).then(|| IN_PARTS.to_owned());
        let messages = [self.ending.message.take(), in_parts, page.problem.clone()];
        let messages: Vec<_> = messages.into_iter().flatten().collect();
        self.ending.message = (!messages.is_empty()).then(|| messages.join("; "));
        self.stdout_chunk = text_of(stdout, page.mime);
        self.stderr_chunk = text_of(stderr, "application/octet-stream");
        self.bytes_start = stdout.start;
        let is_empty = stdout.end == stdout.start || is_binary(stdout);
        self.bytes_end = (!is_empty).then(|| stdout.end - 1);
        self.total_bytes = stdout.total;
        self.mime = page.mime.to_owned();
        (self.line_count, self.stderr_count) = (stdout.lines(), stderr.lines());
        let counts = |Summary { lines, errors, warnings }| Counts { lines, errors, warnings };
        self.summary = page.summary.map(counts);
    }

    /// Adds where the rest can be read, and returns links to it.
    pub async fn point_to_rest(
        &mut self,
        call: &Call<'_>,
        zip: bool,
        source: &Source,
        page: RunPage,
    ) -> Result<Vec<ContentBlock>, ToolError> {
        let (id, output) = (source.id.as_str(), &source.found.output);
        let cursor = |(offset, stderr)| Cursor { offset, stderr, id: Some(id.to_owned()) };
        self.next_cursor = page.next(source.has_ended()).map(|next| cursor(next).to_string());
        let (uri, spilled) = match zip {
            true => (OutputUri::gzipped(id), source.gzipped(call).await?),
            false => (OutputUri::new(id, Stream::Stdout), output.clone()),
        };
        let uri = uri.to_string();
        let mut links = vec![resource_link(&uri, &spilled, Stream::Stdout)];
        self.spill_uri = Some(uri);
        if page.has_stderr {
            let uri = OutputUri::new(id, Stream::Stderr).to_string();
            links.push(resource_link(&uri, output, Stream::Stderr));
            self.stderr_spill_uri = Some(uri);
        }
        if let Some((head, tail)) = page.previews {
            (self.head_preview, self.tail_preview) = (Some(head), Some(tail));
        }
        Ok(links)
    }

    /// The same for a command whose output is too long for an answer.
    pub fn without_output(mut self, message: String) -> Self {
        self.ending.message = Some(message);
        let (stdout_chunk, stderr_chunk) = (String::new(), String::new());
        let (bytes_end, line_count, stderr_count) = (None, 0, 0);
        Self { stdout_chunk, stderr_chunk, bytes_end, line_count, stderr_count, ..self }
    }
}
