//! Why a request is not served, and the response that says so.
//!
//! `Display` is the text a person reads. Only [`Refusal::Protocol`] is answered in the protocol's own form.

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};

use super::body::ResponseBody;
use super::router::RouterError;
use crate::message::Fault;

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{}", .1.error.message)]
    Protocol(StatusCode, Fault),
    #[error("Bad Request: a header that may occur only once occurs twice")]
    RepeatedHeader,
    #[error("Bad Request: the length of the body is ambiguous")]
    UnclearLength,
    #[error("Bad Request: the Host header is missing")]
    NoHost,
    #[error("Bad Request: the Host header is not valid")]
    InvalidHost,
    #[error("Forbidden: unknown host; allow it with --allowed-host")]
    ForeignHost,
    #[error("Forbidden: unknown origin; allow it with --allowed-origin")]
    ForeignOrigin,
    #[error("Not Found: the endpoint is at {path}")]
    Elsewhere { path: String },
    #[error("Method Not Allowed")]
    NotAllowed { allow: &'static str },
    #[error("Unauthorized: send a valid token as Authorization: Bearer TOKEN")]
    Unauthorized { challenge: String },
    #[error("Forbidden: the token lacks a required scope")]
    InsufficientScope { challenge: String },
    #[error("Not Acceptable: the client must accept {0}")]
    NotAcceptable(&'static str),
    #[error("Unsupported Media Type: send application/json")]
    UnsupportedMediaType,
    #[error("Payload Too Large: the message is longer than this server accepts")]
    TooLarge,
    #[error("Request Timeout: the body took too long")]
    LateBody,
    #[error("Bad Request: the body ended early")]
    BrokenBody,
    #[error("Bad Request: the body contains no message")]
    NoMessage,
    #[error("Bad Request: the request id is longer than 1024 characters")]
    LongId,
    #[error("Bad Request: the MCP-Protocol-Version header is not text")]
    InvalidVersion,
    #[error("Service Unavailable: the server is busy; try again later")]
    Busy,
    #[error(
        "Service Unavailable: this client keeps its share of the connections busy; end some of its \
         requests or streams, or raise `connections` in [http]"
    )]
    NoShare,
}

impl Refusal {
    pub fn protocol(
        status: StatusCode,
        code: ErrorCode,
        text: impl Into<String>,
        id: Option<RequestId>,
    ) -> Self {
        let error = ErrorData::new(code, text.into(), None);
        Self::Protocol(status, Fault::new(error, id))
    }

    /// The same answer whether a session does not exist or belongs to somebody else.
    pub fn no_session() -> Self {
        let text = "Not Found: unknown session; start one with initialize";
        Self::protocol(StatusCode::NOT_FOUND, ErrorCode::INVALID_REQUEST, text, None)
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Protocol(status, _) => *status,
            Self::ForeignHost | Self::ForeignOrigin | Self::InsufficientScope { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::Elsewhere { .. } => StatusCode::NOT_FOUND,
            Self::NotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::LateBody => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::NoShare => StatusCode::SERVICE_UNAVAILABLE,
            Self::RepeatedHeader
            | Self::UnclearLength
            | Self::NoHost
            | Self::InvalidHost
            | Self::BrokenBody
            | Self::NoMessage
            | Self::LongId
            | Self::InvalidVersion => StatusCode::BAD_REQUEST,
        }
    }

    /// Whether the connection may carry another request. After a wrong head or body the next bytes may not be a
    /// request, and a client that has not identified itself must not hold a connection.
    fn keeps_connection(&self) -> bool {
        matches!(self, Self::Protocol(..) | Self::NotAllowed { .. } | Self::Busy)
    }

    pub fn into_response(self) -> Response<ResponseBody> {
        let (kind, body) = match &self {
            Self::Protocol(_, fault) => {
                let error = JsonRpcError::new(fault.id.clone(), (*fault.error).clone());
                let bytes = serde_json::to_vec(&error).unwrap_or_default();
                ("application/json", Bytes::from(bytes))
            }
            other => ("text/plain; charset=utf-8", other.to_string().into()),
        };
        let mut response = Response::new(ResponseBody::document(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        if !self.keeps_connection() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        match self {
            Self::NotAllowed { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::Unauthorized { challenge } | Self::InsufficientScope { challenge } => {
                if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                    headers.insert(WWW_AUTHENTICATE, challenge);
                }
            }
            Self::Busy | Self::NoShare => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// What is wrong with a message is its client's fault.
impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Protocol(StatusCode::BAD_REQUEST, fault)
    }
}

impl From<RouterError> for Refusal {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::IdInUse(id) => {
                let text = "Invalid Request: a request with this id is still running";
                Fault::new(ErrorData::invalid_request(text, None), Some(id)).into()
            }
            RouterError::IdTooLong => Self::LongId,
            RouterError::Busy => Self::Busy,
            RouterError::Ended => Self::no_session(),
        }
    }
}
