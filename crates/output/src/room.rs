//! How much of an answer a text takes up.
//!
//! An answer is sent as JSON, where a line's end takes two characters and a control character six, and
//! some answers are JSON within JSON. What a client passes on to its model is counted as it is sent, so
//! that is how room is counted here. A character outside of ASCII counts by its bytes: clients that
//! count tokens guess them from bytes.

/// Room for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub size: usize,
    pub measure: Measure,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The text as it is.
    Bytes,
    /// The text as a JSON string.
    Quoted,
    /// The text as a JSON string in a JSON document that is a JSON string itself.
    QuotedTwice,
}

impl Room {
    /// Room for so many bytes.
    pub const fn bytes(size: usize) -> Self {
        Self { size, measure: Measure::Bytes }
    }

    pub fn fits(self, text: &str) -> bool {
        self.measure.of(text) <= self.size
    }

    /// The same with less in it.
    pub fn less(self, size: usize) -> Self {
        Self { size: self.size.saturating_sub(size), ..self }
    }

    /// How much of the beginning fits, in whole characters.
    pub fn beginning(self, text: &str) -> usize {
        let end = match self.measure {
            Measure::Bytes => self.size.min(text.len()),
            _ => self.take(text.bytes()),
        };
        text.floor_char_boundary(end)
    }

    /// Where the part of the end begins that fits, in whole characters.
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
        fn a_text_takes_what_its_json_takes(text in any::<String>()) {
            prop_assert_eq!(Measure::Bytes.of(&text), text.len());
            prop_assert_eq!(Measure::Quoted.of(&text), quoted(&text).len());
            prop_assert_eq!(Measure::QuotedTwice.of(&text), quoted(&quoted(&text)).len());
        }

        #[test]
        fn what_fits_is_as_much_as_fits_and_whole_characters(
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
