//! Sizes as people write them: `"10MB"`, `"64KiB"`, or a number of bytes.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

const UNITS: &[(&str, u64)] = &[
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
    ("", 1),
];

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.trim().to_uppercase();
        let size = UNITS.iter().find_map(|(unit, factor)| {
            let number: u64 = upper.strip_suffix(unit)?.trim().parse().ok()?;
            number.checked_mul(*factor)
        });
        size.map(Self).ok_or_else(|| format!("`{text}` is not a size: write it as \"10MB\""))
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
