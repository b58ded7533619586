//! The head of an HTTP request: what the client asks for, and the head the server gets instead.
//!
//! Parsing is strict because the server parses the request again: a head that two parsers could read
//! differently is refused, never forwarded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Status};
use thiserror::Error;

use super::body::Framing;
use super::fields::{end_to_end, is_in_connection, parse_length, push_field, values};
use crate::target::parse_label;

#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// Host and port as the client wrote them; not checked yet.
    pub authority: String,
    pub form: Form,
    pub framing: Framing,
    pub label: Option<String>,
    /// The fields that are forwarded unchanged.
    fields: Vec<(String, Vec<u8>)>,
    /// HTTP/1.0, which knows neither chunks nor interim responses.
    pub http_1_0: bool,
    /// Whether the client may send another request on its connection.
    pub keep_alive: bool,
}

/// How the request names its target.
#[derive(Debug, PartialEq, Eq)]
pub enum Form {
    Connect,
    Url { path: String },
}

/// Why a request cannot be forwarded.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error("this is not an HTTP request")]
    Malformed,
    #[error("the request has too many headers")]
    TooManyFields,
    #[error("a line of the request does not end with CR LF")]
    LineEnding,
    #[error("the request has more than one host")]
    SeveralHosts,
    #[error("this is a proxy; a request needs a full URL")]
    NotAUrl,
    #[error("the proxy forwards only http URLs; use CONNECT for others")]
    Scheme,
    #[error("the URL must not have a fragment")]
    Fragment,
    #[error("the length of the request is given more than once")]
    SeveralLengths,
    #[error("the request has both a length and a transfer encoding")]
    LengthAndEncoding,
    #[error("the length of the request is not a number")]
    Length,
    #[error("the request has an unknown transfer encoding")]
    Encoding,
}

impl Request {
    pub fn parse(head: &[u8], max_fields: usize) -> Result<Self, RequestError> {
        let mut headers = vec![EMPTY_HEADER; max_fields];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(Status::Complete(size)) if size == head.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooManyFields),
            _ => return Err(RequestError::Malformed),
        }
        // `httparse` accepts a lone LF as the end of a line; the server may not.
        let lone = |at: usize| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r');
        if (0..head.len()).any(lone) {
            return Err(RequestError::LineEnding);
        }
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(RequestError::Malformed);
        };
        let fields = &*parsed.headers;
        let http_1_0 = parsed.version == Some(0);
        let (authority, form) = split_target(method, target)?;
        if values(fields, "host").count() > 1 {
            return Err(RequestError::SeveralHosts);
        }
        Ok(Self {
            method: method.to_owned(),
            authority: authority.to_owned(),
            form,
            framing: parse_framing(fields, http_1_0)?,
            label: values(fields, "proxy-authorization").next().and_then(parse_basic),
            fields: end_to_end(fields)
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
            http_1_0,
            keep_alive: !http_1_0 && !is_in_connection(fields, "close"),
        })
    }

    /// The head the server gets. It names the host that was checked, whatever `Host` the client sent.
    pub fn forwarded_head(&self, host: &str, path: &str) -> Vec<u8> {
        let version = if self.http_1_0 { "1.0" } else { "1.1" };
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

/// Splits a request target into its authority and the rest.
fn split_target<'a>(method: &str, target: &'a str) -> Result<(&'a str, Form), RequestError> {
    if method == "CONNECT" {
        return Ok((target, Form::Connect));
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
    Ok((authority, Form::Url { path }))
}

fn parse_framing(fields: &[Header<'_>], http_1_0: bool) -> Result<Framing, RequestError> {
    let mut lengths = values(fields, "content-length");
    let mut codings = values(fields, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        _ if lengths.next().or(codings.next()).is_some() => Err(RequestError::SeveralLengths),
        (None, None) => Ok(Framing::Empty),
        (Some(_), Some(_)) => Err(RequestError::LengthAndEncoding),
        (Some(length), None) => {
            parse_length(length).map(Framing::Length).ok_or(RequestError::Length)
        }
        (None, Some(coding)) if !http_1_0 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        (None, Some(_)) => Err(RequestError::Encoding),
    }
}

/// The label in the value of a `Proxy-Authorization` field: its user name.
fn parse_basic(value: &[u8]) -> Option<String> {
    let (scheme, rest) = value.split_at_checked("basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    parse_label(decoded.split(|&byte| byte == b':').next().unwrap_or_default())
}
