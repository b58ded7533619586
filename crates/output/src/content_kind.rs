//! Whether a stream is plain text, other text or binary, decided as its bytes arrive.
//!
//! This decides how pages are read: plain text is shown byte for byte, so a page is a single read; other text has
//! to be rendered first.

use crate::text::whole_characters;

/// How much of a stream's start decides whether it is text.
const BEGINNING: usize = 8 << 10;

/// So many NUL bytes are too many where they are a third of everything.
const MANY: usize = 8;

/// Updated with every piece that arrives.
#[derive(Debug, Clone)]
pub struct ContentKind {
    /// Text that every rendering with `\n` line ends shows byte for byte.
    pub plain: bool,
    /// Not text: its start has many bytes that are not UTF-8, or there are NUL bytes that do not just separate texts.
    pub binary: bool,
    /// How many bytes were examined so far, and how many of those at the start are not valid UTF-8.
    examined: usize,
    invalid: usize,
    /// An incomplete character at the end of the last piece.
    partial: Vec<u8>,
    texts: Texts,
}

/// Texts that are separated by NUL bytes, such as those that `find -print0` prints. Other data with NUL bytes has two
/// in a row, control characters, or bytes that are not UTF-8; UTF-16 has too many.
#[derive(Debug, Clone)]
struct Texts {
    /// NUL bytes so far.
    separators: usize,
    /// Whether no text follows the last one yet, as at the start.
    at_separator: bool,
    /// Whether there is something that no text has.
    odd: bool,
    partial: Vec<u8>,
}

impl Default for ContentKind {
    fn default() -> Self {
        let texts = Texts { separators: 0, at_separator: true, odd: false, partial: Vec::new() };
        Self { plain: true, binary: false, examined: 0, invalid: 0, partial: Vec::new(), texts }
    }
}

impl ContentKind {
    pub fn update(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.partial.is_empty() && self.texts.partial.is_empty() && is_simple(bytes) {
            self.examined = self.examined.saturating_add(bytes.len());
            self.texts.at_separator = false;
            return;
        }
        if !self.binary {
            self.texts.go_on(bytes, self.examined);
            self.binary = self.texts.odd && self.texts.separators > 0;
        }
        self.examine(bytes);
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

impl Texts {
    /// Looks at more bytes, of which so many came before. Far from the start, only those with NUL bytes, and what
    /// follows, are worth the time.
    fn go_on(&mut self, bytes: &[u8], before: usize) {
        let (start, rest) = bytes.split_at(BEGINNING.saturating_sub(before).min(bytes.len()));
        self.separators += nul_bytes(start);
        let share = self.separators * 3 > before.saturating_add(start.len());
        self.odd |= !start.is_empty() && self.separators >= MANY && share;
        self.separators += nul_bytes(rest);
        if self.odd || before >= BEGINNING && self.separators == 0 {
            self.at_separator = false;
            self.partial.clear();
            return;
        }
        self.partial.extend_from_slice(bytes);
        let whole = whole_characters(&self.partial).len();
        // What was skipped may have ended within a character.
        let continues = |byte: &&u8| before > 0 && (0x80..0xc0).contains(*byte);
        let from = self.partial[..whole].iter().take(3).take_while(continues).count();
        let Ok(text) = std::str::from_utf8(&self.partial[from..whole]) else {
            self.odd = true;
            return;
        };
        for c in text.chars() {
            let is_separator = c == '\0';
            let is_control = c.is_control() && !matches!(c, '\0' | '\x07'..='\r' | '\x1b');
            self.odd |= is_control || is_separator && self.at_separator;
            self.at_separator = is_separator;
        }
        self.partial.drain(..whole);
    }
}

fn nul_bytes(bytes: &[u8]) -> usize {
    memchr::memchr_iter(0, bytes).count()
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
    fn texts_that_nul_bytes_separate_are_text_wherever_they_are_cut() {
        let names = "./a b\0./grün/日本\0./x\ny\0".as_bytes();
        let environ = b"HOME=/root\0EMPTY=\0PS1=\x1b[1m$\0";
        for text in [names, environ, b"a\0b", b"text\n\0"] {
            for cut in 0..=text.len() {
                let kind = kind(&[&text[..cut], &text[cut..]]);
                assert!(!kind.binary && !kind.plain, "{cut} of {text:?}");
            }
        }
    }

    #[test]
    fn other_data_with_nul_bytes_is_binary_wherever_it_is_cut() {
        let utf16: Vec<u8> = "text in UTF-16".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for data in [
            &b"\x7fELF\x02\x01\x01\0"[..],
            b"file.txt\0\0\0\0\x30000644\0",
            b"SQLite format 3\0\x10\0",
            b"\xff\xfeh\0i\0",
            b"caf\xe9\0",
            b"\0a",
            &utf16,
            &utf16.repeat(1000),
        ] {
            for cut in 0..=data.len() {
                assert!(kind(&[&data[..cut], &data[cut..]]).binary, "{cut} of {data:?}");
            }
        }
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
