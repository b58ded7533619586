//! How kept outputs are named to clients: a URI for each stream, a cursor for a place in one.

use std::str::FromStr;

use mcpz_engine::Stream;

const PREFIX: &str = "mcp://tmp/exec-";

/// The name of one stream of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputUri {
    pub id: String,
    pub stream: Stream,
}

impl OutputUri {
    pub fn new(id: &str, stream: Stream) -> Self {
        Self { id: id.to_owned(), stream }
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
        write!(f, "{PREFIX}{}.{ending}", self.id)
    }
}

/// What is no such name: it is answered like a name nothing is kept under.
#[derive(Debug, PartialEq, Eq)]
pub struct NoName;

impl FromStr for OutputUri {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let (id, ending) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('.')).ok_or(NoName)?;
        let stream = match ending {
            "out" => Stream::Stdout,
            "err" => Stream::Stderr,
            _ => return Err(NoName),
        };
        check_id(id)?;
        Ok(Self::new(id, stream))
    }
}

/// A place in an output: `bytes:N`, or `bytes:N@exec-ID` where it has to say in which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    pub offset: u64,
    pub id: Option<String>,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bytes:{}", self.offset)?;
        match &self.id {
            Some(id) => write!(f, "@exec-{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let rest = text.strip_prefix("bytes:").ok_or(NoName)?;
        let (offset, id) = match rest.split_once("@exec-") {
            Some((offset, id)) => (offset, Some(id.to_owned())),
            None => (rest, None),
        };
        if !offset.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoName);
        }
        id.as_deref().map_or(Ok(()), check_id)?;
        Ok(Self { offset: offset.parse().map_err(|_| NoName)?, id })
    }
}

fn check_id(id: &str) -> Result<(), NoName> {
    let valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { Ok(()) } else { Err(NoName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn names_are_read_as_they_are_written() {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let uri = OutputUri::new(ID, stream);
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
        for id in [None, Some(ID.to_owned())] {
            let cursor = Cursor { offset: 65536, id };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn what_is_no_name_is_told_apart() {
        for text in ["", "mcp://tmp/../etc/passwd", "mcp://tmp/exec-.out", "file:///etc/passwd"] {
            assert_eq!(text.parse::<OutputUri>(), Err(NoName), "{text}");
        }
        for text in ["", "bytes:", "bytes:-1", "bytes:+1", "bytes:1@exec-x", "lines:3", "5"] {
            assert_eq!(text.parse::<Cursor>(), Err(NoName), "{text}");
        }
    }
}
