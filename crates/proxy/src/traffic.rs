//! The bytes that pass over one connection to a server: moved, counted, timed and reported.
//!
//! The two directions of a tunnel end independently: when one side stops sending, the other side learns of
//! it and can still send.

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use crate::peer::Peer;
use crate::reader::Reader;
use crate::report::{Reached, Report, Reporter};
use crate::target::Target;

/// The account of an open connection. Dropping it reports the connection, however it ended.
pub struct Traffic {
    target: Target,
    address: IpAddr,
    reporter: Reporter,
    pub sent: Counter,
    pub received: Counter,
}

/// How many bytes went one way, and when the last ones did.
pub struct Counter {
    bytes: AtomicU64,
    last: Mutex<Instant>,
}

impl Counter {
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

impl Traffic {
    pub fn new(target: Target, address: IpAddr, reporter: Reporter) -> Self {
        Self { target, address, reporter, sent: Counter::new(), received: Counter::new() }
    }

    /// Moves bytes both ways until both directions have ended, one fails, or the tunnel is idle.
    pub async fn tunnel(
        &self,
        client: &mut Peer,
        server: &mut Peer,
        idle: Duration,
    ) -> io::Result<()> {
        let up = copy(&mut client.reader, &mut server.writer, &self.sent);
        let down = copy(&mut server.reader, &mut client.writer, &self.received);
        tokio::select! {
            done = async { tokio::try_join!(up, down) } => done.map(|_| ()),
            () = self.wait_until_idle(idle) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Returns when no byte has moved in either direction for `limit`.
    pub async fn wait_until_idle(&self, limit: Duration) {
        loop {
            let until = self.sent.last().max(self.received.last()) + limit;
            if until <= Instant::now() {
                break;
            }
            sleep_until(until).await;
        }
    }
}

impl Drop for Traffic {
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

async fn copy<R, W>(from: &mut Reader<R>, to: &mut W, counter: &Counter) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let bytes = from.read_some(usize::MAX).await?;
        if bytes.is_empty() {
            // Fails if the other side has disconnected, and then there is nobody to tell.
            to.shutdown().await.ok();
            return Ok(());
        }
        to.write_all(&bytes).await?;
        counter.add(bytes.len());
    }
}
