//! What kind of bytes a stream has so far, told while they pass.

use memchr::memchr;

use crate::text::whole_characters;

/// How much of the beginning says whether a stream is text.
const BEGINNING: usize = 8 << 10;

/// Kept up to date with every piece that arrives.
#[derive(Debug, Clone)]
pub struct Nature {
    /// Text that any view with plain line ends shows as it is.
    pub plain: bool,
    /// Not text at all: it has zero bytes, or begins with much that is in no text.
    pub binary: bool,
    /// How much of the beginning was looked at, and how many bytes of it are of no character.
    looked: usize,
    broken: usize,
    /// The beginning of a character at the end of the last piece.
    carry: Vec<u8>,
}

impl Default for Nature {
    fn default() -> Self {
        Self { plain: true, binary: false, looked: 0, broken: 0, carry: Vec::new() }
    }
}

impl Nature {
    pub fn note(&mut self, bytes: &[u8]) {
        if self.carry.is_empty() && is_simple(bytes) {
            self.looked = self.looked.saturating_add(bytes.len());
            return;
        }
        self.look(bytes);
        self.binary = self.binary || memchr(0, bytes).is_some();
        if !self.plain {
            return;
        }
        self.carry.extend_from_slice(bytes);
        let whole = whole_characters(&self.carry).len();
        self.plain = self.carry.len() - whole < 4 && is_plain(&self.carry[..whole]);
        self.carry.drain(..whole);
    }

    /// Text in an old encoding has some bytes that are of no character; an image has many.
    fn look(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.looked).min(bytes.len());
        let broken = bytes[..room].utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
        self.looked = self.looked.saturating_add(bytes.len());
        self.broken += broken;
        let many = self.broken >= 4 && self.broken * 8 > self.looked.min(BEGINNING);
        self.binary = self.binary || (broken > 0 && many);
    }

    /// Whether the stream ends, so far, in the middle of a character.
    pub fn is_cut(&self) -> bool {
        !self.carry.is_empty()
    }
}

/// Printable ASCII and line ends: most output, and quickly told.
fn is_simple(bytes: &[u8]) -> bool {
    let odd = |byte: &u8| {
        u8::from(byte.wrapping_sub(0x20) > 0x5e)
            & u8::from(*byte != b'\n')
            & u8::from(*byte != b'\t')
    };
    // Blocks without a way out in the middle are what the compiler makes fast.
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

    fn nature(pieces: &[&[u8]]) -> Nature {
        let mut nature = Nature::default();
        for piece in pieces {
            nature.note(piece);
        }
        nature
    }

    #[test]
    fn a_control_character_or_a_broken_one_is_not_plain() {
        for odd in [&b"a\rb"[..], b"\x1b[1m", b"a\xffb", b"\xe6\x97b", b"\0"] {
            assert!(!nature(&[odd]).plain, "{odd:?}");
        }
        assert!(nature(&[b"\0"]).binary && !nature(&[b"\xff"]).binary);
    }

    #[test]
    fn an_image_is_binary_and_text_in_an_old_encoding_is_not() {
        assert!(nature(&[b"\xff\xd8\xff\xe0\x01..JFIF\x81\x82"]).binary);
        assert!(
            !nature(&[b"L'\xe9t\xe9 fran\xe7ais, c'est d\xe9j\xe0 fini pour nous tous"]).binary
        );
        let late = [&b"text\n".repeat(2000)[..], &[0xff; 5000]].concat();
        assert!(!nature(&[&late]).binary, "its pages were text before");
    }

    proptest! {
        #[test]
        fn characters_may_be_cut_anywhere(text in "[a-zäß日🦀\n]{0,50}", cut in any::<prop::sample::Index>()) {
            let cut = cut.index(text.len() + 1);
            let nature = nature(&[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
            prop_assert!(nature.plain && !nature.is_cut());
        }
    }
}
