//! How clients name kept output: a URI for each stream, and a cursor for a place in it.

use std::str::FromStr;

use mcpz_output::{BothPlaces, Stream};

const PREFIX: &str = "mcp://tmp/exec-";

/// One stream of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputUri {
    pub id: String,
    pub stream: Stream,
    /// Whether this is the compressed form.
    pub gzipped: bool,
}

impl OutputUri {
    pub fn new(id: &str, stream: Stream) -> Self {
        Self { id: id.to_owned(), stream, gzipped: false }
    }

    /// The compressed form of a run's stdout.
    pub fn gzipped(id: &str) -> Self {
        Self { gzipped: true, ..Self::new(id, Stream::Stdout) }
    }

    /// The template of all these URIs.
    pub const TEMPLATE: &str = "mcp://tmp/exec-{id}.{stream}";
}

impl std::fmt::Display for OutputUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ending = match self.stream {
            Stream::Stdout => "out",
            Stream::Stderr => "err",
        };
        let gzipped = if self.gzipped { ".gz" } else { "" };
        write!(f, "{PREFIX}{}.{ending}{gzipped}", self.id)
    }
}

/// Clients get the same answer for this as for a URI that nothing is kept under.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a URI or cursor of kept output")]
pub struct Malformed;

impl FromStr for OutputUri {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (id, ending) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(Malformed)?;
        check_id(id)?;
        match ending {
            "out" => Ok(Self::new(id, Stream::Stdout)),
            "out.gz" => Ok(Self::gzipped(id)),
            "err" => Ok(Self::new(id, Stream::Stderr)),
            _ => Err(Malformed),
        }
    }
}

/// A place in an output: `bytes:N`, or `bytes:N@exec-ID` if it must say which output. `bytes:N+M@exec-ID` also has a
/// place in stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    pub offset: u64,
    pub stderr: u64,
    pub id: Option<String>,
}

impl Cursor {
    /// A place in an output that the client names otherwise.
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }
}

/// A place in an output and in the earlier one that it is compared with, which has an id: `bytes:N,bytes:M@exec-ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedCursor {
    pub now: u64,
    pub before: u64,
    pub earlier: String,
}

impl ComparedCursor {
    pub fn places(&self) -> BothPlaces {
        BothPlaces { now: self.now, before: self.before }
    }
}

impl std::fmt::Display for ComparedCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let before = Cursor { id: Some(self.earlier.clone()), ..Cursor::at(self.before) };
        write!(f, "{},{before}", Cursor::at(self.now))
    }
}

impl FromStr for ComparedCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (now, before) = text.split_once(',').ok_or(Malformed)?;
        let (now, before): (Cursor, Cursor) = (now.parse()?, before.parse()?);
        let earlier = before.id.ok_or(Malformed)?;
        Ok(Self { now: now.offset, before: before.offset, earlier })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bytes:{}", self.offset)?;
        if self.stderr > 0 {
            write!(f, "+{}", self.stderr)?;
        }
        match &self.id {
            Some(id) => write!(f, "@exec-{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let rest = text.strip_prefix("bytes:").ok_or(Malformed)?;
        let (places, id) = match rest.split_once("@exec-") {
            Some((places, id)) => (places, Some(id.to_owned())),
            None => (rest, None),
        };
        let (offset, stderr) = places.split_once('+').unwrap_or((places, "0"));
        id.as_deref().map_or(Ok(()), check_id)?;
        Ok(Self { offset: number(offset)?, stderr: number(stderr)?, id })
    }
}

fn number(text: &str) -> Result<u64, Malformed> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| Malformed),
        false => Err(Malformed),
    }
}

fn check_id(id: &str) -> Result<(), Malformed> {
    let valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn what_is_written_can_be_read() {
        let streams = [Stream::Stdout, Stream::Stderr].map(|stream| OutputUri::new(ID, stream));
        for uri in streams.into_iter().chain([OutputUri::gzipped(ID)]) {
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
        for (id, stderr) in [(None, 0), (Some(ID.to_owned()), 0), (Some(ID.to_owned()), 7)] {
            let cursor = Cursor { offset: 65536, stderr, id };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        let compared = ComparedCursor { now: 7, before: 0, earlier: ID.to_owned() };
        assert_eq!(compared.to_string().parse(), Ok(compared));
    }

    #[test]
    fn other_texts_are_malformed() {
        for text in ["", "mcp://tmp/../etc/passwd", "mcp://tmp/exec-.out", "file:///etc/passwd"] {
            assert_eq!(text.parse::<OutputUri>(), Err(Malformed), "{text}");
        }
        for text in
            ["", "bytes:", "bytes:-1", "bytes:+1", "bytes:1@exec-x", "bytes:1+", "lines:3", "5"]
        {
            assert_eq!(text.parse::<Cursor>(), Err(Malformed), "{text}");
        }
    }
}
