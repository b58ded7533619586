//! What has arrived on a stream and was not taken yet.

use std::io;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::codec::{CodecError, Decoded, Frame, MAGIC, decode};

/// The least room for a read, and all that is kept while little arrives.
const SMALL: usize = 4 << 10;

/// The room for a read while much arrives.
const LARGE: usize = 256 << 10;

/// The most that may be printed before the greeting.
const MAX_JUNK: usize = 64 << 10;

pub struct Incoming<R> {
    stream: R,
    /// What has arrived is `bytes[start..end]`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes the next frame has, as far as that is known.
    needed: usize,
    /// How many bytes have arrived since the last [`Incoming::relax`].
    arrived: usize,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, bytes: vec![0; SMALL], start: 0, end: 0, needed: 0, arrived: 0 }
    }

    /// Reads once. False at the end of the stream. Cancel-safe.
    pub async fn fill(&mut self) -> io::Result<bool> {
        self.make_room();
        let read = self.stream.read(&mut self.bytes[self.end..]).await?;
        self.end += read;
        self.arrived += read;
        Ok(read > 0)
    }

    fn make_room(&mut self) {
        let filled = self.end == self.bytes.len();
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let wanted = match filled {
            true => (2 * self.bytes.len()).min(LARGE),
            false => 0,
        };
        let wanted = wanted.max(self.needed).max(self.end + SMALL);
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted, 0);
        }
    }

    /// Gives back memory if little has arrived since the last time.
    pub fn relax(&mut self) {
        let is_idle = std::mem::take(&mut self.arrived) < SMALL;
        if is_idle && self.start == self.end && self.bytes.len() > SMALL {
            (self.start, self.end) = (0, 0);
            self.bytes = vec![0; SMALL];
        }
    }

    /// The next whole frame, if one is here.
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<Frame<'_, M>>, CodecError> {
        match decode(&self.bytes[self.start..self.end])? {
            Decoded::Frame(frame, length) => {
                self.start += length;
                self.needed = 0;
                Ok(Some(frame))
            }
            Decoded::Incomplete(needed) => {
                self.needed = needed;
                Ok(None)
            }
        }
    }

    /// Skips all before the greeting, and returns it. An error if there is too much, or no greeting.
    pub async fn skip_junk(&mut self) -> Result<Vec<u8>, (io::Error, Vec<u8>)> {
        loop {
            let here = &self.bytes[self.start..self.end];
            if let Some(at) = here.windows(MAGIC.len()).position(|window| window == MAGIC) {
                let junk = here[..at].to_vec();
                self.start += at + MAGIC.len();
                return Ok(junk);
            }
            let filled = match here.len() > MAX_JUNK {
                true => Err(io::ErrorKind::InvalidData.into()),
                false => self.fill().await,
            };
            let error = match filled {
                Ok(true) => continue,
                Ok(false) => io::ErrorKind::UnexpectedEof.into(),
                Err(error) => error,
            };
            return Err((error, self.bytes[self.start..self.end].to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::codec::{PipeId, STDOUT};
    use super::*;

    proptest! {
        #[test]
        fn frames_arrive_whole_however_the_stream_is_cut(
            junk in "[a-z \n]{0,60}",
            pieces in vec(vec(any::<u8>(), 1..9000), 1..20),
        ) {
            let pipe = PipeId { run: 7, pipe: STDOUT };
            let mut bytes = [junk.as_bytes(), MAGIC].concat();
            for piece in &pieces {
                Frame::<()>::Data(pipe, piece).encode(&mut bytes).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let arrived = runtime.block_on(async {
                let mut incoming = Incoming::new(bytes.as_slice());
                assert_eq!(incoming.skip_junk().await.unwrap(), junk.as_bytes());
                let mut arrived = Vec::new();
                loop {
                    match incoming.next::<()>().unwrap() {
                        Some(Frame::Data(_, bytes)) => {
                            arrived.push(bytes.to_vec());
                            continue;
                        }
                        Some(other) => panic!("{other:?}"),
                        None => {}
                    }
                    if !incoming.fill().await.unwrap() {
                        return arrived;
                    }
                }
            });
            prop_assert_eq!(arrived, pieces);
        }
    }
}
