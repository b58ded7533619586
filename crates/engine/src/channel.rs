//! Reads one of a run's pipes into its output.
//!
//! What fits in memory is kept by whoever polls. What has to go to disk is moved by a thread that
//! may block, which reads on as long as the pipe has more, so that neither a slow disk nor a flood
//! of output holds up anybody else.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

use crate::output::{Output, Stream};

const SMALL_READ: usize = 8 << 10;

/// Little enough to be in the cache still when it is written.
const LARGE_READ: usize = 64 << 10;

/// How much a pipe holds whose output is large: its writer and we take turns less often.
const LARGE_PIPE: usize = 1 << 20;

/// How much a thread moves before it comes back, so that it does come back in a flood.
const STINT: usize = 32 << 20;

pub struct Channel {
    stream: Stream,
    output: Output,
    state: State,
    buffer: Vec<u8>,
}

enum State {
    Open(Arc<Receiver>),
    /// A thread has the buffer.
    Moving(JoinHandle<Moved>),
    Closed,
}

type Read = fn(&Receiver, &mut [u8]) -> io::Result<usize>;

struct Moved {
    pipe: Arc<Receiver>,
    buffer: Vec<u8>,
    bytes: usize,
    ended: bool,
}

impl Channel {
    pub fn closed(stream: Stream, output: Output) -> Self {
        Self { stream, output, state: State::Closed, buffer: Vec::new() }
    }

    /// Starts reading from `pipe`, which must not block.
    pub fn open(&mut self, pipe: OwnedFd) -> io::Result<()> {
        self.state = State::Open(Arc::new(Receiver::from_owned_fd_unchecked(pipe)?));
        Ok(())
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Waits for more and keeps it. Nothing is lost if it is dropped before it is done.
    pub async fn step(&mut self) {
        match &mut self.state {
            State::Closed => std::future::pending().await,
            State::Moving(_) => {
                self.finish_moving().await;
            }
            State::Open(pipe) => {
                if pipe.readable().await.is_err() {
                    self.state = State::Closed;
                    return;
                }
                self.read(Receiver::try_read, usize::MAX);
            }
        }
    }

    /// Keeps all that was written until now, and no more: a process that is still writing could
    /// hold us forever.
    pub async fn drain(&mut self) {
        if let State::Moving(_) = self.state {
            self.finish_moving().await;
        }
        let mut left = match &self.state {
            State::Open(pipe) => rustix::io::ioctl_fionread(pipe.as_ref()).unwrap_or(0) as usize,
            _ => 0,
        };
        while left > 0 {
            let read = self.read(read_now, left);
            if read == 0 {
                return;
            }
            left = left.saturating_sub(read + self.finish_moving().await);
        }
    }

    /// Reads once, at most `limit` bytes. Returns how many.
    fn read(&mut self, read: Read, limit: usize) -> usize {
        let State::Open(pipe) = &self.state else { return 0 };
        if self.buffer.is_empty() {
            self.buffer.resize(SMALL_READ, 0);
        }
        let room = self.buffer.len().min(limit);
        match read(pipe, &mut self.buffer[..room]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) | Err(_) => {
                self.state = State::Closed;
                0
            }
            Ok(length) => {
                self.keep(length, limit);
                length
            }
        }
    }

    fn keep(&mut self, length: usize, limit: usize) {
        if self.output.has_room(self.stream, length) {
            self.output.append(self.stream, &self.buffer[..length]);
            return;
        }
        let State::Open(pipe) = std::mem::replace(&mut self.state, State::Closed) else { return };
        let (stream, output) = (self.stream, self.output.clone());
        let buffer = std::mem::take(&mut self.buffer);
        let stint = STINT.min(limit - length);
        self.state = State::Moving(tokio::task::spawn_blocking(move || {
            move_on(pipe, &output, stream, (buffer, length), stint)
        }));
    }

    /// Waits for the thread, if there is one, and returns how many bytes it has read.
    async fn finish_moving(&mut self) -> usize {
        let State::Moving(moving) = &mut self.state else { return 0 };
        let moved = moving.await;
        self.state = State::Closed;
        let Ok(Moved { pipe, buffer, bytes, ended }) = moved else { return 0 };
        self.buffer = buffer;
        if !ended {
            self.state = State::Open(pipe);
        }
        bytes
    }
}

/// Reads whether or not the runtime has heard that there is something: it may not have listened yet.
fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer))?)
}

/// Keeps what was read and goes on reading while there is more, up to `stint` bytes.
fn move_on(
    pipe: Arc<Receiver>,
    output: &Output,
    stream: Stream,
    (mut buffer, length): (Vec<u8>, usize),
    stint: usize,
) -> Moved {
    output.append(stream, &buffer[..length]);
    if buffer.len() < LARGE_READ {
        buffer.resize(LARGE_READ, 0);
        // There is a limit for all pipes of a user; a small one does as well.
        let _ = rustix::pipe::fcntl_setpipe_size(&*pipe, LARGE_PIPE);
    }
    let (mut bytes, mut ended) = (0, false);
    while bytes < stint {
        let room = buffer.len().min(stint - bytes);
        match read_now(&pipe, &mut buffer[..room]) {
            Ok(length @ 1..) => {
                output.append(stream, &buffer[..length]);
                bytes += length;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Ok(0) | Err(_) => {
                ended = true;
                break;
            }
        }
    }
    Moved { pipe, buffer, bytes, ended }
}
