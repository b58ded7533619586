//! Ports as people write them: `5173`, `"5173-5180"`.

use std::ops::RangeInclusive;

use clap::builder::ValueParser;
use clap::value_parser;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::flag::FromFlag;
use super::value::Value;

/// How many ports one range may have.
const MOST_PORTS: usize = 100;

/// A port, or a few in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(pub RangeInclusive<u16>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a port: write 5173, or 5173-5180 for at most {MOST_PORTS} in a row")]
pub struct InvalidPorts {
    text: String,
}

impl std::str::FromStr for Ports {
    type Err = InvalidPorts;

    fn from_str(text: &str) -> Result<Self, InvalidPorts> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse().ok().filter(|port: &u16| *port > 0);
        let range = port(first).zip(port(last)).map(|(first, last)| first..=last);
        let fits = |range: &RangeInclusive<u16>| (1..=MOST_PORTS).contains(&range.len());
        range.filter(fits).map(Self).ok_or_else(|| InvalidPorts { text: text.to_owned() })
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Port(u16),
            Range(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Port(port) => port.to_string(),
            Written::Range(text) => text,
        };
        text.parse().map_err(D::Error::custom)
    }
}

impl FromFlag for Ports {
    fn parser() -> ValueParser {
        value_parser!(Self).into()
    }
}

impl Value for Ports {
    fn kind() -> String {
        "port or range".to_owned()
    }

    fn toml(&self) -> Option<String> {
        let (first, last) = (self.0.start(), self.0.end());
        Some(if first == last { first.to_string() } else { format!("\"{first}-{last}\"") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_or_short_ranges() {
        assert_eq!("5173".parse(), Ok(Ports(5173..=5173)));
        assert_eq!("80-90".parse(), Ok(Ports(80..=90)));
        for wrong in ["", "0", "x", "70000", "90-80", "1-200", "-5"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
    }
}
