//! Reads kept output, a page at a time, without running anything.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpz_engine::{
    Data, Error, Grep, JsonPath, Output, Page, PageRequest, Reader, Stream, View, mime,
};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{Effect, answer, complaint, define, json, off_thread};
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
    /// Last byte of the chunk; left out when there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_end: Option<u64>,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    mime: String,
    /// The command is still running: more may come
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
}

pub fn definition() -> rmcp::model::Tool {
    define::<Params, Reply>(NAME, DESCRIPTION, Effect::Reads)
}

pub async fn call(mut call: Call<'_>) -> CallToolResult {
    let params: Params = match call.parse() {
        Ok(params) => params,
        Err(answer) => return answer,
    };
    match chunk(&call, params).await {
        Ok(reply) => answer(&reply, vec![json(&reply)], false),
        Err(text) => complaint(text),
    }
}

async fn chunk(call: &Call<'_>, params: Params) -> Result<Reply, String> {
    let page = PageParams {
        cursor: params.cursor,
        limit_bytes: params.limit_bytes,
        limit_lines: Some(usize::MAX),
    };
    let wanted = page.request(page.cursor()?.offset)?;
    let grep = params.grep.as_deref().map(Grep::new).transpose().map_err(|error| error.chain())?;
    let uri: Option<OutputUri> = params.uri.parse().ok();
    let kept = uri.and_then(|uri| Some((call.owner.find(&uri.id)?, uri.stream)));
    let Some((found, stream)) = kept else {
        return Err(format!("there is no kept output {}", params.uri));
    };
    let path = params.json_path.as_deref().map(JsonPath::new).transpose();
    let path = path.map_err(|error| error.chain())?;
    let (page, mime) =
        off_thread(move || read(found.output, stream, wanted, grep.as_ref(), path.as_ref()))
            .await?;
    let next = page.next().map(|offset| Cursor { offset, id: None }.to_string());
    let (data, encoding) = match page.data {
        Data::Text(text) => (text, None),
        Data::Binary(bytes) => (BASE64_STANDARD.encode(bytes), Some("base64".to_owned())),
    };
    Ok(Reply {
        data,
        encoding,
        bytes_start: page.start,
        bytes_end: (page.end > page.start).then(|| page.end - 1),
        total_bytes: page.total,
        next_cursor: next,
        mime: mime.to_owned(),
        running: page.running.then_some(true),
    })
}

fn read(
    output: Output,
    stream: Stream,
    wanted: PageRequest,
    grep: Option<&Grep>,
    path: Option<&JsonPath>,
) -> Result<(Page, &'static str), Error> {
    let mime = mime(&output, stream);
    let reader = Reader::new(output, stream, View::default());
    let page = match (path, grep) {
        (Some(path), _) => reader.json_path(path, wanted)?,
        (None, Some(grep)) => reader.grep(grep, wanted).map_err(Error::Read)?,
        (None, None) => reader.page(wanted).map_err(Error::Read)?,
    };
    Ok((page, mime))
}
