//! Tools that ask the client for something in the middle of a call, as sessions allow up to
//! 2025-11-25.

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ElicitRequest, ErrorData, JsonObject, ServerRequest};
use rmcp::service::Peer;
use serde_json::{Value, json};

use crate::arguments;
use crate::content::text;
use crate::requests::{elicitation, sampling};

pub async fn sample(
    peer: &Peer<RoleServer>,
    arguments: &JsonObject,
) -> Result<CallToolResponse, ErrorData> {
    let request = sampling(arguments::text(arguments, "prompt")?, 100);
    let said = ask(peer, ServerRequest::CreateMessageRequest(request)).await?;
    let said = said["content"]["text"].as_str().unwrap_or("something that is no text");
    Ok(text(format!("LLM response: {said}")))
}

pub async fn elicit(
    peer: &Peer<RoleServer>,
    arguments: &JsonObject,
) -> Result<CallToolResponse, ErrorData> {
    let properties = json!({
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    });
    let message = arguments::text(arguments, "message")?;
    fill_in(peer, elicitation(message, properties, &["username", "email"])?).await
}

/// A form whose fields are filled in already, one of each type (SEP-1034).
pub async fn elicit_defaults(peer: &Peer<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": true},
    });
    fill_in(peer, elicitation("Please check your details", properties, &[])?).await
}

/// A form with each way to choose among several things (SEP-1330).
pub async fn elicit_enums(peer: &Peer<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    fill_in(peer, elicitation("Please choose", properties, &[])?).await
}

async fn fill_in(
    peer: &Peer<RoleServer>,
    form: ElicitRequest,
) -> Result<CallToolResponse, ErrorData> {
    let filled = ask(peer, ServerRequest::ElicitRequest(form)).await?;
    let (action, content) = (&filled["action"], &filled["content"]);
    Ok(text(format!("User response: action={action}, content={content}")))
}

async fn ask(peer: &Peer<RoleServer>, request: ServerRequest) -> Result<Value, ErrorData> {
    let unanswered = |error: String| ErrorData::internal_error(error, None);
    let result = peer.send_request(request).await.map_err(|error| unanswered(error.to_string()))?;
    serde_json::to_value(result).map_err(|error| unanswered(error.to_string()))
}
