//! What an answer shows of a command's output, and where the rest of it can be read.

use mcpz_engine::{End, Outcome};
use mcpz_output::{Excerpts, Output, Room, Stream, excerpts, mime};
use rmcp::model::{ContentBlock, Resource};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::ToolError;
use super::{Ability, Call};
use crate::blocking::run_blocking;
use crate::output_uri::OutputUri;

/// What an answer leaves out, and the URIs of the whole output.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Omission {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_spill_uri: Option<String>,
}

pub struct Excerpt {
    pub stdout: String,
    pub stderr: String,
    pub omission: Omission,
    /// Links to the whole output.
    pub links: Vec<ContentBlock>,
    pub stdout_is_cut: bool,
    pub stderr_is_cut: bool,
}

impl Excerpt {
    /// Where the rest is, for a text that does not say so otherwise.
    pub fn notice(&self, call: &Call<'_>) -> Option<ContentBlock> {
        let Omission { omitted_bytes, spill_uri, stderr_spill_uri } = &self.omission;
        let omitted = (*omitted_bytes)?;
        let uris: Vec<_> = [spill_uri, stderr_spill_uri].into_iter().flatten().cloned().collect();
        let uris = uris.join(" and ");
        let how = match call.tools.can(Ability::ReadOutput) {
            true => "read the full output with read_file_chunk",
            false => "the full output is in",
        };
        let text = format!("[{omitted} bytes left out; {how}: {uris}]");
        Some(ContentBlock::text(text))
    }
}

/// Picks what fits into an answer. If that is not all, the whole output is kept for its owner.
pub async fn excerpt(call: &Call<'_>, outcome: &Outcome, room: Room) -> Result<Excerpt, ToolError> {
    let (output, streams) = (outcome.output.clone(), call.watcher.streams);
    let has_failed = outcome.end != End::Exited(0);
    let excerpts = match output.is_in_memory(room.size) {
        true => excerpts(&output, streams, room, has_failed),
        false => {
            let read = move |_| Ok(excerpts(&output, streams, room, has_failed));
            run_blocking(&call.watcher.cancelled, read).await?
        }
    };
    let omitted = excerpts.omitted();
    let Excerpts { stdout, stderr } = excerpts;
    let excerpt = Excerpt {
        stdout_is_cut: stdout.omitted > 0,
        stderr_is_cut: stderr.omitted > 0,
        stdout: stdout.text,
        stderr: stderr.text,
        omission: Omission::default(),
        links: Vec::new(),
    };
    if omitted == 0 {
        return Ok(excerpt);
    }
    let (omission, links) = keep(call, outcome, omitted);
    Ok(Excerpt { omission, links, ..excerpt })
}

/// Keeps an output of which an answer leaves so many bytes out, and links to it.
pub fn keep(call: &Call<'_>, outcome: &Outcome, omitted: u64) -> (Omission, Vec<ContentBlock>) {
    let command = call.watcher.command.get().map(String::as_str).unwrap_or_default();
    call.engine.keep(call.owner, outcome.clone(), command);
    let streams = call.watcher.streams;
    let uri = |stream| {
        let has_bytes = streams.contains(&stream) && outcome.output.kept_length(stream) > 0;
        has_bytes.then(|| OutputUri::new(&outcome.id, stream).to_string())
    };
    let (spill_uri, stderr_spill_uri) = (uri(Stream::Stdout), uri(Stream::Stderr));
    let link = |uri: &Option<String>, stream| {
        uri.as_ref().map(|uri| resource_link(uri, &outcome.output, stream))
    };
    let links = [link(&spill_uri, Stream::Stdout), link(&stderr_spill_uri, Stream::Stderr)];
    let links = links.into_iter().flatten().collect();
    (Omission { omitted_bytes: Some(omitted), spill_uri, stderr_spill_uri }, links)
}

/// The same with at most so many bytes, in whatever unit the room is measured.
pub async fn excerpt_at_most(
    call: &Call<'_>,
    outcome: &Outcome,
    room: Room,
    most: usize,
) -> Result<Excerpt, ToolError> {
    let fitting = excerpt(call, outcome, room).await?;
    if fitting.stdout.len() + fitting.stderr.len() <= most {
        return Ok(fitting);
    }
    let fitting = excerpt(call, outcome, Room::bytes(most)).await?;
    match room.measure.of(&fitting.stdout) + room.measure.of(&fitting.stderr) <= room.size {
        true => Ok(fitting),
        false => excerpt(call, outcome, Room { size: most.min(room.size), ..room }).await,
    }
}

/// A link to kept output, for clients that can follow it.
pub fn resource_link(uri: &str, output: &Output, stream: Stream) -> ContentBlock {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let resource = Resource::new(uri, name).with_mime_type(mime(output, stream));
    ContentBlock::resource_link(resource)
}
