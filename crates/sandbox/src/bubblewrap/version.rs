//! The version of `bwrap`, and what each version supports.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// Supports `--size`, and `--perms`, without which a folder could be hidden but not closed.
    pub const OLDEST: Self = Self { major: 0, minor: 7 };
    /// Supports `--disable-userns`.
    pub const WITHOUT_NESTING: Self = Self { major: 0, minor: 8 };

    /// Parses `bubblewrap 0.8.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().strip_prefix("bubblewrap ")?.split('.');
        let mut number = || numbers.next()?.parse().ok();
        Some(Self { major: number()?, minor: number()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_number() {
        let version = Version::parse("bubblewrap 0.11.1\n").unwrap();
        assert_eq!(version, Version { major: 0, minor: 11 });
        assert!(version > Version::WITHOUT_NESTING);
        assert_eq!(Version::parse("bwrap: no"), None);
    }
}
