//! Reading a message's body from one side and writing it to the other.
//!
//! Each body is decoded and framed again, so that every server reads it the same way. Chunk extensions
//! and trailers are dropped.

use std::io::{self, ErrorKind};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::reader::Reader;
use crate::traffic::Counter;

/// How long the size line of a chunk may be, and each trailer.
const MAX_LINE: usize = 1024;

/// How many trailers are skipped, counting the empty line that ends them.
const MAX_TRAILERS: usize = 64;

/// How a message marks the end of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body, and no field that frames one.
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// The line of the head that announces it.
    pub fn field(self) -> String {
        match self {
            Self::Empty | Self::UntilClose => String::new(),
            Self::Length(length) => format!("Content-Length: {length}\r\n"),
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        }
    }
}

/// Which side a body failed on.
#[derive(Debug, Error)]
pub enum BodyError {
    #[error("cannot read a body: {0}")]
    Read(#[source] io::Error),
    #[error("cannot write a body: {0}")]
    Write(#[source] io::Error),
}

/// Moves a body from one framing to another.
pub async fn relay<R, W>(
    (reader, from): (&mut Reader<R>, Framing),
    (writer, to): (&mut W, Framing),
    counter: &Counter,
) -> Result<(), BodyError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut body = Body { framing: from, chunk: Chunk::Start };
    while let Some(data) = body.next(reader).await.map_err(BodyError::Read)? {
        let framed = match to {
            Framing::Chunked => encode_chunk(&data),
            _ => data,
        };
        writer.write_all(&framed).await.map_err(BodyError::Write)?;
        counter.add(framed.len());
    }
    if to == Framing::Chunked {
        writer.write_all(b"0\r\n\r\n").await.map_err(BodyError::Write)?;
    }
    Ok(())
}

fn encode_chunk(data: &[u8]) -> Bytes {
    let mut framed = format!("{:x}\r\n", data.len()).into_bytes();
    framed.extend_from_slice(data);
    framed.extend_from_slice(b"\r\n");
    framed.into()
}

/// The part of a body that was not read yet.
struct Body {
    framing: Framing,
    chunk: Chunk,
}

/// The position in a chunked body.
enum Chunk {
    /// Before the first size line.
    Start,
    Data(u64),
    /// Before the CR LF that follows a chunk's data.
    End,
}

impl Body {
    /// The next bytes, or nothing at the end of the body.
    async fn next<R>(&mut self, reader: &mut Reader<R>) -> io::Result<Option<Bytes>>
    where
        R: AsyncRead + Unpin,
    {
        let data = match self.framing {
            Framing::Empty | Framing::Length(0) => return Ok(None),
            Framing::UntilClose => {
                let data = reader.read_some(usize::MAX).await?;
                return Ok(Some(data).filter(|data| !data.is_empty()));
            }
            Framing::Length(left) => {
                let data = read_at_most(reader, left).await?;
                self.framing = Framing::Length(left - data.len() as u64);
                data
            }
            Framing::Chunked => {
                let left = match self.chunk {
                    Chunk::Data(left) => left,
                    Chunk::Start => read_chunk_size(reader).await?,
                    Chunk::End => {
                        reader.read_line(2).await?;
                        read_chunk_size(reader).await?
                    }
                };
                if left == 0 {
                    self.framing = Framing::Empty;
                    return skip_trailers(reader).await.map(|()| None);
                }
                let data = read_at_most(reader, left).await?;
                self.chunk = match left - data.len() as u64 {
                    0 => Chunk::End,
                    left => Chunk::Data(left),
                };
                data
            }
        };
        Ok(Some(data))
    }
}

/// Reads at least one byte of the `left` bytes that are due.
async fn read_at_most<R>(reader: &mut Reader<R>, left: u64) -> io::Result<Bytes>
where
    R: AsyncRead + Unpin,
{
    let data = reader.read_some(usize::try_from(left).unwrap_or(usize::MAX)).await?;
    match data.is_empty() {
        true => Err(ErrorKind::UnexpectedEof.into()),
        false => Ok(data),
    }
}

/// `httparse::parse_chunk_size` would accept a line without digits as the end of the body.
async fn read_chunk_size<R: AsyncRead + Unpin>(reader: &mut Reader<R>) -> io::Result<u64> {
    let line = reader.read_line(MAX_LINE).await?;
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    let hexadecimal = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| hexadecimal);
    let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    size.ok_or_else(|| ErrorKind::InvalidData.into())
}

async fn skip_trailers<R: AsyncRead + Unpin>(reader: &mut Reader<R>) -> io::Result<()> {
    for _ in 0..MAX_TRAILERS {
        if reader.read_line(MAX_LINE).await?.is_empty() {
            return Ok(());
        }
    }
    Err(ErrorKind::FileTooLarge.into())
}
