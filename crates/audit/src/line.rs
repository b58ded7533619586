//! One line of the trail.
//!
//!     {"seq":7,"time":"…", what happened … ,"prev":"<mac of line 6>","mac":"<HMAC of all before>"}
//!
//! The mark is over the bytes as they stand, so there is nothing to argue about what they mean.

use std::io::Write;
use std::time::SystemTime;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::escape::Escaping;
use crate::seal::{Key, Mac};

/// No line is longer: all that goes into one has a limit.
pub const MAX_LINE: usize = 512 << 10;

const BEGINNING: &[u8] = b"{\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const MAC: &[u8] = b",\"mac\":\"";

/// What a record has that was written elsewhere first.
pub const JOINED: &[u8] = b",\"joined\":true";

/// The place of a line in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub seq: u64,
    pub mac: Mac,
}

impl Link {
    /// What is before the first line.
    pub const START: Self = Self { seq: 0, mac: Mac::NONE };
}

/// Writes the line that follows `last`, and returns its own place.
pub fn compose(line: &mut Vec<u8>, record: &impl Serialize, last: Link, key: &Key) -> Link {
    let seq = last.seq + 1;
    line.clear();
    let time = rfc3339(SystemTime::now());
    let _ = write!(line, "{{\"seq\":{seq},\"time\":\"{time}\"");
    let from = line.len();
    let written =
        record.serialize(&mut serde_json::Serializer::with_formatter(&mut *line, Escaping));
    written.expect("strings and numbers are always JSON");
    // In place of the record's own braces.
    line[from] = b',';
    line.pop();
    finish(line, last, key)
}

/// Writes a line that follows `last` with what stood in one elsewhere.
pub fn compose_joined(line: &mut Vec<u8>, body: &[u8], last: Link, key: &Key) -> Link {
    let seq = last.seq + 1;
    line.clear();
    let _ = write!(line, "{{\"seq\":{seq}");
    line.extend_from_slice(body);
    line.extend_from_slice(JOINED);
    finish(line, last, key)
}

/// Adds where a line stands, and its mark.
fn finish(line: &mut Vec<u8>, last: Link, key: &Key) -> Link {
    let _ = write!(line, ",\"prev\":\"{}\"", last.mac);
    let mac = key.sign(line);
    let _ = writeln!(line, ",\"mac\":\"{mac}\"}}");
    Link { seq: last.seq + 1, mac }
}

/// A line as it was read, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub link: Link,
    pub prev: Mac,
    /// What stands in it besides its place, with a comma before.
    pub body: &'a [u8],
    signed: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line apart, if it has the form of one.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (signed, mac) = split_mac(line.strip_suffix(b"}")?, MAC)?;
        let (rest, prev) = split_mac(signed, PREV)?;
        let numbered = rest.strip_prefix(BEGINNING)?;
        let (digits, body) = numbered.split_at(numbered.iter().position(|byte| *byte == b',')?);
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Self { link: Link { seq, mac }, prev, body, signed })
    }

    /// Whether its place is the one behind another.
    pub fn follows(&self, last: Link) -> bool {
        self.link.seq == last.seq + 1 && self.prev == last.mac
    }

    /// Whether it is as it was written.
    pub fn is_genuine(&self, key: &Key) -> bool {
        key.fits(self.signed, self.link.mac)
    }
}

/// Takes a field with a mark off the end.
fn split_mac<'a>(text: &'a [u8], field: &[u8]) -> Option<(&'a [u8], Mac)> {
    let text = text.strip_suffix(b"\"")?;
    let (rest, mac) = text.split_at_checked(text.len().checked_sub(Mac::TEXT)?)?;
    Some((rest.strip_suffix(field)?, Mac::parse(mac)?))
}
