//! Kept outputs, as resources for their owner.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpz_engine::{KeptOutput, Owner};
use mcpz_output::{Data, Error, PageRequest, Reader, Rendering, Stream, mime};
use mcpz_runtime::spawn_blocking;
use rmcp::model::{
    ErrorData, MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;
use crate::output_uri::OutputUri;

/// How many bytes of a resource an answer has; `read_file_chunk` reads the rest.
const MAX_READ: usize = 1 << 20;

/// Everything the owner can read. Looking into hundreds of outputs for their types takes a while.
pub async fn list(owner: &Owner) -> Vec<Resource> {
    let outputs = owner.list();
    let list = move || outputs.iter().flat_map(|(id, found)| resources(id, found)).collect();
    spawn_blocking(list).await.unwrap_or_default()
}

fn resources(id: &str, found: &KeptOutput) -> Vec<Resource> {
    let stream = |stream| (OutputUri::new(id, stream), &found.output);
    let gzipped = found.gzipped.as_ref().map(|output| (OutputUri::gzipped(id), output));
    let named = [stream(Stream::Stdout), stream(Stream::Stderr)].into_iter().chain(gzipped);
    named
        .filter(|(uri, output)| output.kept_length(uri.stream) > 0)
        .map(|(uri, output)| {
            let (stream, uri) = (uri.stream, uri.to_string());
            let name = uri.rsplit('/').next().unwrap_or(&uri).to_owned();
            Resource::new(uri, name)
                .with_mime_type(mime(output, stream))
                .with_size(output.kept_length(stream))
        })
        .collect()
}

pub fn template() -> ResourceTemplate {
    ResourceTemplate::new(OutputUri::TEMPLATE, "output")
        .with_description("Output of a command: stream is out or err")
}

/// The same answer whether an output does not exist or belongs to somebody else.
pub fn not_found(uri: &str) -> ErrorData {
    let text = format!("no output is kept at {uri}");
    ErrorData::resource_not_found(text, Some(json!({"uri": uri})))
}

/// The beginning of an output, and its length.
pub async fn read(
    owner: &Owner,
    uri: &str,
    cancelled: &CancellationToken,
) -> Result<ReadResourceResult, ErrorData> {
    let named = uri.parse::<OutputUri>().ok();
    let kept = named.and_then(|named| {
        let found = owner.find(&named.id)?;
        let output = if named.gzipped { found.gzipped? } else { found.output };
        Some((output, named.stream))
    });
    let Some((output, stream)) = kept else {
        return Err(not_found(uri));
    };
    let kind = mime(&output, stream);
    let reader = Reader::new(output, stream, Rendering::default());
    let request = PageRequest::bytes(0, MAX_READ);
    let page =
        run_blocking(cancelled, move |stop| reader.until(stop).page(request).map_err(Error::Read));
    let page = page.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let mut meta = MetaObject::new();
    meta.insert("mcpz/total_bytes".to_owned(), page.total.into());
    let contents = match page.data {
        Data::Text(text) => ResourceContents::text(text, uri),
        Data::Binary(bytes) => ResourceContents::blob(BASE64_STANDARD.encode(bytes), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(kind).with_meta(meta)]))
}
