//! The fields of a head: found, filtered and written.

use httparse::Header;

/// Fields that concern one connection, and those that are written anew.
const OWN: [&str; 13] = [
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

/// The values of all fields with a name.
pub fn values<'a>(fields: &'a [Header<'a>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

/// The fields that are not only for us.
pub fn end_to_end<'a>(fields: &'a [Header<'a>]) -> impl Iterator<Item = &'a Header<'a>> {
    fields.iter().filter(|field| {
        let own = OWN.iter().any(|own| field.name.eq_ignore_ascii_case(own));
        !own && !is_named(fields, field.name)
    })
}

/// Whether the connection's own field names something.
pub fn is_named(fields: &[Header<'_>], name: &str) -> bool {
    let lists = values(fields, "connection").chain(values(fields, "proxy-connection"));
    let mut words = lists.flat_map(|list| list.split(|&byte| byte == b','));
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

pub fn length_of(value: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(value).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
