//! The places that a call can choose from.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::json;

/// Adds the argument `place` to a tool, if there is a choice.
pub fn describe_places(mut tool: Tool, description: &str, places: &[String]) -> Tool {
    if !places.is_empty() {
        let schema = Arc::make_mut(&mut tool.input_schema);
        let place = json!({"description": description, "type": "string", "enum": places});
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        properties["place"] = place;
    }
    tool
}
