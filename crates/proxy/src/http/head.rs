//! The head of an HTTP request: what is asked for, and what is passed on of it.
//!
//! Strict, because whoever answers reads it again: what could be read in two ways is not passed on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Status};
use thiserror::Error;

use super::body::Framing;
use super::fields::{end_to_end, is_named, length_of, push_field, values};
use crate::target::label;

#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// Host and port, as they were written.
    pub authority: String,
    pub kind: Kind,
    pub framing: Framing,
    /// What the command calls itself.
    pub label: Option<String>,
    /// What is passed on as it came.
    fields: Vec<(String, Vec<u8>)>,
    /// HTTP/1.0, whose clients do not know chunks.
    pub old: bool,
    /// Whether another request may follow.
    pub keep: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Connect,
    Plain { path: String },
}

/// Why a head is not a request that can be passed on.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error("this is not a request")]
    Malformed,
    #[error("the request has too many fields")]
    TooManyFields,
    #[error("a line of the request does not end with CR LF")]
    LineEnding,
    #[error("the request has more than one host")]
    SeveralHosts,
    #[error("this is a proxy; a request needs a whole URL")]
    NotAUrl,
    #[error("only http is passed on; CONNECT is for everything else")]
    Scheme,
    #[error("a URL is asked for without its fragment")]
    Fragment,
    #[error("the length of the request is given more than once")]
    SeveralLengths,
    #[error("the request has both a length and a transfer encoding")]
    LengthAndEncoding,
    #[error("the length of the request is not a number")]
    Length,
    #[error("the transfer encoding of the request is not known")]
    Encoding,
}

impl Request {
    pub fn parse(head: &[u8], most_fields: usize) -> Result<Self, RequestError> {
        let mut room = vec![EMPTY_HEADER; most_fields];
        let mut parsed = httparse::Request::new(&mut room);
        match parsed.parse(head) {
            Ok(Status::Complete(size)) if size == head.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooManyFields),
            _ => return Err(RequestError::Malformed),
        }
        // The parser takes a lone LF for the end of a line; others may not.
        let lone = |at: usize| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r');
        if (0..head.len()).any(lone) {
            return Err(RequestError::LineEnding);
        }
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(RequestError::Malformed);
        };
        let fields = &*parsed.headers;
        let old = parsed.version == Some(0);
        let (authority, kind) = read_target(method, target)?;
        if values(fields, "host").count() > 1 {
            return Err(RequestError::SeveralHosts);
        }
        Ok(Self {
            method: method.to_owned(),
            authority: authority.to_owned(),
            kind,
            framing: request_framing(fields, old)?,
            label: values(fields, "proxy-authorization").next().and_then(basic),
            fields: end_to_end(fields)
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
            old,
            keep: !old && !is_named(fields, "close"),
        })
    }

    /// What is sent instead. The host is the one that was checked, whatever else the request said.
    pub fn head_for(&self, host: &str, path: &str) -> Vec<u8> {
        let version = if self.old { "1.0" } else { "1.1" };
        let mut head =
            format!("{} {path} HTTP/{version}\r\nHost: {host}\r\n", self.method).into_bytes();
        for (name, value) in &self.fields {
            push_field(&mut head, name, value);
        }
        head.extend_from_slice(self.framing.field().as_bytes());
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

fn read_target<'a>(method: &str, target: &'a str) -> Result<(&'a str, Kind), RequestError> {
    if method == "CONNECT" {
        return Ok((target, Kind::Connect));
    }
    let Some((scheme, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return Err(RequestError::NotAUrl);
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(RequestError::Scheme);
    }
    if rest.contains('#') {
        return Err(RequestError::Fragment);
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = match path.as_bytes().first() {
        Some(b'/') => path.to_owned(),
        None if method == "OPTIONS" => "*".to_owned(),
        _ => format!("/{path}"),
    };
    Ok((authority, Kind::Plain { path }))
}

fn request_framing(fields: &[Header<'_>], old: bool) -> Result<Framing, RequestError> {
    let mut lengths = values(fields, "content-length");
    let mut codings = values(fields, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        _ if lengths.next().or(codings.next()).is_some() => Err(RequestError::SeveralLengths),
        (None, None) => Ok(Framing::Empty),
        (Some(_), Some(_)) => Err(RequestError::LengthAndEncoding),
        (Some(length), None) => length_of(length).map(Framing::Length).ok_or(RequestError::Length),
        (None, Some(coding)) if !old && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        (None, Some(_)) => Err(RequestError::Encoding),
    }
}

fn basic(value: &[u8]) -> Option<String> {
    let (scheme, rest) = value.split_at_checked("basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    label(decoded.split(|&byte| byte == b':').next().unwrap_or_default())
}
