//! What the server asks of clients. In sessions it is sent to them as a request; from 2026-07-28 on it
//! is put into an answer instead.

#![expect(deprecated, reason = "the suite still asks for sampling")]

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ErrorData, SamplingMessage,
};
use serde_json::{Value, json};

/// Asks people to fill in a form.
pub fn elicitation(
    message: &str,
    properties: Value,
    required: &[&str],
) -> Result<ElicitRequest, ErrorData> {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    match serde_json::from_value(params) {
        Ok(params) => Ok(ElicitRequest::new(params)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// Asks the client's model something.
pub fn sampling(text: &str, max_tokens: u32) -> CreateMessageRequest {
    let messages = vec![SamplingMessage::user_text(text)];
    CreateMessageRequest::new(CreateMessageRequestParams::new(messages, max_tokens))
}
