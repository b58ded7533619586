//! What is answered to requests that are not served.

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};

use super::body::Reply;
use crate::message::Fault;

/// Why a request is not served.
#[derive(Debug)]
pub enum Refusal {
    /// In words, for people.
    Plain(StatusCode, &'static str),
    /// As an answer of the protocol.
    Protocol(StatusCode, Fault),
    /// There is nothing at the path that was asked for; this is where we are.
    Elsewhere {
        path: String,
    },
    NotAllowed {
        allow: &'static str,
    },
    /// Who asks is not known, or may not; with what to ask for.
    Unknown {
        status: StatusCode,
        challenge: String,
    },
    Busy,
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

    /// The same for everything that is not there or not one's own.
    pub fn no_session() -> Self {
        let text = "Not Found: there is no such session; begin one with initialize";
        Self::protocol(StatusCode::NOT_FOUND, ErrorCode::INVALID_REQUEST, text, None)
    }

    pub fn into_response(self) -> Response<Reply> {
        let (status, body) = match &self {
            Self::Plain(status, text) => (*status, Bytes::from_static(text.as_bytes())),
            Self::Protocol(status, fault) => {
                let error = JsonRpcError::new(fault.id.clone(), (*fault.error).clone());
                (*status, serde_json::to_vec(&error).unwrap_or_default().into())
            }
            Self::Elsewhere { path } => {
                let text = format!("Not Found: the endpoint is at {path}");
                (StatusCode::NOT_FOUND, text.into())
            }
            Self::NotAllowed { .. } => {
                (StatusCode::METHOD_NOT_ALLOWED, Bytes::from_static(b"Method Not Allowed"))
            }
            Self::Unknown { status, .. } => {
                let text = match *status {
                    StatusCode::FORBIDDEN => "Forbidden: the token has not the scope this needs",
                    _ => {
                        "Unauthorized: send a token this server knows, as Authorization: Bearer TOKEN"
                    }
                };
                (*status, Bytes::from_static(text.as_bytes()))
            }
            Self::Busy => {
                let text = "Service Unavailable: the server is busy; try again later";
                (StatusCode::SERVICE_UNAVAILABLE, Bytes::from_static(text.as_bytes()))
            }
        };
        let mut response = Response::new(Reply::document(body));
        *response.status_mut() = status;
        let kind = match &self {
            Self::Protocol(..) => "application/json",
            _ => "text/plain; charset=utf-8",
        };
        let headers = response.headers_mut();
        // What follows a head that is wrong cannot be trusted to be a request, and whoever did not
        // say who they are keeps no place.
        if matches!(self, Self::Plain(..) | Self::Elsewhere { .. } | Self::Unknown { .. }) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        match self {
            Self::NotAllowed { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::Unknown { challenge, .. } => {
                if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                    headers.insert(WWW_AUTHENTICATE, challenge);
                }
            }
            Self::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Plain(..) | Self::Protocol(..) | Self::Elsewhere { .. } => {}
        }
        response
    }
}
