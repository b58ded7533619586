//! One pass over a stream that replaces some of it, piece by piece.
//!
//! What differs between passes is a [`Mask`]. A stage adds what all of them need: the bytes that are held back until
//! more is known, and the last ones before them, because whether something is a word depends on what stands around it.

/// How many bytes before a place a mask can look at.
const BEHIND: usize = 64;

/// Whether a text ends where its bytes do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Here,
    Unknown,
}

/// What a pass replaces.
pub trait Mask {
    /// Whether nothing in a text, and nothing that begins in it, could be replaced. Nothing is held back.
    fn is_clean(&self, text: &Text<'_>) -> bool;

    /// Appends the text to `out`, with replacements. Returns how many bytes are done; what the remaining ones are
    /// depends on what follows.
    fn replace(&mut self, text: &Text<'_>, end: End, out: &mut Vec<u8>) -> usize;
}

/// Bytes to look at, and some of those that came before them.
pub struct Text<'a> {
    pub bytes: &'a [u8],
    before: &'a [u8],
}

impl Text<'_> {
    /// The bytes before a place, the last one first, as far as they are known.
    pub fn back_from(&self, at: usize) -> impl Iterator<Item = u8> {
        self.bytes[..at].iter().rev().chain(self.before.iter().rev()).copied().take(BEHIND)
    }

    /// Whether a word can begin at a place: there is none before it, but perhaps the end of an escape sequence (`\n` in
    /// JSON, `%3D` in a URL, or a colour), which is a letter or digit, too.
    pub fn can_begin_word(&self, at: usize) -> bool {
        let mut back = self.back_from(at);
        let Some(last) = back.next().filter(|byte| is_word(*byte)) else { return true };
        match (back.next(), back.next()) {
            (Some(b'\\'), _) => matches!(last, b'n' | b'r' | b't'),
            (Some(digit), Some(b'%')) if digit.is_ascii_hexdigit() => last.is_ascii_hexdigit(),
            _ => last.is_ascii_alphabetic() && self.ends_colour(at),
        }
    }

    /// Whether a sequence such as `ESC [ 31 m` ends at a place, or one that is written `\x1b[31m` or `\033[31m`.
    fn ends_colour(&self, at: usize) -> bool {
        let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
        let mut back = self.back_from(at).skip(1).skip_while(is_number);
        back.next() == Some(b'[')
            && matches!(back.next(), Some(b'\x1b' | b'b' | b'B' | b'e' | b'3'))
    }
}

/// Whether a byte is part of a word. Others, such as typographic quotes, end words.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub struct Stage<M> {
    mask: M,
    held: Vec<u8>,
    behind: Vec<u8>,
    masked: Vec<u8>,
    /// Whether the last piece needs no masking.
    unchanged: bool,
}

impl<M: Mask> Stage<M> {
    pub fn new(mask: M) -> Self {
        let (held, behind, masked) = Default::default();
        Self { mask, held, behind, masked, unchanged: true }
    }

    /// Takes in the next piece of the stream, perhaps its last.
    pub fn take(&mut self, piece: &[u8], end: End) {
        let text = Text { bytes: piece, before: &self.behind };
        self.unchanged = self.held.is_empty() && self.mask.is_clean(&text);
        if self.unchanged {
            remember(&mut self.behind, piece);
            return;
        }
        self.held.extend_from_slice(piece);
        self.masked.clear();
        let text = Text { bytes: &self.held, before: &self.behind };
        let done = self.mask.replace(&text, end, &mut self.masked);
        remember(&mut self.behind, &self.held[..done]);
        self.held.drain(..done);
    }

    /// The masked output of the last call. `piece` is what that call was given.
    pub fn shown<'a>(&'a self, piece: &'a [u8]) -> &'a [u8] {
        if self.unchanged { piece } else { &self.masked }
    }

    #[cfg(test)]
    pub fn held(&self) -> &[u8] {
        &self.held
    }
}

/// Keeps the last bytes.
fn remember(behind: &mut Vec<u8>, bytes: &[u8]) {
    let last = &bytes[bytes.len().saturating_sub(BEHIND)..];
    let surplus = (behind.len() + last.len()).saturating_sub(BEHIND);
    behind.drain(..surplus);
    behind.extend_from_slice(last);
}
