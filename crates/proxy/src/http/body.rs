//! How far a message's body reaches, and moving it. Each body is taken out of its frame and put into a
//! new one, so that what is passed on has only one meaning. Trailers are left out.

use std::io::{self, ErrorKind};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::intake::Intake;
use crate::traffic::Count;

/// How long the line before a chunk may be, and each trailer.
const LINE: usize = 1024;

/// How many trailers are read past.
const TRAILERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body, and no word of one.
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// The field that says so.
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

/// Moves a body from one frame to another.
pub async fn relay<R, W>(
    (source, from): (&mut Intake<R>, Framing),
    (sink, to): (&mut W, Framing),
    count: &Count,
) -> Result<(), BodyError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut body = Body { framing: from, chunk: Chunk::First };
    while let Some(piece) = body.piece(source).await.map_err(BodyError::Read)? {
        let framed = match to {
            Framing::Chunked => chunk(&piece),
            _ => piece,
        };
        sink.write_all(&framed).await.map_err(BodyError::Write)?;
        count.add(framed.len());
    }
    if to == Framing::Chunked {
        sink.write_all(b"0\r\n\r\n").await.map_err(BodyError::Write)?;
    }
    Ok(())
}

fn chunk(piece: &[u8]) -> Bytes {
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(piece);
    framed.extend_from_slice(b"\r\n");
    framed.into()
}

/// What is left of a body.
struct Body {
    framing: Framing,
    chunk: Chunk,
}

/// Where in a chunked body we are.
enum Chunk {
    First,
    Within(u64),
    /// All of it was read but the end of its line.
    Over,
}

impl Body {
    /// The next bytes; nothing at the end.
    async fn piece<R>(&mut self, intake: &mut Intake<R>) -> io::Result<Option<Bytes>>
    where
        R: AsyncRead + Unpin,
    {
        let piece = match self.framing {
            Framing::Empty | Framing::Length(0) => return Ok(None),
            Framing::UntilClose => {
                return Ok(Some(intake.piece(usize::MAX).await?).filter(|piece| !piece.is_empty()));
            }
            Framing::Length(left) => {
                let piece = take(intake, left).await?;
                self.framing = Framing::Length(left - piece.len() as u64);
                piece
            }
            Framing::Chunked => {
                let left = match self.chunk {
                    Chunk::Within(left) => left,
                    Chunk::First => size(intake).await?,
                    Chunk::Over => {
                        intake.line(2).await?;
                        size(intake).await?
                    }
                };
                if left == 0 {
                    self.framing = Framing::Empty;
                    return skip_trailers(intake).await.map(|()| None);
                }
                let piece = take(intake, left).await?;
                self.chunk = match left - piece.len() as u64 {
                    0 => Chunk::Over,
                    left => Chunk::Within(left),
                };
                piece
            }
        };
        Ok(Some(piece))
    }
}

async fn take<R: AsyncRead + Unpin>(intake: &mut Intake<R>, left: u64) -> io::Result<Bytes> {
    let piece = intake.piece(usize::try_from(left).unwrap_or(usize::MAX)).await?;
    match piece.is_empty() {
        true => Err(ErrorKind::UnexpectedEof.into()),
        false => Ok(piece),
    }
}

/// The size a chunk begins with. What may follow it says nothing we need.
async fn size<R: AsyncRead + Unpin>(intake: &mut Intake<R>) -> io::Result<u64> {
    let line = intake.line(LINE).await?;
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    let plain = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| plain);
    let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    size.ok_or_else(|| ErrorKind::InvalidData.into())
}

async fn skip_trailers<R: AsyncRead + Unpin>(intake: &mut Intake<R>) -> io::Result<()> {
    for _ in 0..TRAILERS {
        if intake.line(LINE).await?.is_empty() {
            return Ok(());
        }
    }
    Err(ErrorKind::FileTooLarge.into())
}
