//! What callers give by name.

use rmcp::model::{ErrorData, JsonObject};
use serde_json::Value;

pub fn text<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    let missing = || ErrorData::invalid_params(format!("the argument `{name}` is missing"), None);
    arguments.get(name).and_then(Value::as_str).ok_or_else(missing)
}
