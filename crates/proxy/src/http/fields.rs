//! The fields of a head: finding, filtering and writing them.

use httparse::Header;

/// Fields that are never forwarded: they concern a single connection, or the proxy writes its own.
const NOT_FORWARDED: [&str; 13] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

pub fn push_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// The values of all fields with this name.
pub fn values<'a>(fields: &'a [Header<'a>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

/// The fields to forward: all but [`NOT_FORWARDED`] and those that `Connection` lists.
pub fn end_to_end<'a>(fields: &'a [Header<'a>]) -> impl Iterator<Item = &'a Header<'a>> {
    fields.iter().filter(|field| {
        let dropped = NOT_FORWARDED.iter().any(|name| field.name.eq_ignore_ascii_case(name));
        !dropped && !is_in_connection(fields, field.name)
    })
}

/// Whether `Connection` or `Proxy-Connection` lists a word.
pub fn is_in_connection(fields: &[Header<'_>], word: &str) -> bool {
    let lists = values(fields, "connection").chain(values(fields, "proxy-connection"));
    let mut words = lists.flat_map(|list| list.split(|&byte| byte == b','));
    words.any(|listed| listed.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// Parses a `Content-Length`. Only digits: `u64::from_str` would accept a sign.
pub fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(value).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
