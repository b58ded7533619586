//! How tools answer: a structure, and content that says the same.

use mcpz_engine::Outcome;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

use super::ending::{pids, remarks};
use super::error::ToolError;
use super::{Ability, Call};

pub type Answer = Result<CallToolResult, ToolError>;

/// What an answer says of a search that could not look at whole lines.
pub const IN_PARTS: &str =
    "some lines are too long and were searched in parts; a match across two parts is not found";

/// One message of what there is to say.
pub fn joined(parts: impl IntoIterator<Item = String>) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// An answer whose content says in other words what its structure says.
pub fn answer<R: Serialize>(
    reply: &R,
    content: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = serde_json::to_value(reply).ok();
    result.is_error = Some(is_error);
    result
}

/// An answer whose content is its structure as JSON, byte for byte: clients that would show both show one. The fields
/// keep the order they have in the tool's struct (`preserve_order` of serde_json).
pub fn answer_as_json<R: Serialize>(
    reply: &R,
    links: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = answer(reply, links, is_error);
    let text = result.structured_content.as_ref().map(ToString::to_string);
    result.content.insert(0, ContentBlock::text(text.unwrap_or_default()));
    result
}

/// What is missing and what to be careful about, in blocks of their own, so that the text around them stays
/// what the tool's document says.
pub fn notices(call: &Call<'_>, outcome: &Outcome) -> Vec<ContentBlock> {
    let lost = Some(outcome.output.lost()).filter(|lost| *lost > 0);
    let lost = lost.map(|lost| format!("[{lost} bytes of output could not be kept]"));
    let remarks = remarks(outcome).into_iter().map(|remark| format!("[warning: {remark}]"));
    lost.into_iter()
        .chain(left_running(call, outcome))
        .chain(remarks)
        .map(ContentBlock::text)
        .collect()
}

/// Which processes a command left running, and how to end them.
fn left_running(call: &Call<'_>, outcome: &Outcome) -> Option<String> {
    let job = outcome.job.as_ref()?;
    let pids: Vec<_> = pids(outcome).iter().map(ToString::to_string).collect();
    let more = match outcome.background.len() - pids.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let processes = if outcome.background.len() == 1 { "process" } else { "processes" };
    let end = match call.tools.can(Ability::StopJobs) {
        true => "stop_job ends it",
        false => "it ends with the server",
    };
    Some(format!("[still running as {job}: {processes} {}{more}; {end}]", pids.join(", ")))
}
