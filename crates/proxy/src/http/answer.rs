//! What the proxy itself answers in HTTP when it does not pass something on.

use std::io;

use crate::door::Closed;

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// One line of ASCII. Clients whose tunnel fails show the status line and nothing else, so all
    /// of it is there as well.
    pub text: String,
}

impl Answer {
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    fn phrase(&self) -> &'static str {
        match self.status {
            400 => "Bad Request",
            403 => "Forbidden",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            504 => "Gateway Timeout",
            _ => "Bad Gateway",
        }
    }

    /// The last one of its connection.
    pub fn message(&self) -> String {
        let Self { status, text } = self;
        let (phrase, length) = (self.phrase(), text.len() + "mcpz: \n".len());
        format!(
            "HTTP/1.1 {status} {phrase}: {text}\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\nmcpz: {text}\n"
        )
    }
}

impl From<Closed> for Answer {
    fn from(closed: Closed) -> Self {
        let status = match &closed {
            Closed::Refused(_) => 403,
            Closed::Unreachable(_, error) if error.kind() == io::ErrorKind::TimedOut => 504,
            Closed::Unknown(_) | Closed::Unreachable(..) => 502,
        };
        Self::new(status, closed.to_string())
    }
}
