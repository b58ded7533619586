//! How much of an answer a text takes up.
//!
//! Answers are sent as JSON, where a newline takes two characters and a control character six; some answers are
//! JSON within JSON. Clients limit what they pass on to their model by its size as sent, so that is what counts
//! here. A non-ASCII character counts by its bytes, because clients that count tokens estimate them from bytes.

/// The size that a text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub size: usize,
    pub measure: Measure,
}

/// What the size counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The text itself.
    Bytes,
    /// The text as a JSON string.
    Quoted,
    /// The text as a JSON string inside a JSON document that is itself a JSON string.
    QuotedTwice,
}

impl Room {
    /// Room for `size` bytes.
    pub const fn bytes(size: usize) -> Self {
        Self { size, measure: Measure::Bytes }
    }

    pub fn fits(self, text: &str) -> bool {
        self.measure.of(text) <= self.size
    }

    /// The room that is left after a text of this size.
    pub fn less(self, size: usize) -> Self {
        Self { size: self.size.saturating_sub(size), ..self }
    }

    /// How many bytes of the text's start fit, in whole characters.
    pub fn beginning(self, text: &str) -> usize {
        let end = match self.measure {
            Measure::Bytes => self.size.min(text.len()),
            _ => self.take(text.bytes()),
        };
        text.floor_char_boundary(end)
    }

    /// Where the longest end of the text that fits begins, in whole characters.
    pub fn end(self, text: &str) -> usize {
        let start = match self.measure {
            Measure::Bytes => text.len().saturating_sub(self.size),
            _ => text.len() - self.take(text.bytes().rev()),
        };
        text.ceil_char_boundary(start)
    }

    /// How many of the bytes fit.
    fn take(self, bytes: impl Iterator<Item = u8>) -> usize {
        let mut left = self.size;
        let fits = |byte: &u8| match left.checked_sub(self.measure.of_byte(*byte)) {
            Some(less) => {
                left = less;
                true
            }
            None => false,
        };
        bytes.take_while(fits).count()
    }
}

impl Measure {
    pub fn of(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            _ => text.bytes().map(|byte| self.of_byte(byte)).sum(),
        }
    }

    fn of_byte(self, byte: u8) -> usize {
        match (self, byte) {
            (Self::Bytes, _) => 1,
            (Self::Quoted, b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c) => 2,
            (Self::Quoted, ..0x20) => 6,
            (Self::QuotedTwice, b'"' | b'\\') => 4,
            (Self::QuotedTwice, b'\n' | b'\r' | b'\t' | 0x08 | 0x0c) => 3,
            (Self::QuotedTwice, ..0x20) => 7,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &str) -> String {
        let json = serde_json::to_string(text).unwrap();
        json[1..json.len() - 1].to_owned()
    }

    proptest! {
        #[test]
        fn the_size_of_a_text_is_that_of_its_json(text in any::<String>()) {
            prop_assert_eq!(Measure::Bytes.of(&text), text.len());
            prop_assert_eq!(Measure::Quoted.of(&text), quoted(&text).len());
            prop_assert_eq!(Measure::QuotedTwice.of(&text), quoted(&quoted(&text)).len());
        }

        #[test]
        fn as_many_whole_characters_as_possible_fit(
            text in "[a\"\\\\\n\u{1}日🦀]{0,40}", size in 0_usize..200,
            measure in prop_oneof![
                Just(Measure::Bytes), Just(Measure::Quoted), Just(Measure::QuotedTwice)],
        ) {
            let room = Room { size, measure };
            let (beginning, end) = (&text[..room.beginning(&text)], &text[room.end(&text)..]);
            prop_assert!(room.fits(beginning) && room.fits(end));
            let more = |part: &str, next: Option<char>| next.is_none_or(|c| {
                !room.fits(&format!("{part}{c}"))
            });
            prop_assert!(more(beginning, text[beginning.len()..].chars().next()));
            prop_assert!(more(end, text[..text.len() - end.len()].chars().next_back()));
        }
    }
}
