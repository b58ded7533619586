//! What passes over a connection: moved, counted, and ended when nothing moves any more.
//!
//! Each direction ends for itself: an end on one side is passed on, and the other direction goes on.

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

use crate::intake::Intake;
use crate::report::{Reached, Report, Reporter};
use crate::target::Target;

/// How long and how much is read from a client that is told to leave.
const PATIENCE: Duration = Duration::from_secs(2);
const DRAIN: usize = 1024 * 1024;

/// One end of a connection.
pub struct End {
    pub intake: Intake<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
}

impl End {
    pub fn new(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { intake: Intake::new(reader), writer }
    }

    /// Says that nothing more will come, and waits a little for the other side to have read it:
    /// closing with something unread resets the connection, and what was said last would be lost.
    pub async fn leave(mut self) -> io::Result<()> {
        self.writer.shutdown().await?;
        let drain = async {
            let mut drained = 0;
            while drained < DRAIN {
                match self.intake.piece(DRAIN).await?.len() {
                    0 => break,
                    size => drained += size,
                }
            }
            Ok(())
        };
        timeout(PATIENCE, drain).await?
    }
}

/// A connection that is open. It is reported when it is dropped, however it ends.
pub struct Passage {
    target: Target,
    address: IpAddr,
    reporter: Reporter,
    pub sent: Count,
    pub received: Count,
}

/// How much went one way, and when it last did.
pub struct Count {
    bytes: AtomicU64,
    last: Mutex<Instant>,
}

impl Count {
    fn new() -> Self {
        Self { bytes: AtomicU64::new(0), last: Mutex::new(Instant::now()) }
    }

    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        *self.last.lock().expect("nobody panics while holding it") = Instant::now();
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn last(&self) -> Instant {
        *self.last.lock().expect("nobody panics while holding it")
    }
}

impl Passage {
    pub fn new(target: Target, address: IpAddr, reporter: Reporter) -> Self {
        Self { target, address, reporter, sent: Count::new(), received: Count::new() }
    }

    /// Moves bytes both ways until both have ended, one fails, or nothing moves.
    pub async fn tunnel(
        &self,
        client: &mut End,
        server: &mut End,
        idle: Duration,
    ) -> io::Result<()> {
        let up = pour(&mut client.intake, &mut server.writer, &self.sent);
        let down = pour(&mut server.intake, &mut client.writer, &self.received);
        tokio::select! {
            done = async { tokio::try_join!(up, down) } => done.map(|_| ()),
            () = self.idle(idle) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Waits until nothing has moved in either direction for this long.
    pub async fn idle(&self, limit: Duration) {
        loop {
            let until = self.sent.last().max(self.received.last()) + limit;
            if until <= Instant::now() {
                break;
            }
            sleep_until(until).await;
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        (self.reporter)(Report::Reached(Reached {
            host: self.target.host.to_string(),
            port: self.target.port,
            address: self.address,
            sent: self.sent.bytes(),
            received: self.received.bytes(),
            label: self.target.label.take(),
        }));
    }
}

async fn pour<R, W>(from: &mut Intake<R>, to: &mut W, count: &Count) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let piece = from.piece(usize::MAX).await?;
        if piece.is_empty() {
            // Whoever has left meanwhile needs no farewell.
            to.shutdown().await.ok();
            return Ok(());
        }
        to.write_all(&piece).await?;
        count.add(piece.len());
    }
}
