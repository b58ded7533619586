//! Writes what a command reads, while it runs.
//!
//! A task of its own writes: a command that does not read holds up nobody else.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::request::{Input, Size};

/// The end of a terminal's input, where a program asks for lines.
const END_OF_INPUT: u8 = 4;

pub struct Feeder {
    /// Nothing when nothing more is written.
    bytes: Option<mpsc::UnboundedSender<Vec<u8>>>,
    terminal: Option<OwnedFd>,
    backlog: Arc<AtomicUsize>,
    writing: AbortHandle,
}

impl Feeder {
    /// Writes the first bytes and, if there is a way for more, what is given later.
    /// What is written is taken off the backlog.
    pub fn start(
        pipe: OwnedFd,
        first: Vec<u8>,
        input: Option<Input>,
        backlog: Arc<AtomicUsize>,
    ) -> Option<Self> {
        let terminal = match input {
            Some(Input::Terminal(_)) => Some(pipe.try_clone().ok()?),
            _ => None,
        };
        let mut pipe = Sender::from_owned_fd_unchecked(pipe).ok()?;
        let (bytes, mut more) = mpsc::unbounded_channel::<Vec<u8>>();
        let left = backlog.clone();
        let writing = tokio::spawn(async move {
            // A program that does not read all of its input is no failure.
            let mut written = pipe.write_all(&first).await;
            while written.is_ok()
                && let Some(bytes) = more.recv().await
            {
                written = pipe.write_all(&bytes).await;
                left.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
        });
        let bytes = input.map(|_| bytes);
        Some(Self { bytes, terminal, backlog, writing: writing.abort_handle() })
    }

    pub fn write(&self, bytes: Vec<u8>) {
        if let Some(sender) = &self.bytes {
            // Whoever does not read any more is not written to.
            let _ = sender.send(bytes);
        }
    }

    /// Tells the command that nothing more comes.
    pub fn close(&mut self) {
        match self.terminal {
            Some(_) => {
                self.backlog.fetch_add(1, Ordering::Relaxed);
                self.write(vec![END_OF_INPUT]);
            }
            None => self.bytes = None,
        }
    }

    /// Whether a program reads lines from its terminal that are not shown there: a password. Programs
    /// that show what is typed by themselves do not read lines.
    pub fn hides(&self) -> bool {
        let modes = self.terminal.as_ref().and_then(|terminal| tcgetattr(terminal).ok());
        modes.is_some_and(|modes| {
            modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }

    pub fn resize(&self, size: Size) {
        if let Some(terminal) = &self.terminal {
            let Size { rows: ws_row, columns: ws_col } = size;
            let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
            let _ = tcsetwinsize(terminal.as_fd(), size);
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.writing.abort();
    }
}
