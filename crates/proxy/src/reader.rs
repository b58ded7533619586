//! Buffered reading from a socket, in the units that HTTP and SOCKS need.
//!
//! Bytes that were read and not yet asked for stay in the buffer: a tunnel starts with what arrived right
//! behind its request.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once.
const READ_BYTES: usize = 16 * 1024;

pub struct Reader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Waits for input; false at the end of the stream.
    pub async fn wait(&mut self) -> io::Result<bool> {
        Ok(!self.buffer.is_empty() || self.fill().await?)
    }

    /// The next byte, which stays in the buffer.
    pub async fn peek(&mut self) -> io::Result<Option<u8>> {
        self.wait().await?;
        Ok(self.buffer.first().copied())
    }

    /// Whatever is available, up to `limit` bytes; empty at the end of the stream.
    pub async fn read_some(&mut self, limit: usize) -> io::Result<Bytes> {
        self.wait().await?;
        let size = self.buffer.len().min(limit);
        Ok(self.buffer.split_to(size).freeze())
    }

    pub async fn read_exact(&mut self, size: usize) -> io::Result<Bytes> {
        while self.buffer.len() < size {
            self.fill_or_fail().await?;
        }
        Ok(self.buffer.split_to(size).freeze())
    }

    /// A line without the CR LF that ends it. A lone LF is an error, and so is a line above the limit.
    pub async fn read_line(&mut self, limit: usize) -> io::Result<Bytes> {
        let line = self
            .read_until(limit, |buffer, known| {
                buffer[known..].iter().position(|&byte| byte == b'\n').map(|at| known + at + 1)
            })
            .await?;
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(line.slice_ref(text)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Everything up to and including the first empty line.
    pub async fn read_head(&mut self, limit: usize) -> io::Result<Bytes> {
        self.read_until(limit, |buffer, known| {
            let start = known.saturating_sub(2);
            let ends = |at: &usize| buffer[*at] == b'\n' && starts_empty_line(&buffer[at + 1..]);
            let at = (start..buffer.len()).find(ends)?;
            Some(at + if buffer[at + 1] == b'\n' { 2 } else { 3 })
        })
        .await
    }

    /// Reads until `find_end` returns a size. It gets the buffer and how much of it the last call saw.
    async fn read_until(
        &mut self,
        limit: usize,
        find_end: impl Fn(&[u8], usize) -> Option<usize>,
    ) -> io::Result<Bytes> {
        let mut known = 0;
        loop {
            match find_end(&self.buffer, known) {
                Some(size) if size <= limit => return Ok(self.buffer.split_to(size).freeze()),
                None if self.buffer.len() < limit => known = self.buffer.len(),
                _ => return Err(io::ErrorKind::FileTooLarge.into()),
            }
            self.fill_or_fail().await?;
        }
    }

    async fn fill_or_fail(&mut self) -> io::Result<()> {
        match self.fill().await? {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

fn starts_empty_line(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\n") || bytes.starts_with(b"\r\n")
}
