//! How kept outputs are named to clients: a URI for each stream, a cursor for a place in one.

use std::str::FromStr;

use mcpz_output::Stream;

const PREFIX: &str = "mcp://tmp/exec-";

/// The name of one stream of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputUri {
    pub id: String,
    pub stream: Stream,
    /// Whether it is the compressed form.
    pub zipped: bool,
}

impl OutputUri {
    pub fn new(id: &str, stream: Stream) -> Self {
        Self { id: id.to_owned(), stream, zipped: false }
    }

    /// The compressed form of a run's stdout.
    pub fn zipped(id: &str) -> Self {
        Self { zipped: true, ..Self::new(id, Stream::Stdout) }
    }

    /// The template of all such names.
    pub const TEMPLATE: &str = "mcp://tmp/exec-{id}.{stream}";
}

impl std::fmt::Display for OutputUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ending = match self.stream {
            Stream::Stdout => "out",
            Stream::Stderr => "err",
        };
        let zipped = if self.zipped { ".gz" } else { "" };
        write!(f, "{PREFIX}{}.{ending}{zipped}", self.id)
    }
}

/// Clients get the same answer for this as for a name that nothing is kept under.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this names no kept output")]
pub struct InvalidName;

impl FromStr for OutputUri {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (id, ending) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(InvalidName)?;
        check_id(id)?;
        match ending {
            "out" => Ok(Self::new(id, Stream::Stdout)),
            "out.gz" => Ok(Self::zipped(id)),
            "err" => Ok(Self::new(id, Stream::Stderr)),
            _ => Err(InvalidName),
        }
    }
}

/// A place in an output: `bytes:N`, or `bytes:N@exec-ID` where it has to say in which. Where stderr is
/// read as well, its place is added: `bytes:N+M@exec-ID`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    pub offset: u64,
    pub stderr: u64,
    pub id: Option<String>,
}

impl Cursor {
    /// A place in an output that the reader knows.
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
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
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let rest = text.strip_prefix("bytes:").ok_or(InvalidName)?;
        let (places, id) = match rest.split_once("@exec-") {
            Some((places, id)) => (places, Some(id.to_owned())),
            None => (rest, None),
        };
        let (offset, stderr) = places.split_once('+').unwrap_or((places, "0"));
        id.as_deref().map_or(Ok(()), check_id)?;
        Ok(Self { offset: number(offset)?, stderr: number(stderr)?, id })
    }
}

fn number(text: &str) -> Result<u64, InvalidName> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| InvalidName),
        false => Err(InvalidName),
    }
}

fn check_id(id: &str) -> Result<(), InvalidName> {
    let valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { Ok(()) } else { Err(InvalidName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn names_are_read_as_they_are_written() {
        let streams = [Stream::Stdout, Stream::Stderr].map(|stream| OutputUri::new(ID, stream));
        for uri in streams.into_iter().chain([OutputUri::zipped(ID)]) {
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
        for (id, stderr) in [(None, 0), (Some(ID.to_owned()), 0), (Some(ID.to_owned()), 7)] {
            let cursor = Cursor { offset: 65536, stderr, id };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn what_is_no_name_is_told_apart() {
        for text in ["", "mcp://tmp/../etc/passwd", "mcp://tmp/exec-.out", "file:///etc/passwd"] {
            assert_eq!(text.parse::<OutputUri>(), Err(InvalidName), "{text}");
        }
        for text in
            ["", "bytes:", "bytes:-1", "bytes:+1", "bytes:1@exec-x", "bytes:1+", "lines:3", "5"]
        {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidName), "{text}");
        }
    }
}
