//! What a server answers, passed on to the command with the frame its connection needs.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

use httparse::{EMPTY_HEADER, Header, Status};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::body::{BodyError, Framing, relay};
use super::fields::{end_to_end, length_of, push_field, values};
use super::head::Request;
use crate::intake::Intake;
use crate::limits::Limits;
use crate::traffic::Count;

/// How many "not yet"s an answer may be preceded by.
const INTERIM: usize = 64;

struct Response {
    status: u16,
    /// What the server's body is framed with.
    framing: Framing,
    /// Status and fields, without those that frame.
    head: Vec<u8>,
}

/// What is to know about the request that is answered.
pub struct Answering<'a> {
    pub request: &'a Request,
    /// Whether all of its body was read.
    pub heard: &'a AtomicBool,
    pub limits: &'a Limits,
    pub count: &'a Count,
}

impl Answering<'_> {
    /// Passes the answer on; whether the connection is good for another.
    pub async fn pass<R, W>(&self, server: &mut Intake<R>, client: &mut W) -> io::Result<bool>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Self { request, heard, limits, count } = *self;
        for _ in 0..INTERIM {
            let head = server.head(limits.head_bytes).await?;
            let Response { status, framing, mut head } = Response::parse(&head, request, limits)?;
            if (100..200).contains(&status) {
                // Old clients do not know what to make of it.
                if !request.old {
                    head.extend_from_slice(b"\r\n");
                    client.write_all(&head).await?;
                    count.add(head.len());
                }
                continue;
            }
            let passed = match framing {
                Framing::Chunked | Framing::UntilClose if request.old => Framing::UntilClose,
                Framing::Chunked | Framing::UntilClose => Framing::Chunked,
                framing => framing,
            };
            let keep = request.keep && heard.load(Ordering::Relaxed);
            head.extend_from_slice(passed.field().as_bytes());
            let connection = if keep { "keep-alive" } else { "close" };
            push_field(&mut head, "Connection", connection.as_bytes());
            head.extend_from_slice(b"\r\n");
            client.write_all(&head).await?;
            count.add(head.len());
            return match relay((server, framing), (client, passed), count).await {
                Ok(()) => Ok(keep),
                Err(BodyError::Read(error) | BodyError::Write(error)) => Err(error),
            };
        }
        Err(ErrorKind::InvalidData.into())
    }
}

impl Response {
    fn parse(bytes: &[u8], request: &Request, limits: &Limits) -> io::Result<Self> {
        let mut room = vec![EMPTY_HEADER; limits.fields];
        let mut parsed = httparse::Response::new(&mut room);
        match parsed.parse(bytes) {
            Ok(Status::Complete(_)) => {}
            _ => return Err(ErrorKind::InvalidData.into()),
        }
        // 101 would change what is spoken, and nobody asked for it: the request's wish is left out.
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
            _ => framing(fields)?,
        };
        Ok(Self { status, framing, head })
    }
}

/// More lenient than with requests: after an answer nothing more is read from the server.
fn framing(fields: &[Header<'_>]) -> io::Result<Framing> {
    let mut codings = values(fields, "transfer-encoding");
    let mut lengths = values(fields, "content-length");
    match (codings.next(), codings.next(), lengths.next()) {
        (Some(coding), None, _) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Some(_), ..) => Err(ErrorKind::InvalidData.into()),
        (None, _, None) => Ok(Framing::UntilClose),
        (None, _, Some(length)) => match length_of(length) {
            Some(size) if lengths.all(|other| other == length) => Ok(Framing::Length(size)),
            _ => Err(ErrorKind::InvalidData.into()),
        },
    }
}
