//! What the headers of a request must say, by its revision of the protocol.
//!
//! Up to 2025-11-25 a conversation begins with `initialize` and continues in a session. From 2026-07-28 on requests are
//! stateless: each names its revision in `_meta`, and its headers repeat parts of the message for proxies that do not
//! read it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, StatusCode};
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, GetMeta, JsonObject, JsonRpcMessage, ProtocolVersion,
    RequestId,
};
use serde_json::Value;

use super::refusal::Refusal;
use crate::message::Message;

pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How the headers of a request differ from its message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Mismatch {
    #[error("the {0} header is missing")]
    Missing(String),
    #[error("{method} needs the Mcp-Name header")]
    NoName { method: String },
    #[error("the Mcp-Name header is not base64")]
    NotBase64,
    #[error("the {header} header occurs twice")]
    Twice { header: String },
    #[error("the {header} header says `{said}`, but the message says `{message}`")]
    Message { header: &'static str, said: String, message: String },
    #[error("the MCP-Protocol-Version header says `{said}`, but _meta says `{meta}`")]
    Version { said: String, meta: String },
    #[error("the {header} header is set, but the argument `{argument}` is not")]
    NoArgument { header: String, argument: String },
    #[error("the {header} header differs from the argument `{argument}`")]
    Argument { header: String, argument: String },
}

/// Whether requests belong to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Sessions,
    Stateless,
}

impl Era {
    /// The era of a request that has no body.
    pub fn of_head(headers: &HeaderMap) -> Self {
        match text(headers, &PROTOCOL_VERSION) {
            None => Self::Sessions,
            Some(version) if has_handshake(version) => Self::Sessions,
            Some(_) => Self::Stateless,
        }
    }

    pub fn of(headers: &HeaderMap, message: &Message) -> Self {
        let JsonRpcMessage::Request(request) = message else { return Self::of_head(headers) };
        let said = request.request.get_meta().protocol_version();
        let stateless = matches!(request.request, ClientRequest::DiscoverRequest(_))
            || said.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if stateless { Self::Stateless } else { Self::of_head(headers) }
    }
}

/// Whether conversations of this revision begin with `initialize`.
fn has_handshake(version: &str) -> bool {
    ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .any(|known| known.as_str() == version && *known < ProtocolVersion::V_2026_07_28)
}

pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Checks the headers of a stateless message. `schema` gives the parameters of a tool.
pub fn check_stateless(
    headers: &HeaderMap,
    message: &Message,
    schema: impl Fn(&str) -> Option<std::sync::Arc<JsonObject>>,
) -> Result<(), Refusal> {
    let (id, value) = match message {
        JsonRpcMessage::Request(request) => {
            (Some(request.id.clone()), serde_json::to_value(&request.request))
        }
        JsonRpcMessage::Notification(notification) => {
            (None, serde_json::to_value(&notification.notification))
        }
        _ => {
            let text = "Invalid Request: no request is waiting for this response";
            let code = ErrorCode::INVALID_REQUEST;
            return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None));
        }
    };
    let value = value.unwrap_or_default();
    let mismatch = |mismatch: Mismatch| {
        let (code, text) = (ErrorCode::HEADER_MISMATCH, mismatch.to_string());
        Refusal::protocol(StatusCode::BAD_REQUEST, code, text, id.clone())
    };
    check_names(headers, &value).map_err(mismatch)?;
    if let JsonRpcMessage::Request(request) = message {
        check_meta(&request.request, id.clone())?;
        check_version(headers, &request.request).map_err(mismatch)?;
    }
    let tool = value["params"]["name"].as_str().filter(|_| value["method"] == "tools/call");
    match tool.and_then(schema) {
        Some(schema) => check_parameters(headers, &value, &schema).map_err(mismatch),
        None => Ok(()),
    }
}

/// `Mcp-Method` and `Mcp-Name` must say what the message says.
fn check_names(headers: &HeaderMap, message: &Value) -> Result<(), Mismatch> {
    let method = message["method"].as_str().unwrap_or_default();
    match text(headers, &MCP_METHOD) {
        None => return Err(Mismatch::Missing("Mcp-Method".into())),
        Some(said) if said != method => {
            let (said, message) = (said.to_owned(), method.to_owned());
            return Err(Mismatch::Message { header: "Mcp-Method", said, message });
        }
        Some(_) => {}
    }
    let named_by = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(name) = message["params"][named_by].as_str() else { return Ok(()) };
    match text(headers, &MCP_NAME).map(decode) {
        None => Err(Mismatch::NoName { method: method.to_owned() }),
        Some(None) => Err(Mismatch::NotBase64),
        Some(Some(said)) if said != name => {
            let message = name.to_owned();
            Err(Mismatch::Message { header: "Mcp-Name", said, message })
        }
        Some(Some(_)) => Ok(()),
    }
}

/// `_meta` must have every key that the revision requires.
fn check_meta(request: &ClientRequest, id: Option<RequestId>) -> Result<(), Refusal> {
    let missing = request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28);
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("Invalid params: _meta lacks {}", missing.join(", "));
    let code = ErrorCode::INVALID_PARAMS;
    Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, id))
}

fn check_version(headers: &HeaderMap, request: &ClientRequest) -> Result<(), Mismatch> {
    let version = request.get_meta().protocol_version();
    let meta = version.as_ref().map(ProtocolVersion::as_str).unwrap_or_default();
    match text(headers, &PROTOCOL_VERSION) {
        None => Err(Mismatch::Missing("MCP-Protocol-Version".into())),
        Some(said) if said != meta => {
            Err(Mismatch::Version { said: said.to_owned(), meta: meta.to_owned() })
        }
        Some(_) => Ok(()),
    }
}

/// `Mcp-Param-…` must have the value of the argument that the tool's schema names it for.
fn check_parameters(
    headers: &HeaderMap,
    message: &Value,
    schema: &JsonObject,
) -> Result<(), Mismatch> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    for (name, property) in properties {
        let Some(header) = property["x-mcp-header"].as_str() else { continue };
        let header = format!("Mcp-Param-{header}");
        let argument = match &message["params"]["arguments"][name] {
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            other => Some(other.to_string()),
        };
        let mut said = headers.get_all(header.as_str()).iter();
        let (first, more) = (said.next(), said.next().is_some());
        let said = first.map(|value| value.to_str().ok().and_then(decode));
        match (said, argument) {
            _ if more => return Err(Mismatch::Twice { header }),
            (None, None) => {}
            (Some(Some(said)), Some(argument)) if said == argument => {}
            (None, Some(_)) => return Err(Mismatch::Missing(header)),
            (Some(_), None) => {
                return Err(Mismatch::NoArgument { header, argument: name.clone() });
            }
            (Some(_), Some(_)) => {
                return Err(Mismatch::Argument { header, argument: name.clone() });
            }
        }
    }
    Ok(())
}

/// The value of a header, which is wrapped in base64 if it could not be a header otherwise.
fn decode(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(wrapped) => String::from_utf8(BASE64_STANDARD.decode(wrapped).ok()?).ok(),
    }
}

/// The status of a response that is nothing but this error. In sessions every answer has the status 200.
pub fn status_of(error: &ErrorData) -> StatusCode {
    match error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// In a session, a header that names a revision must name one that has sessions.
pub fn check_session_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(PROTOCOL_VERSION).map(|version| version.to_str()) {
        Some(Ok(version)) if !has_handshake(version) => {
            let text = format!("Bad Request: unsupported protocol version {version:?}");
            let code = ErrorCode::INVALID_REQUEST;
            Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None))
        }
        Some(Err(_)) => Err(Refusal::InvalidVersion),
        _ => Ok(()),
    }
}

/// A client must send JSON, and accept both forms of an answer.
pub fn check_media_types(headers: &HeaderMap) -> Result<(), Refusal> {
    if !(accepts(headers, "application/json") && accepts(headers, "text/event-stream")) {
        return Err(Refusal::NotAcceptable("application/json and text/event-stream"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json") {
        true => Ok(()),
        false => Err(Refusal::UnsupportedMediaType),
    }
}

pub fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let group = kind.split('/').next().unwrap_or_default();
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|accepted| {
            let accepted = accepted.split(';').next().unwrap_or_default().trim();
            accepted == kind || accepted == "*/*" || accepted == format!("{group}/*")
        })
    })
}
