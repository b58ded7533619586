//! What the answers of all tools have in common.

use mcpz_engine::Outcome;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

use super::ending::{pids, remarks};
use super::error::ToolError;
use super::{Ability, Call};

/// An answer whose structure is `reply` and whose content says the same in other words.
pub(crate) fn answer<R: Serialize>(
    reply: &R,
    content: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = serde_json::to_value(reply).ok();
    result.is_error = Some(is_error);
    result
}

/// An answer whose content is its structure, to the letter: clients that show both then show one.
pub(crate) fn answer_as_json<R: Serialize>(
    reply: &R,
    links: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = answer(reply, links, is_error);
    let text = result.structured_content.as_ref().map(ToString::to_string);
    result.content.insert(0, ContentBlock::text(text.unwrap_or_default()));
    result
}

/// What is said of a search that could not look at whole lines.
pub(crate) const IN_PARTS: &str =
    "some lines are too long and were searched in parts; a match across two parts is not found";

/// Says what is missing and what to be careful of, in blocks of their own: the text around them
/// stays what it is.
pub(crate) fn notices(call: &Call<'_>, outcome: &Outcome) -> Vec<ContentBlock> {
    let lost = Some(outcome.output.lost()).filter(|lost| *lost > 0);
    let lost = lost.map(|lost| format!("[{lost} bytes of output could not be kept]"));
    let remarks = remarks(outcome).into_iter().map(|remark| format!("[warning: {remark}]"));
    lost.into_iter()
        .chain(left_running(call, outcome))
        .chain(remarks)
        .map(ContentBlock::text)
        .collect()
}

/// What a command has left running, and how to get at it.
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

/// What a call is answered with.
pub(crate) type Answer = Result<CallToolResult, ToolError>;
