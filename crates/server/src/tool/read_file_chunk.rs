//! Reads kept output, a page at a time, without running anything.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpz_engine::{Data, Filter, Reader, View, mime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{Answer, Complaint, Effect, IN_PARTS, answer, define, json, off_thread};
use super::shell_exec::PageParams;
use crate::kept::{Cursor, OutputUri};

pub const NAME: &str = "read_file_chunk";

const DESCRIPTION: &str = "Reads paginated data from a spilled file. Accepts cursor and \
    limit_bytes to safely stream contents. Runs nothing.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// URI of the output
    uri: String,
    /// next_cursor of the chunk before
    cursor: Option<String>,
    /// [default: 65536]
    #[schemars(range(min = 1, max = 262_144))]
    limit_bytes: Option<usize>,
    /// Only lines that match this regex
    grep: Option<String>,
    /// Only what this JMESPath finds in JSON output
    json_path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Reply {
    data: String,
    /// base64 for what is no text
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
    // More may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
}

pub fn definition() -> rmcp::model::Tool {
    define::<Params, Reply>(NAME, DESCRIPTION, Effect::Reads)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let page = PageParams {
        cursor: params.cursor,
        limit_bytes: params.limit_bytes,
        limit_lines: Some(usize::MAX),
    };
    let cursor = page.cursor()?;
    let wanted = page.request(cursor.offset)?;
    let filter = Filter::new(params.grep.as_deref(), params.json_path.as_deref())?;
    let uri: Option<OutputUri> = params.uri.parse().ok();
    if let (Some(uri), Some(id)) = (&uri, cursor.id)
        && uri.id != id
    {
        return Err(Complaint::invalid("`cursor` is a place in another output than `uri` names"));
    }
    let kept = uri.and_then(|uri| Some((call.owner.find(&uri.id)?, uri.stream)));
    let Some((found, stream)) = kept else {
        return Err(Complaint(format!("there is no kept output {}", params.uri)));
    };
    let mime = mime(&found.output, stream);
    let lost = found.output.lost();
    let reader = Reader::new(found.output, stream, View::default());
    let read =
        off_thread(&call.watcher.cancelled, move |stop| filter.page(&reader.until(stop), wanted));
    let page = read.await?;
    let next = page.next().map(|offset| Cursor { offset, id: None }.to_string());
    let (data, encoding) = match page.data {
        Data::Text(text) => (text, None),
        Data::Binary(bytes) => (BASE64_STANDARD.encode(bytes), Some("base64".to_owned())),
    };
    let reply = Reply {
        data,
        encoding,
        bytes_start: page.start,
        bytes_end: (page.end > page.start).then(|| page.end - 1),
        total_bytes: page.total,
        next_cursor: next,
        mime: mime.to_owned(),
        lost_bytes: Some(lost).filter(|lost| *lost > 0),
        message: page.in_parts.then(|| IN_PARTS.to_owned()),
        running: page.running.then_some(true),
    };
    Ok(answer(&reply, vec![json(&reply)], false))
}
