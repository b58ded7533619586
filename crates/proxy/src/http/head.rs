//! The head of an HTTP request: what is asked for, and what is passed on of it.
//!
//! Strict, because whoever answers reads it again: what could be read in two ways is not passed on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Status};

use super::answer::Answer;
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

impl Request {
    pub fn parse(head: &[u8], most_fields: usize) -> Result<Self, Answer> {
        let bad = |text: &str| Answer::new(400, text);
        let mut room = vec![EMPTY_HEADER; most_fields];
        let mut parsed = httparse::Request::new(&mut room);
        match parsed.parse(head) {
            Ok(Status::Complete(size)) if size == head.len() => {}
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Answer::new(431, "the request has too many fields"));
            }
            _ => return Err(bad("this is not a request")),
        }
        // The parser takes a lone LF for the end of a line; others may not.
        let lone = |at: usize| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r');
        if (0..head.len()).any(lone) {
            return Err(bad("a line of the request does not end with CR LF"));
        }
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(bad("this is not a request"));
        };
        let fields = &*parsed.headers;
        let old = parsed.version == Some(0);
        let (authority, kind) = read_target(method, target).map_err(bad)?;
        if values(fields, "host").count() > 1 {
            return Err(bad("the request has more than one host"));
        }
        Ok(Self {
            method: method.to_owned(),
            authority: authority.to_owned(),
            kind,
            framing: request_framing(fields, old).map_err(bad)?,
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

fn read_target<'a>(method: &str, target: &'a str) -> Result<(&'a str, Kind), &'static str> {
    if method == "CONNECT" {
        return Ok((target, Kind::Connect));
    }
    let Some((scheme, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return Err("this is a proxy; a request needs a whole URL");
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("only http is passed on; CONNECT is for everything else");
    }
    if rest.contains('#') {
        return Err("a URL is asked for without its fragment");
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = match path.as_bytes().first() {
        Some(b'/') => path.to_owned(),
        None if method == "OPTIONS" => "*".to_owned(),
        _ => format!("/{path}"),
    };
    Ok((authority, Kind::Plain { path }))
}

fn request_framing(fields: &[Header<'_>], old: bool) -> Result<Framing, &'static str> {
    let mut lengths = values(fields, "content-length");
    let mut codings = values(fields, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        _ if lengths.next().or(codings.next()).is_some() => {
            Err("the length of the request is given more than once")
        }
        (None, None) => Ok(Framing::Empty),
        (Some(_), Some(_)) => Err("the request has both a length and a transfer encoding"),
        (Some(length), None) => length_of(length)
            .map(Framing::Length)
            .ok_or("the length of the request is not a number"),
        (None, Some(coding)) if !old && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        (None, Some(_)) => Err("the transfer encoding of the request is not known"),
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
