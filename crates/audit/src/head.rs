//! How far the trail went, beside it: lines that are taken off its end are missed.
//!
//! The head is written after the lines, a moment later. Whoever is killed in between leaves a trail
//! that is ahead of it; it is never behind.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::line::Link;
use crate::seal::{Key, Mac};

pub const HEAD_FILE: &str = "audit.head";

/// Its length in the file: always the same, so that each takes the place of the one before.
const LENGTH: usize = 20 + 1 + 20 + 1 + Mac::TEXT + 1 + Mac::TEXT + 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last line.
    pub link: Link,
    /// The length of the file after it.
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

    /// Reads what was written, if that is what is there.
    pub fn read(file: &File, key: &Key) -> io::Result<Option<Self>> {
        let mut text = [0; LENGTH];
        match file.read_exact_at(&mut text, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        Ok(Self::parse(&text, key))
    }

    fn parse(text: &[u8], key: &Key) -> Option<Self> {
        let (text, seal) = text.strip_suffix(b"\n")?.split_at_checked(LENGTH - 2 - Mac::TEXT)?;
        if !key.fits(text, Mac::parse(seal.strip_prefix(b" ")?)?) {
            return None;
        }
        let mut parts = std::str::from_utf8(text).ok()?.split(' ');
        let (seq, size) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mac = Mac::parse(parts.next()?.as_bytes())?;
        Some(Self { link: Link { seq, mac }, size })
    }
}
