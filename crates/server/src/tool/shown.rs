//! What an answer shows of a command's output, and where the rest of it is.

use mcpz_engine::Outcome;
use mcpz_output::{Excerpts, Output, Room, Stream, mime};
use rmcp::model::{ContentBlock, Resource};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::ToolError;
use super::{Ability, Call};
use crate::blocking::run_blocking;
use crate::kept::OutputUri;

/// Where an output that was cut can be read as a whole.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Spilled {
    // Left out of what is shown
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_spill_uri: Option<String>,
}

/// What an answer shows of a command's output, and where the rest is.
pub(crate) struct Shown {
    pub stdout: String,
    pub stderr: String,
    pub spilled: Spilled,
    pub links: Vec<ContentBlock>,
    /// Whether something of stdout is left out, and of stderr.
    pub cut: (bool, bool),
}

impl Shown {
    /// Where the rest is, in words, for a text that does not say it otherwise.
    pub fn notice(&self, call: &Call<'_>) -> Option<ContentBlock> {
        let Spilled { omitted_bytes, spill_uri, stderr_spill_uri } = &self.spilled;
        let omitted = (*omitted_bytes)?;
        let uris: Vec<_> = [spill_uri, stderr_spill_uri].into_iter().flatten().cloned().collect();
        let uris = uris.join(" and ");
        let how = match call.tools.can(Ability::ReadOutput) {
            true => "read_file_chunk reads all of it",
            false => "all of it is in",
        };
        let text = format!("[{omitted} bytes left out; {how}: {uris}]");
        Some(ContentBlock::text(text))
    }
}

/// Picks what fits into an answer of a command's output, and keeps the whole if that is not all.
pub(crate) async fn show(
    call: &Call<'_>,
    outcome: &Outcome,
    room: Room,
) -> Result<Shown, ToolError> {
    let (output, streams) = (outcome.output.clone(), call.watcher.streams);
    let excerpts = match output.is_at_hand(room.size) {
        true => output.excerpts(streams, room),
        false => {
            let read = move |_| Ok(output.excerpts(streams, room));
            run_blocking(&call.watcher.cancelled, read).await?
        }
    };
    let omitted = excerpts.omitted();
    let Excerpts { stdout, stderr } = excerpts;
    let cut = (stdout.omitted > 0, stderr.omitted > 0);
    let (stdout, stderr) = (stdout.text, stderr.text);
    if omitted == 0 {
        let (spilled, links) = (Spilled::default(), Vec::new());
        return Ok(Shown { stdout, stderr, spilled, links, cut });
    }
    call.owner.keep(outcome.clone());
    let name = |stream| {
        let there = streams.contains(&stream) && outcome.output.kept_length(stream) > 0;
        there.then(|| OutputUri::new(&outcome.id, stream).to_string())
    };
    let (spill_uri, stderr_spill_uri) = (name(Stream::Stdout), name(Stream::Stderr));
    let link = |uri: &Option<String>, stream| {
        uri.as_ref().map(|uri| resource_link(uri, &outcome.output, stream))
    };
    let links = [link(&spill_uri, Stream::Stdout), link(&stderr_spill_uri, Stream::Stderr)];
    let links = links.into_iter().flatten().collect();
    let spilled = Spilled { omitted_bytes: Some(omitted), spill_uri, stderr_spill_uri };
    Ok(Shown { stdout, stderr, spilled, links, cut })
}

/// The same with no more than so many bytes, however room is counted.
pub(crate) async fn show_at_most(
    call: &Call<'_>,
    outcome: &Outcome,
    room: Room,
    most: usize,
) -> Result<Shown, ToolError> {
    let shown = show(call, outcome, room).await?;
    if shown.stdout.len() + shown.stderr.len() <= most {
        return Ok(shown);
    }
    let shown = show(call, outcome, Room::bytes(most)).await?;
    match room.measure.of(&shown.stdout) + room.measure.of(&shown.stderr) <= room.size {
        true => Ok(shown),
        false => show(call, outcome, Room { size: most.min(room.size), ..room }).await,
    }
}

/// A pointer to kept output, for clients that can follow it.
pub(crate) fn resource_link(uri: &str, output: &Output, stream: Stream) -> ContentBlock {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let resource = Resource::new(uri, name).with_mime_type(mime(output, stream));
    ContentBlock::resource_link(resource)
}
