//! What an output is, told by its first bytes.

use crate::output::{Output, Stream};

/// How much of the beginning is looked at.
const LOOK: usize = 8 << 10;

/// The media type of a stream.
pub fn mime(output: &Output, stream: Stream) -> &'static str {
    let start = output.read_at(stream, 0, LOOK).unwrap_or_default();
    if let Some(kind) = infer::get(&start).filter(|kind| !kind.mime_type().starts_with("text/")) {
        return kind.mime_type();
    }
    if output.nature(stream).binary {
        return "application/octet-stream";
    }
    let whole = output.kept_length(stream) <= start.len() as u64;
    match start.trim_ascii_start().first() {
        Some(b'{' | b'[') if !whole || is_json(&start) => "application/json",
        _ => "text/plain",
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::spill::{Spill, SpillSettings};

    #[test]
    fn the_content_says_what_it_is() {
        for (bytes, expected) in [
            (&b"hello\n"[..], "text/plain"),
            (b"", "text/plain"),
            (b"{\"a\": 1}\n", "application/json"),
            (b"{not json}\n", "text/plain"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
            (b"\x1f\x8b\x08\0", "application/gzip"),
            (b"a\0b", "application/octet-stream"),
        ] {
            let spill = Arc::new(Spill::new(SpillSettings::new("/nonexistent")));
            let output = Output::new(spill.account().quota(None));
            output.append(Stream::Stdout, bytes);
            assert_eq!(mime(&output, Stream::Stdout), expected, "{bytes:?}");
        }
    }
}
