//! The responses that the proxy writes itself.
//!
//! When a `CONNECT` fails, clients show the status line and nothing else, so that line carries the whole text.
//! Every text must therefore be one line of ASCII.

use std::io::ErrorKind;

use thiserror::Error;

use super::request::RequestError;
use crate::connector::ConnectError;

/// Why a request gets a response from the proxy instead of its server.
#[derive(Debug, Error)]
pub enum HttpError {
    #[error("the request took too long to arrive")]
    HeadTimeout,
    #[error("the head of the request is too long")]
    HeadTooLong,
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the request body is malformed")]
    RequestBody,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the server did not respond")]
    ResponseTimeout,
    #[error("the server's response is malformed")]
    Response,
}

impl HttpError {
    /// The whole response, which is the last one on its connection.
    pub fn response(&self) -> String {
        let (status, phrase) = self.status();
        let length = format!("mcpz: {self}\n").len();
        format!(
            "HTTP/1.1 {status} {phrase}: {self}\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\nmcpz: {self}\n"
        )
    }

    fn status(&self) -> (u16, &'static str) {
        match self {
            Self::HeadTimeout => (408, "Request Timeout"),
            Self::HeadTooLong | Self::Request(RequestError::TooManyFields) => {
                (431, "Request Header Fields Too Large")
            }
            Self::Request(_) | Self::RequestBody => (400, "Bad Request"),
            Self::Connect(ConnectError::Refused(_)) => (403, "Forbidden"),
            Self::Connect(ConnectError::Unreachable(_, error))
                if error.kind() == ErrorKind::TimedOut =>
            {
                (504, "Gateway Timeout")
            }
            Self::Connect(_) | Self::Response => (502, "Bad Gateway"),
            Self::ResponseTimeout => (504, "Gateway Timeout"),
        }
    }
}
