//! Whether a stream is plain text, other text or binary, decided as its bytes arrive.
//!
//! This decides how pages are read: plain text is shown byte for byte, so a page is a single read; other text has
//! to be rendered first.

use memchr::memchr;

use crate::text::whole_characters;

/// How much of a stream's start decides whether it is text.
const BEGINNING: usize = 8 << 10;

/// Updated with every piece that arrives.
#[derive(Debug, Clone)]
pub struct ContentKind {
    /// Text that every rendering with `\n` line ends shows byte for byte.
    pub plain: bool,
    /// Not text: it contains NUL bytes, or its start has many bytes that are not UTF-8.
    pub binary: bool,
    /// How many bytes were examined so far, and how many of those at the start are not valid UTF-8.
    examined: usize,
    invalid: usize,
    /// An incomplete character at the end of the last piece.
    partial: Vec<u8>,
}

impl Default for ContentKind {
    fn default() -> Self {
        Self { plain: true, binary: false, examined: 0, invalid: 0, partial: Vec::new() }
    }
}

impl ContentKind {
    pub fn update(&mut self, bytes: &[u8]) {
        if self.partial.is_empty() && is_simple(bytes) {
            self.examined = self.examined.saturating_add(bytes.len());
            return;
        }
        self.examine(bytes);
        self.binary = self.binary || memchr(0, bytes).is_some();
        if !self.plain {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let whole = whole_characters(&self.partial).len();
        self.plain = self.partial.len() - whole < 4 && is_plain(&self.partial[..whole]);
        self.partial.drain(..whole);
    }

    /// Text in a legacy encoding has a few invalid bytes; an image has many.
    fn examine(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.examined).min(bytes.len());
        let invalid = bytes[..room].utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
        self.examined = self.examined.saturating_add(bytes.len());
        self.invalid += invalid;
        let many = self.invalid >= 4 && self.invalid * 8 > self.examined.min(BEGINNING);
        self.binary = self.binary || (invalid > 0 && many);
    }

    /// Whether the stream, so far, ends in the middle of a character.
    pub fn ends_mid_character(&self) -> bool {
        !self.partial.is_empty()
    }
}

/// Printable ASCII, newlines and tabs. Most output is, and this check is fast.
fn is_simple(bytes: &[u8]) -> bool {
    let odd = |byte: &u8| {
        u8::from(byte.wrapping_sub(0x20) > 0x5e)
            & u8::from(*byte != b'\n')
            & u8::from(*byte != b'\t')
    };
    // No early exit within a block, so that the compiler can vectorise it.
    bytes.chunks(256).all(|block| block.iter().map(odd).fold(0, |any, odd| any | odd) == 0)
}

fn is_plain(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(pieces: &[&[u8]]) -> ContentKind {
        let mut kind = ContentKind::default();
        for piece in pieces {
            kind.update(piece);
        }
        kind
    }

    #[test]
    fn control_characters_and_invalid_bytes_are_not_plain() {
        for odd in [&b"a\rb"[..], b"\x1b[1m", b"a\xffb", b"\xe6\x97b", b"\0"] {
            assert!(!kind(&[odd]).plain, "{odd:?}");
        }
        assert!(kind(&[b"\0"]).binary && !kind(&[b"\xff"]).binary);
    }

    #[test]
    fn an_image_is_binary_and_text_in_a_legacy_encoding_is_not() {
        assert!(kind(&[b"\xff\xd8\xff\xe0\x01..JFIF\x81\x82"]).binary);
        assert!(!kind(&[b"L'\xe9t\xe9 fran\xe7ais, c'est d\xe9j\xe0 fini pour nous tous"]).binary);
        let late = [&b"text\n".repeat(2000)[..], &[0xff; 5000]].concat();
        assert!(!kind(&[&late]).binary, "earlier pages were text");
    }

    proptest! {
        #[test]
        fn characters_may_be_cut_anywhere(text in "[a-zäß日🦀\n]{0,50}", cut in any::<prop::sample::Index>()) {
            let cut = cut.index(text.len() + 1);
            let kind = kind(&[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
            prop_assert!(kind.plain && !kind.ends_mid_character());
        }
    }
}
