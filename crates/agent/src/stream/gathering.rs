//! Reads a stream in larger pieces while much comes.
//!
//! Docker sends what a container prints in pieces of 4 KiB, and takes pauses between them. While they come as fast as
//! they can, this waits a moment after each read, so that the next one finds many of them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf};

use super::pause::Pause;

/// A read that finds so much need not be larger.
const ENOUGH: usize = 64 << 10;

/// So much in so short a time is a flood.
const MUCH: usize = 512 << 10;
const SHORT: Duration = Duration::from_millis(20);

pub struct Gathering<R> {
    stream: R,
    pause: Pause,
    /// When the current count began, and what came since.
    since: Instant,
    count: usize,
    is_flooded: bool,
}

impl<R> Gathering<R> {
    /// Must be called within a runtime.
    pub fn new(stream: R) -> io::Result<Self> {
        let (pause, since) = (Pause::new()?, Instant::now());
        Ok(Self { stream, pause, since, count: 0, is_flooded: false })
    }

    /// Counts what was read, and says whether much more will come soon.
    fn count(&mut self, length: usize) -> bool {
        self.count += length;
        if self.since.elapsed() > SHORT {
            self.is_flooded = self.count >= MUCH;
            (self.since, self.count) = (Instant::now(), 0);
        }
        self.is_flooded
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Gathering<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.pause.poll_over(context))?;
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let length = into.filled().len() - before;
        if self.count(length) && (1..ENOUGH).contains(&length) {
            self.pause.begin()?;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn while_much_comes_a_read_waits_for_several_pieces() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut writer, reader) = tokio::io::duplex(4096);
            let mut gathering = Gathering::new(reader).unwrap();
            let mut piece = [0; 4096];
            writer.write_all(b"one").await.unwrap();
            assert_eq!(gathering.read(&mut piece).await.unwrap(), 3);
            // No pause, as little has come.
            writer.write_all(b"two").await.unwrap();
            assert_eq!(gathering.read(&mut piece).await.unwrap(), 3);
            gathering.is_flooded = true;
            (gathering.since, gathering.count) = (Instant::now() + SHORT, MUCH);
            writer.write_all(b"three").await.unwrap();
            assert_eq!(gathering.read(&mut piece).await.unwrap(), 5);
            writer.write_all(b"four").await.unwrap();
            poll_fn(|context| {
                let mut into = ReadBuf::new(&mut piece);
                assert!(Pin::new(&mut gathering).poll_read(context, &mut into).is_pending());
                Poll::Ready(())
            })
            .await;
            writer.write_all(b"five").await.unwrap();
            let length = gathering.read(&mut piece).await.unwrap();
            assert_eq!(&piece[..length], b"fourfive");
        });
    }

    #[test]
    fn a_flood_arrives_whole() {
        const PIECE: usize = 1000;
        let sent: Vec<_> = (0..20_000).flat_map(|at| [at as u8; PIECE]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let arrived = runtime.block_on(async {
            let (mut writer, reader) = tokio::io::duplex(1 << 20);
            let pieces = sent.clone();
            tokio::spawn(async move {
                for piece in pieces.chunks(PIECE) {
                    writer.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
            let mut arrived = Vec::new();
            Gathering::new(reader).unwrap().read_to_end(&mut arrived).await.unwrap();
            arrived
        });
        assert!(arrived == sent);
    }
}
