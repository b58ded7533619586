//! Skips the body of a private key in PEM format.
//!
//! The lines around it are shown, and a name in place of what is between them:
//!
//!     -----BEGIN RSA PRIVATE KEY-----
//!     [private key]
//!     -----END RSA PRIVATE KEY-----
//!
//! A body is long runs of base64, with little between them: line ends, also as `\r\n` or as `\n` in JSON, headers of an
//! encrypted key, indentation, line numbers, the marks of a diff. A text that only mentions the first line has no such
//! run after it, and is shown. So is what follows a key without a last line.

use super::stage::End;

/// The shortest run that is part of a key. Lines have 64 or more characters; only the last one is shorter.
const LONG_RUN: usize = 32;

/// The most bytes between two runs.
const MAX_GAP: usize = 160;

const LAST_LINE: &[u8] = b"-----END ";
const FIRST_LINE: &[u8] = b"-----BEGIN ";

pub struct KeyBody {
    name: &'static str,
    /// Whether the name was shown: there was a run.
    named: bool,
    /// Whether the last byte belongs to a run that may go on.
    in_run: bool,
}

/// What comes next in a body.
enum Next {
    /// A long run, from one place to another.
    Run(usize, usize),
    /// The last line, with the line end before it.
    LastLine(usize),
    /// Something that is not part of a key.
    Other,
    Unknown,
}

impl KeyBody {
    pub fn new(name: &'static str) -> Self {
        Self { name, named: false, in_run: false }
    }

    /// Skips what belongs to the key. Returns how many bytes, and whether the key has ended.
    pub fn skip(&mut self, bytes: &[u8], end: End, out: &mut Vec<u8>) -> (usize, bool) {
        let mut done = 0;
        if self.in_run {
            done = run(bytes);
            self.in_run = done == bytes.len();
        }
        loop {
            let rest = &bytes[done..];
            match next(rest, end) {
                Next::Run(from, to) => {
                    if !self.named {
                        out.extend_from_slice(&rest[..from]);
                        out.extend_from_slice(self.name.as_bytes());
                        self.named = true;
                    }
                    done += to;
                    self.in_run = done == bytes.len();
                }
                Next::LastLine(_) | Next::Other if !self.named => return (done, true),
                Next::LastLine(line) => return (done + line, true),
                Next::Other => return (done, true),
                Next::Unknown => return (done, false),
            }
        }
    }
}

fn next(bytes: &[u8], end: End) -> Next {
    let (mut at, mut gap) = (0, 0);
    while at < bytes.len() && at < MAX_GAP {
        let rest = &bytes[at..];
        let is_cut = |line: &[u8]| end == End::Unknown && line.starts_with(rest);
        match rest[0] {
            _ if rest.starts_with(LAST_LINE) => return Next::LastLine(gap),
            _ if rest.starts_with(FIRST_LINE) => return Next::Other,
            b'-' if is_cut(LAST_LINE) || is_cut(FIRST_LINE) => return Next::Unknown,
            b'\\' => at += 2,
            byte if is_base64(byte) => {
                let length = run(rest);
                if length >= LONG_RUN {
                    return Next::Run(at, at + length);
                }
                if length == rest.len() && end == End::Unknown {
                    return Next::Unknown;
                }
                at += length;
                gap = at;
            }
            _ => at += 1,
        }
    }
    match end {
        End::Unknown if at < MAX_GAP => Next::Unknown,
        _ => Next::Other,
    }
}

/// How many characters of base64 come first.
fn run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_base64(**byte)).count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
