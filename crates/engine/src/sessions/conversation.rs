//! The conversation with the shell of a session: an order goes out, and a report comes back.
//!
//! Orders are the shell's standard input, a socket. While a command runs, its standard input is empty, and the socket
//! is a descriptor of the shell that no program inherits. Replies come from a pipe that every program of the session
//! can write to. So whatever is not a reply to the current order is skipped, and the shell's word counts for nothing
//! but what is told of the command: its exit code and the shell's directory.

use std::io;

use mcpz_runtime::random_bits;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

use super::dialect::Dialect;
use super::order::{Order, Reply, ShellState};
use crate::error::Error;
use crate::run::Channel;

/// The longest reply: a token, a code, options and a path.
const MAX_REPLY: usize = 8 << 10;

#[derive(Debug)]
pub struct Conversation {
    dialect: Dialect,
    orders: UnixStream,
    replies: BufReader<Receiver>,
    /// The message that is arriving.
    partial: Vec<u8>,
    /// The token of the current order.
    token: String,
    /// The shell's state, as of the last report.
    state: ShellState,
    /// Whether tracing is on again since the current order.
    traces_again: bool,
}

/// How a command ended.
#[derive(Debug)]
pub struct Report {
    pub code: u8,
    pub directory: String,
}

impl Conversation {
    /// Must be called within a runtime.
    pub fn new(dialect: Dialect, channel: Channel) -> Result<Self, Error> {
        let orders = std::os::unix::net::UnixStream::from(channel.orders.ok_or(Error::Closed)?);
        let replies =
            Receiver::from_owned_fd_unchecked(channel.replies).map_err(Error::Resources)?;
        Ok(Self {
            dialect,
            orders: UnixStream::from_std(orders).map_err(Error::Resources)?,
            replies: BufReader::new(replies),
            partial: Vec::new(),
            token: String::new(),
            state: ShellState::default(),
            traces_again: false,
        })
    }

    /// Sends a command.
    pub async fn order(&mut self, text: &str) -> io::Result<()> {
        // A letter first: in a format, `\0` takes digits that follow as a number.
        self.token = format!("t{:016x}", random_bits()? as u64);
        self.traces_again = false;
        let order = Order { text, token: &self.token, before: self.state };
        self.orders.write_all(order.encode(self.dialect).as_bytes()).await
    }

    /// Waits until the command has ended, or returns `None` if the shell can no longer report that. Cancel-safe.
    pub async fn report(&mut self) -> Option<Report> {
        loop {
            let message = self.message().await?;
            let order = Order { text: "", token: &self.token, before: self.state };
            match order.read_reply(&message) {
                Some(Reply::TracesAgain) => self.traces_again = true,
                Some(Reply::Ended { after, directory }) => {
                    let resumed = self.traces_again || !self.state.shows_commands();
                    self.state = match resumed {
                        true => after,
                        false => ShellState { code: after.code, ..self.state },
                    };
                    return Some(Report { code: after.code, directory });
                }
                None => {}
            }
        }
    }

    /// The next message, cut if it is too long. Cancel-safe.
    async fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            let arrived = self.replies.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = arrived.iter().position(|byte| *byte == 0);
            let length = end.unwrap_or(arrived.len());
            let kept = length.min(MAX_REPLY - self.partial.len());
            self.partial.extend_from_slice(&arrived[..kept]);
            self.replies.consume(end.map_or(length, |end| end + 1));
            if end.is_some() {
                return Some(std::mem::take(&mut self.partial));
            }
        }
    }
}
