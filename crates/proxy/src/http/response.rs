//! Passes a server's response on to the client.
//!
//! The response gets the framing that the client's connection needs: a body that ends when the server closes
//! becomes chunked, so that the connection can carry another request.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

use httparse::{EMPTY_HEADER, Header, Status};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::body::{BodyError, Framing, relay};
use super::fields::{end_to_end, parse_length, push_field, values};
use super::request::Request;
use crate::limits::Limits;
use crate::reader::Reader;
use crate::traffic::Counter;

/// How many heads are read for one response: interim ones and the final one.
const MAX_HEADS: usize = 64;

struct Response {
    status: u16,
    /// How the server frames the body.
    framing: Framing,
    /// The status line and the fields to pass on, without those that frame the body.
    head: Vec<u8>,
}

pub struct ResponseRelay<'a> {
    pub request: &'a Request,
    /// Whether the server has the whole body of the request.
    pub body_sent: &'a AtomicBool,
    pub limits: &'a Limits,
    pub counter: &'a Counter,
}

impl ResponseRelay<'_> {
    /// Passes on interim responses and the final one; returns whether the client may send another request.
    pub async fn run<R, W>(&self, server: &mut Reader<R>, client: &mut W) -> io::Result<bool>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Self { request, body_sent, limits, counter } = *self;
        for _ in 0..MAX_HEADS {
            let head = server.read_head(limits.head_bytes).await?;
            let Response { status, framing, mut head } = Response::parse(&head, request, limits)?;
            if (100..200).contains(&status) {
                if !request.http_1_0 {
                    head.extend_from_slice(b"\r\n");
                    client.write_all(&head).await?;
                    counter.add(head.len());
                }
                continue;
            }
            let client_framing = match framing {
                Framing::Chunked | Framing::UntilClose if request.http_1_0 => Framing::UntilClose,
                Framing::Chunked | Framing::UntilClose => Framing::Chunked,
                framing => framing,
            };
            let keep_alive = request.keep_alive && body_sent.load(Ordering::Relaxed);
            head.extend_from_slice(client_framing.field().as_bytes());
            let connection = if keep_alive { "keep-alive" } else { "close" };
            push_field(&mut head, "Connection", connection.as_bytes());
            head.extend_from_slice(b"\r\n");
            client.write_all(&head).await?;
            counter.add(head.len());
            return match relay((server, framing), (client, client_framing), counter).await {
                Ok(()) => Ok(keep_alive),
                Err(BodyError::Read(error) | BodyError::Write(error)) => Err(error),
            };
        }
        Err(ErrorKind::InvalidData.into())
    }
}

impl Response {
    fn parse(bytes: &[u8], request: &Request, limits: &Limits) -> io::Result<Self> {
        let mut headers = vec![EMPTY_HEADER; limits.fields];
        let mut parsed = httparse::Response::new(&mut headers);
        match parsed.parse(bytes) {
            Ok(Status::Complete(_)) => {}
            _ => return Err(ErrorKind::InvalidData.into()),
        }
        // 101 changes the protocol. The server was not asked to: `Upgrade` is not forwarded.
        let status = parsed.code.filter(|&code| code != 101).ok_or(ErrorKind::InvalidData)?;
        let fields = &*parsed.headers;
        let mut head =
            format!("HTTP/1.1 {status} {}\r\n", parsed.reason.unwrap_or("")).into_bytes();
        for field in end_to_end(fields) {
            push_field(&mut head, field.name, field.value);
        }
        let bodiless = request.method == "HEAD" || status == 304;
        if bodiless && let Some(length) = values(fields, "content-length").next() {
            push_field(&mut head, "Content-Length", length);
        }
        let framing = match status {
            _ if bodiless => Framing::Empty,
            100..200 | 204 => Framing::Empty,
            _ => parse_framing(fields)?,
        };
        Ok(Self { status, framing, head })
    }
}

/// More lenient than for requests: nothing is read from the server after its response, so there is no next
/// message whose start could be misread.
fn parse_framing(fields: &[Header<'_>]) -> io::Result<Framing> {
    let mut codings = values(fields, "transfer-encoding");
    let mut lengths = values(fields, "content-length");
    match (codings.next(), codings.next(), lengths.next()) {
        (Some(coding), None, _) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Some(_), ..) => Err(ErrorKind::InvalidData.into()),
        (None, _, None) => Ok(Framing::UntilClose),
        (None, _, Some(length)) => match parse_length(length) {
            Some(size) if lengths.all(|other| other == length) => Ok(Framing::Length(size)),
            _ => Err(ErrorKind::InvalidData.into()),
        },
    }
}
