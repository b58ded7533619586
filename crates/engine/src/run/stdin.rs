//! Writes the input of a running command.
//!
//! A separate task writes, so a command that does not read delays nobody.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::request::Input;

/// Ends the input of a terminal in line mode (ctrl-D).
const END_OF_INPUT: u8 = 4;

pub struct StdinWriter {
    /// `None` once no more input follows.
    bytes: Option<mpsc::UnboundedSender<Vec<u8>>>,
    is_terminal: bool,
    backlog: Arc<AtomicUsize>,
    writing: AbortHandle,
}

impl StdinWriter {
    /// Writes the first bytes and, if the command takes more input, what is added later. Written bytes are subtracted
    /// from the backlog.
    pub fn start(
        pipe: OwnedFd,
        first: Vec<u8>,
        input: Option<Input>,
        backlog: Arc<AtomicUsize>,
    ) -> Option<Self> {
        let is_terminal = matches!(input, Some(Input::Terminal(_)));
        let mut pipe = Sender::from_owned_fd_unchecked(pipe).ok()?;
        let (bytes, mut more) = mpsc::unbounded_channel::<Vec<u8>>();
        let left = backlog.clone();
        let writing = tokio::spawn(async move {
            // A program may end without reading all of its input.
            let mut written = pipe.write_all(&first).await;
            while written.is_ok()
                && let Some(bytes) = more.recv().await
            {
                written = pipe.write_all(&bytes).await;
                left.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
        });
        let bytes = input.map(|_| bytes);
        Some(Self { bytes, is_terminal, backlog, writing: writing.abort_handle() })
    }

    pub fn write(&self, bytes: Vec<u8>) {
        if let Some(sender) = &self.bytes {
            // The command may have stopped reading.
            let _ = sender.send(bytes);
        }
    }

    /// Tells the command that no more input follows.
    pub fn close(&mut self) {
        match self.is_terminal {
            true => {
                self.backlog.fetch_add(1, Ordering::Relaxed);
                self.write(vec![END_OF_INPUT]);
            }
            false => self.bytes = None,
        }
    }
}

impl Drop for StdinWriter {
    fn drop(&mut self) {
        self.writing.abort();
    }
}
