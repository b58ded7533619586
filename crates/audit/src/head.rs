//! The head of the trail: a file that names its last line, so that a truncated trail shows.
//!
//! The head is written shortly after the lines. If a writer is killed in between, the trail is ahead of its head.
//! It is never behind, unless lines were removed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::line::Link;
use crate::mac::{Key, Mac};

pub const HEAD_FILE: &str = "audit.head";

/// The length of the file. It is constant, so each head replaces the one before completely.
const LENGTH: usize = 20 + 1 + 20 + 1 + Mac::TEXT_LENGTH + 1 + Mac::TEXT_LENGTH + 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last line.
    pub link: Link,
    /// The length of the trail's current file after that line.
    pub size: u64,
}

impl Head {
    pub fn write(&self, file: &File, key: &Key) -> io::Result<()> {
        let Self { link: Link { seq, mac }, size } = self;
        let mut text = format!("{seq:020} {size:020} {mac}");
        let seal = key.sign(text.as_bytes());
        text.push_str(&format!(" {seal}\n"));
        file.write_all_at(text.as_bytes(), 0)
    }

    /// Reads the head, if it is there and genuine.
    pub fn read(file: &File, key: &Key) -> io::Result<Option<Self>> {
        let mut text = [0; LENGTH];
        match file.read_exact_at(&mut text, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        Ok(Self::parse(&text, key))
    }

    fn parse(text: &[u8], key: &Key) -> Option<Self> {
        let (text, seal) =
            text.strip_suffix(b"\n")?.split_at_checked(LENGTH - 2 - Mac::TEXT_LENGTH)?;
        if !key.verifies(text, Mac::parse(seal.strip_prefix(b" ")?)?) {
            return None;
        }
        let mut parts = std::str::from_utf8(text).ok()?.split(' ');
        let (seq, size) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mac = Mac::parse(parts.next()?.as_bytes())?;
        Some(Self { link: Link { seq, mac }, size })
    }
}
