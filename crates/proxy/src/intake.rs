//! What arrives at a socket, in the sizes its readers want. Nothing that was read is lost between them.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once.
const READ: usize = 16 * 1024;

pub struct Intake<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Intake<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Waits until something is there; false at the end.
    pub async fn arrives(&mut self) -> io::Result<bool> {
        Ok(!self.buffer.is_empty() || self.read().await?)
    }

    pub async fn first_byte(&mut self) -> io::Result<Option<u8>> {
        self.arrives().await?;
        Ok(self.buffer.first().copied())
    }

    /// What is there, up to a number of bytes; nothing at the end.
    pub async fn piece(&mut self, most: usize) -> io::Result<Bytes> {
        self.arrives().await?;
        let size = self.buffer.len().min(most);
        Ok(self.buffer.split_to(size).freeze())
    }

    pub async fn exactly(&mut self, size: usize) -> io::Result<Bytes> {
        while self.buffer.len() < size {
            self.more().await?;
        }
        Ok(self.buffer.split_to(size).freeze())
    }

    /// A line without its end, which is CR LF; an error if it is longer than it may be.
    pub async fn line(&mut self, most: usize) -> io::Result<Bytes> {
        self.until(most, |seen, from| {
            seen[from..].iter().position(|&byte| byte == b'\n').map(|at| from + at + 1)
        })
        .await
        .and_then(|line| match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(line.slice_ref(text)),
            None => Err(io::ErrorKind::InvalidData.into()),
        })
    }

    /// Everything up to an empty line, with it.
    pub async fn head(&mut self, most: usize) -> io::Result<Bytes> {
        self.until(most, |seen, from| {
            let from = from.saturating_sub(2);
            let ends = |at: &usize| seen[*at] == b'\n' && is_empty_line(&seen[at + 1..]);
            let at = (from..seen.len()).find(ends)?;
            Some(at + if seen[at + 1] == b'\n' { 2 } else { 3 })
        })
        .await
    }

    /// Reads until `end` finds where to stop; it is given what is there and how much of it is old.
    async fn until(
        &mut self,
        most: usize,
        end: impl Fn(&[u8], usize) -> Option<usize>,
    ) -> io::Result<Bytes> {
        let mut seen = 0;
        loop {
            match end(&self.buffer, seen) {
                Some(size) if size <= most => return Ok(self.buffer.split_to(size).freeze()),
                None if self.buffer.len() < most => seen = self.buffer.len(),
                _ => return Err(io::ErrorKind::FileTooLarge.into()),
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.read().await? {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    async fn read(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

fn is_empty_line(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\n") || bytes.starts_with(b"\r\n")
}
