//! One side of a proxied connection: the command's socket or the server's.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::reader::Reader;

/// How long, and how much, is read from a peer that is being disconnected.
const DRAIN_TIME: Duration = Duration::from_secs(2);
const DRAIN_BYTES: usize = 1024 * 1024;

pub struct Peer {
    pub reader: Reader<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
}

impl Peer {
    pub fn new(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: Reader::new(reader), writer }
    }

    /// Ends the connection and gives the peer a little time to read what was written last. Closing a
    /// socket with unread input resets the connection, and the peer would lose that.
    pub async fn close(mut self) -> io::Result<()> {
        self.writer.shutdown().await?;
        let drain = async {
            let mut drained = 0;
            while drained < DRAIN_BYTES {
                match self.reader.read_some(DRAIN_BYTES).await?.len() {
                    0 => break,
                    size => drained += size,
                }
            }
            Ok(())
        };
        timeout(DRAIN_TIME, drain).await?
    }
}
