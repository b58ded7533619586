//! Content that tools, prompts and resources have in common.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};

/// The smallest picture there is, as base64.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound of one sample, as base64.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

pub fn image() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

pub fn audio() -> ContentBlock {
    ContentBlock::audio(WAV, "audio/wav")
}

pub fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

/// A tool's answer that is nothing but text.
pub fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
