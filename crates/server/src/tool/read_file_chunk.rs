//! Reads kept output, one page at a time, and runs nothing.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpz_engine::KeptOutput;
use mcpz_output::{
    BothPlaces, Data, Filter, Measure, Output, Page, PageRequest, Reader, Rendering, Room, Stream,
    mime,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Call;
use super::answer::{Answer, IN_PARTS, answer_as_json, joined};
use super::changes::{self, Alone, OtherCursor, Pair};
use super::error::ToolError;
use super::extract::{ExtractName, Findings, NotWithExtract, Printed, any_value, find};
use super::paging::{check_limit, filter, is_pending, next_page, parse_cursor, read_page};
use super::view::{NotWithView, Rest, ViewName, describe};
use crate::budget::size_as_json;
use crate::memory::PAGE;
use crate::output_uri::{Cursor, OutputUri};

pub const DESCRIPTION: &str = "Reads paginated data from a spilled file. Accepts cursor and \
    limit_bytes to safely stream contents";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    uri: String,
    /// next_cursor of an answer
    cursor: Option<String>,
    limit_bytes: Option<usize>,
    /// Regex
    grep: Option<String>,
    /// JMESPath
    json_path: Option<String>,
    #[serde(default)]
    view: ViewName,
    #[serde(default)]
    extract: ExtractName,
}

#[derive(Debug, thiserror::Error)]
#[error("`cursor` belongs to another output than `uri`")]
struct OtherOutput;

#[derive(Debug, thiserror::Error)]
#[error("no output is kept at {0}")]
struct NoOutput(String);

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reply {
    data: String,
    /// base64 for binary output
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    bytes_start: u64,
    // The last byte of the chunk; left out when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_end: Option<u64>,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    mime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "any_value")]
    extracted: Option<Value>,
    // More output may follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let is_changes = params.view == ViewName::Changes;
    let compared = changes::parse_cursor(params.cursor.as_deref().filter(|_| is_changes))?;
    let cursor = match &compared {
        Some(_) => Cursor::default(),
        None => parse_cursor(params.cursor.as_deref())?,
    };
    let limit = params.limit_bytes.map(check_limit).transpose()?;
    let kind = params.extract.kind();
    let is_shortened = params.grep.is_some() || params.view != ViewName::Full;
    if kind.is_some() && (is_shortened || params.cursor.is_some()) {
        return Err(ToolError::arguments(NotWithExtract("`grep`, `view` and `cursor`")));
    }
    let json_path = params.json_path.as_deref().filter(|_| kind.is_none());
    let grep = params.grep.as_deref();
    if params.view != ViewName::Full && grep.or(json_path).is_some() {
        return Err(ToolError::arguments(NotWithView("`grep` and `json_path`")));
    }
    let filter = match params.view.view() {
        Some(view) => Filter::View(view),
        None => filter(&call.watcher.cancelled, grep, json_path).await?,
    };
    let uri: Option<OutputUri> = params.uri.parse().ok();
    if let (Some(uri), Some(id)) = (&uri, &cursor.id)
        && uri.id != *id
    {
        return Err(ToolError::arguments(OtherOutput));
    }
    let kept = uri.and_then(|uri| Some((call.owner.find(&uri.id)?, uri)));
    // A filter looks through the output as it was before compression.
    let packed = |found: &KeptOutput, uri: &OutputUri| match (&filter, uri.gzipped) {
        (Filter::Everything, true) if !is_changes => found.gzipped.clone(),
        _ => Some(found.output.clone()),
    };
    let named = kept.and_then(|(found, uri)| Some((packed(&found, &uri)?, found, uri)));
    let Some((output, found, OutputUri { id, stream, .. })) = named else {
        return Err(ToolError::failed(NoOutput(call.echo(&params.uri))));
    };
    let mut reply = Reply::about(&output, stream);
    let room = match limit {
        Some(limit) => Room::bytes(limit),
        None => call.faces.max_answer.room(size_as_json(&reply), Measure::QuotedTwice),
    };
    if let Some(kind) = kind {
        reply.total_bytes = output.kept_length(stream);
        let printed = Printed::new(output, Rendering::default()).of(found.outcome.as_ref());
        // It is in the answer twice, and quoted in one of them.
        let (path, room) = (params.json_path, room.size / 2);
        reply.add_findings(find(&call, printed, (kind, stream), path, room).await?);
        return Ok(answer_as_json(&reply, Vec::new(), false));
    }
    let pair = match &compared {
        Some(cursor) => Some(Ok(Pair::of_cursor(&call, &found, cursor)?)),
        None => is_changes.then(|| Pair::find(&call, (&id, &found), &[stream])),
    };
    let alone = match pair {
        Some(Ok(_)) if compared.is_none() && params.cursor.is_some() => {
            return Err(ToolError::arguments(OtherCursor));
        }
        Some(Ok(pair)) => {
            let from = compared.map_or_else(BothPlaces::default, |it| it.places());
            let compared = pair.compare(&call, (stream, Rendering::default()), from, room).await?;
            let (next, notes) = (pair.next(&compared), changes::notes(&compared));
            reply.add_page(compared.page, found.outcome.is_some());
            reply.next_cursor = next;
            reply.message = joined([pair.facts(stream)].into_iter().chain(notes));
            return Ok(answer_as_json(&reply, Vec::new(), false));
        }
        Some(Err(Alone { message })) => Some(message),
        None => None,
    };
    let wanted = PageRequest { offset: cursor.offset, room, limit_lines: usize::MAX };
    let reader = Reader::new(output.clone(), stream, Rendering::default());
    call.watcher.wait_for_room(PAGE).await;
    let (filter, ended) = (Arc::new(filter), found.outcome.is_some());
    let read = move |stop| filter.page(&reader.until(stop), wanted);
    let may_get_more = |page: &Page| is_pending(page, ended);
    let page = read_page(&call.watcher.cancelled, &output, read, may_get_more).await?;
    reply.add_page(page, ended);
    reply.message = joined(alone.into_iter().chain(reply.message.take()));
    Ok(answer_as_json(&reply, Vec::new(), false))
}

impl Reply {
    /// What is known before the page is read.
    fn about(output: &Output, stream: Stream) -> Self {
        let lost = output.lost();
        Self {
            mime: mime(output, stream).to_owned(),
            lost_bytes: Some(lost).filter(|lost| *lost > 0),
            ..Self::default()
        }
    }

    fn add_findings(&mut self, findings: Findings) {
        self.extracted = findings.value;
        self.data = findings.tail;
        self.message = findings.message;
    }

    /// `ended` says whether the command has.
    fn add_page(&mut self, page: Page, ended: bool) {
        self.next_cursor = next_page(&page, ended).map(|offset| Cursor::at(offset).to_string());
        (self.data, self.encoding) = match page.data {
            Data::Text(text) => (text, None),
            Data::Binary(bytes) => (BASE64_STANDARD.encode(bytes), Some("base64".to_owned())),
        };
        self.bytes_start = page.start;
        self.bytes_end = (page.end > page.start).then(|| page.end - 1);
        self.total_bytes = page.total;
        let view = page.left_out.and_then(|it| describe(it, Rest::WithoutView));
        self.message = page.in_parts.then(|| IN_PARTS.to_owned()).or(view);
        self.running = page.running.then_some(true);
    }
}
