//! The media type of an output, guessed from its first bytes.

use crate::output::Output;
use crate::stream::Stream;

/// How many bytes are examined.
const SNIFFED: usize = 8 << 10;

/// The media type of a stream.
pub fn mime(output: &Output, stream: Stream) -> &'static str {
    let start = output.read_at(stream, 0, SNIFFED).unwrap_or_default();
    if let Some(kind) = infer::get(&start).filter(|kind| !kind.mime_type().starts_with("text/")) {
        return kind.mime_type();
    }
    if output.content_kind(stream).binary {
        return "application/octet-stream";
    }
    let whole = output.kept_length(stream) <= start.len() as u64;
    text(&start, whole)
}

/// The media type of a text, judged by its start or by all of it.
fn text(start: &[u8], whole: bool) -> &'static str {
    let trimmed = start.trim_ascii_start();
    match trimmed.first() {
        Some(b'{' | b'[') if are_json_lines(trimmed) => "application/x-ndjson",
        Some(b'{' | b'[') if !whole || is_json(start) => "application/json",
        Some(b'<') => markup(trimmed),
        Some(_) if is_csv(start, whole) => "text/csv",
        _ => "text/plain",
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}

/// Whether the first lines are separate JSON documents.
fn are_json_lines(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.next().is_some_and(is_json) && lines.next().is_some_and(is_document)
}

/// Whether a line is a document, or the start of one that is cut off.
fn is_document(line: &[u8]) -> bool {
    is_json(line)
        || serde_json::from_slice::<serde_json::Value>(line).is_err_and(|error| error.is_eof())
}

/// HTML or XML, judged by the first tag.
fn markup(bytes: &[u8]) -> &'static str {
    let beginning = bytes[..bytes.len().min(512)].to_ascii_lowercase();
    let begins = |with: &str| beginning.starts_with(with.as_bytes());
    if begins("<!doctype html") || begins("<html") || begins("<head") || begins("<body") {
        return "text/html";
    }
    let tag = beginning.get(1).is_some_and(u8::is_ascii_alphabetic);
    let named = beginning.windows(6).any(|part| part == b"xmlns=");
    let closed =
        || bytes.trim_ascii_end().ends_with(b">") && bytes.windows(2).any(|two| two == b"</");
    match begins("<?xml") || begins("<!doctype") || named || (tag && closed()) {
        true => "application/xml",
        false => "text/plain",
    }
}

/// Whether there are several lines, all with the same number of fields, at least two.
fn is_csv(bytes: &[u8], whole: bool) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let text = if whole { text } else { text.rsplit_once('\n').map_or("", |(lines, _)| lines) };
    let mut fields = text.lines().filter(|line| !line.trim().is_empty()).map(commas);
    let Some(first @ Some(1..)) = fields.next() else { return false };
    let mut rest = fields.peekable();
    rest.peek().is_some() && rest.all(|commas| commas == first)
}

/// The number of commas outside quotes; `None` if a space follows one, as in prose.
fn commas(line: &str) -> Option<usize> {
    let (mut quoted, mut count) = (false, 0);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted && line.as_bytes().get(at + 1) == Some(&b' ') => return None,
            b',' if !quoted => count += 1,
            _ => {}
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::spill::{Spill, SpillSettings};

    #[test]
    fn the_media_type_is_guessed_from_the_content() {
        for (bytes, expected) in [
            (&b"hello\n"[..], "text/plain"),
            (b"", "text/plain"),
            (b"{\"a\": 1}\n", "application/json"),
            (b"{not json}\n", "text/plain"),
            (b"{\"a\": 1}\n{\"a\": 2}\n", "application/x-ndjson"),
            (b"[\n1,\n2\n]\n", "application/json"),
            (b"<!DOCTYPE html><p>hi", "text/html"),
            (b"<?xml version=\"1.0\"?><a/>", "application/xml"),
            (b"<a><b>1</b></a>\n", "application/xml"),
            (b"<stdin>:1: warning\n", "text/plain"),
            (b"name,age\n\"A, B\",3\nC,4\n", "text/csv"),
            (b"one, two\nthree, four\n", "text/plain"),
            (b"only,one line\n", "text/plain"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
            (b"\x1f\x8b\x08\0", "application/gzip"),
            (b"a\0\0b", "application/octet-stream"),
            (b"./a\0./b\0", "text/plain"),
        ] {
            let spill = Arc::new(Spill::new(SpillSettings::new("/nonexistent")));
            let output = Output::new(spill.account().quota(None));
            output.append(Stream::Stdout, bytes);
            assert_eq!(mime(&output, Stream::Stdout), expected, "{bytes:?}");
        }
    }
}
