//! Sizes as people write them: `"10MB"`, `"64KiB"`, or a number of bytes.

use clap::builder::ValueParser;
use clap::value_parser;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::flag::FromFlag;
use super::value::Value;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

const UNITS: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];

impl Size {
    /// The number of bytes, or as many as memory could hold.
    pub fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: write it as \"10MB\"")]
pub struct InvalidSize {
    text: String,
}

impl std::str::FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let upper = text.trim().to_uppercase();
        let size = UNITS.iter().find_map(|(unit, factor)| {
            let number: u64 = upper.strip_suffix(&unit.to_uppercase())?.trim().parse().ok()?;
            number.checked_mul(*factor)
        });
        size.map(Self).ok_or_else(|| InvalidSize { text: text.to_owned() })
    }
}

impl FromFlag for Size {
    fn parser() -> ValueParser {
        value_parser!(Self).into()
    }
}

impl Value for Size {
    fn kind() -> String {
        "size".to_owned()
    }

    /// In the unit that makes it the smallest whole number.
    fn toml(&self) -> Option<String> {
        let whole = UNITS.iter().filter(|(_, bytes)| self.0.is_multiple_of(*bytes));
        let (unit, bytes) = whole.min_by_key(|(_, bytes)| self.0 / bytes)?;
        Some(format!("\"{}{unit}\"", self.0 / bytes))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Size;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a size such as \"10MB\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(Size).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_of_ten_or_of_two() {
        for (text, bytes) in
            [("10MB", 10_000_000), ("64 KiB", 65_536), ("1gib", 1 << 30), ("5", 5), ("7B", 7)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MB", "-1MB", "1.5MB", "10 monkeys", "99999999999GB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
