//! Resources: a text, a picture, one to watch, and any number by a template.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

pub fn list() -> Vec<Resource> {
    let resource = |uri, name, description, mime_type| {
        Resource::new(uri, name).with_description(description).with_mime_type(mime_type)
    };
    vec![
        resource(TEXT, "Static text", "A text that stays the same", "text/plain"),
        resource(BINARY, "Static binary", "A picture that stays the same", "image/png"),
        resource(WATCHED, "Watched resource", "Can be subscribed to", "text/plain"),
    ]
}

pub fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "Template")
        .with_description("Data that has an id")
        .with_mime_type("application/json");
    vec![template]
}

pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = |text: &str| ResourceContents::text(text, uri).with_mime_type("text/plain");
    let contents = match uri {
        TEXT => text("This is the content of the static text resource."),
        BINARY => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => text("Watched resource content"),
        _ => by_template(uri).ok_or_else(|| not_there(uri))?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Fails unless the resource can be subscribed to.
pub fn check_watched(uri: &str) -> Result<(), ErrorData> {
    if uri == WATCHED { Ok(()) } else { Err(not_there(uri)) }
}

fn by_template(uri: &str) -> Option<ResourceContents> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    if id.is_empty() || id.contains('/') {
        return None;
    }
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    Some(ResourceContents::text(data.to_string(), uri).with_mime_type("application/json"))
}

fn not_there(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))
}
