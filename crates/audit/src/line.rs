//! A line of the trail.
//!
//!     {"seq":7,"time":"…", the record … ,"prev":"<MAC of line 6>","mac":"<HMAC of everything before>"}
//!
//! The MAC covers the bytes as written, so verification does not depend on how anybody parses them.

use std::io::Write;
use std::time::SystemTime;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::escape::Escaping;
use crate::mac::{Key, Mac};

/// The longest line. Everything that goes into one has a limit.
pub const MAX_LINE: usize = 512 << 10;

const BEGINNING: &[u8] = b"{\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const MAC: &[u8] = b",\"mac\":\"";

/// Marks a record that was written to a waiting file first.
pub const JOINED: &[u8] = b",\"joined\":true";

/// The position of a line in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub seq: u64,
    pub mac: Mac,
}

impl Link {
    /// What comes before the first line.
    pub const START: Self = Self { seq: 0, mac: Mac::NONE };
}

/// Writes the line that follows `last`, and returns its link.
pub fn compose(line: &mut Vec<u8>, record: &impl Serialize, last: Link, key: &Key) -> Link {
    let seq = last.seq + 1;
    line.clear();
    let time = rfc3339(SystemTime::now());
    let _ = write!(line, "{{\"seq\":{seq},\"time\":\"{time}\"");
    let from = line.len();
    let written =
        record.serialize(&mut serde_json::Serializer::with_formatter(&mut *line, Escaping));
    written.expect("strings and numbers are always JSON");
    // Replaces the record's own braces.
    line[from] = b',';
    line.pop();
    finish(line, last, key)
}

/// Writes a line that follows `last` with the body of a line that waited.
pub fn compose_joined(line: &mut Vec<u8>, body: &[u8], last: Link, key: &Key) -> Link {
    let seq = last.seq + 1;
    line.clear();
    let _ = write!(line, "{{\"seq\":{seq}");
    line.extend_from_slice(body);
    line.extend_from_slice(JOINED);
    finish(line, last, key)
}

/// Appends the MAC of the line before, and its own.
fn finish(line: &mut Vec<u8>, last: Link, key: &Key) -> Link {
    let _ = write!(line, ",\"prev\":\"{}\"", last.mac);
    let mac = key.sign(line);
    let _ = writeln!(line, ",\"mac\":\"{mac}\"}}");
    Link { seq: last.seq + 1, mac }
}

/// A line as read, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub link: Link,
    pub prev: Mac,
    /// Everything between the number and `prev`, starting with a comma.
    pub body: &'a [u8],
    signed: &'a [u8],
}

impl<'a> Line<'a> {
    /// Splits a line, if it is well-formed.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (signed, mac) = split_mac(line.strip_suffix(b"}")?, MAC)?;
        let (rest, prev) = split_mac(signed, PREV)?;
        let numbered = rest.strip_prefix(BEGINNING)?;
        let (digits, body) = numbered.split_at(numbered.iter().position(|byte| *byte == b',')?);
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Self { link: Link { seq, mac }, prev, body, signed })
    }

    /// Whether the line comes directly after `last`.
    pub fn follows(&self, last: Link) -> bool {
        self.link.seq == last.seq + 1 && self.prev == last.mac
    }

    /// Whether the MAC fits the line.
    pub fn is_genuine(&self, key: &Key) -> bool {
        key.verifies(self.signed, self.link.mac)
    }
}

/// Splits a MAC field off the end.
fn split_mac<'a>(text: &'a [u8], field: &[u8]) -> Option<(&'a [u8], Mac)> {
    let text = text.strip_suffix(b"\"")?;
    let (rest, mac) = text.split_at_checked(text.len().checked_sub(Mac::TEXT_LENGTH)?)?;
    Some((rest.strip_suffix(field)?, Mac::parse(mac)?))
}
