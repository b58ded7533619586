//! Reads one of a run's pipes into its output, with secrets masked.
//!
//!     pipe ─▶ MaskingBuffer ─▶ Output       in the task while it fits in memory, else on a thread
//!
//! Values of secret variables are replaced by their names before anything is kept, so every reader of the output is
//! safe. What could be the beginning of a value is held back until more arrives or the pipe ends. Showing it when the
//! command is answered could leak a value that a process left running completes later.
//!
//! Output that fits in memory is kept by the task that polls. What has to go to disk is moved by a thread that may
//! block and reads on as long as the pipe has more, so neither a slow disk nor a flood of output delays anyone else.
//! Meanwhile the thread takes the pipe away from the runtime, which would otherwise wake up for every write: 46,000
//! times per gigabyte.
//!
//! The pipe of a command that ends within a millisecond is never registered with the runtime. It is read directly,
//! because tokio's `try_read` reports "would block" until the runtime has polled the pipe once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mcpz_runtime::{Blocking, spawn_blocking};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::unix::pipe::Receiver;

use mcpz_output::LARGE_PIECE;
use mcpz_output::Masker;
use mcpz_output::{Output, Stream};

const SMALL_READ: usize = 8 << 10;

/// The capacity of a pipe with much output: a larger one needs fewer switches between its writer and us.
const LARGE_PIPE: usize = 1 << 20;

/// How long a thread that has moved much waits for more, because large output comes with short breaks.
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// How much a thread moves before it returns, so that it does return in a flood.
const MAX_MOVE: usize = 32 << 20;

/// More than a terminal can hold unread: the kernel allows 640 KiB, and 4 KiB to be read next.
const MAX_IN_TERMINAL: usize = 1 << 20;

pub struct Capture {
    stream: Stream,
    output: Output,
    state: State,
    /// A pipe at its end that is still to be closed.
    retired: State,
    buffer: MaskingBuffer,
    source: Source,
}

/// What the writer at the other end sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Pipe,
    Terminal,
}

/// The bytes of the last read, and what to keep of them.
#[derive(Default)]
struct MaskingBuffer {
    masker: Masker,
    bytes: Vec<u8>,
    length: usize,
    /// Whether the pipe's capacity was raised.
    widened: bool,
}

enum State {
    /// Not registered with the runtime: most commands end before that is worth it.
    New(OwnedFd),
    Open(Receiver),
    /// A thread has the buffer.
    Moving(Box<Blocking<Moved>>),
    Closed,
}

struct Moved {
    buffer: MaskingBuffer,
    bytes: usize,
    /// The pipe, unless it has ended.
    pipe: Option<OwnedFd>,
}

impl Capture {
    pub fn closed(stream: Stream, output: Output, masker: Masker) -> Self {
        let buffer = MaskingBuffer { masker, ..MaskingBuffer::default() };
        let (state, retired) = (State::Closed, State::Closed);
        Self { stream, output, state, retired, buffer, source: Source::Pipe }
    }

    /// Starts to read `pipe`, which must be non-blocking.
    pub fn open(&mut self, pipe: OwnedFd, source: Source) {
        self.state = State::New(pipe);
        self.source = source;
    }

    /// Registers the pipe with the runtime.
    fn listen(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::New(pipe) => State::Open(Receiver::from_owned_fd_unchecked(pipe)?),
            other => other,
        };
        Ok(())
    }

    /// Redirects everything from now on to another output.
    pub async fn switch(&mut self, output: Output) {
        self.drain().await;
        self.buffer.finish();
        self.buffer.keep(&self.output, self.stream);
        self.output = output;
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Waits for more and keeps it. Dropping the future loses nothing.
    pub async fn step(&mut self) -> io::Result<()> {
        self.listen()?;
        match &mut self.state {
            State::Closed | State::New(_) => std::future::pending().await,
            State::Moving(_) => {
                self.join_thread().await;
            }
            State::Open(pipe) => match pipe.readable().await {
                Ok(()) => {
                    let read = self.buffer.read(|buffer| pipe.try_read(buffer), usize::MAX);
                    self.handle_read(read, usize::MAX);
                }
                Err(_) => self.end(),
            },
        }
        Ok(())
    }

    /// Keeps everything written until now, and no more: a process that keeps writing would hold us forever.
    pub async fn drain(&mut self) {
        if let State::Moving(_) = self.state {
            self.join_thread().await;
        }
        let mut left = self.max_unread();
        while left > 0 {
            let read = self.read_now(left);
            let moved = self.join_thread().await;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read + moved);
        }
    }

    /// The most that is written and not read yet. A terminal only tells how much is next in line, 4,095 bytes at most.
    /// Reading it until nothing is left is exact, because a read makes the kernel hand over what is on its way.
    fn max_unread(&self) -> usize {
        match (self.source, self.pipe()) {
            (_, None) => 0,
            (Source::Terminal, Some(_)) => MAX_IN_TERMINAL,
            (Source::Pipe, Some(pipe)) => {
                rustix::io::ioctl_fionread(pipe).map_or(0, |waiting| waiting as usize)
            }
        }
    }

    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::New(pipe) => Some(pipe.as_fd()),
            State::Open(pipe) => Some(pipe.as_fd()),
            State::Moving(_) | State::Closed => None,
        }
    }

    /// Drains and closes. Nobody reads what is written after that.
    pub async fn close(&mut self) {
        self.drain().await;
        self.end();
        self.join_thread().await;
    }

    /// Reads once, at most `limit` bytes, whether or not the pipe is registered. Returns how many.
    fn read_now(&mut self, limit: usize) -> usize {
        let read = match &self.state {
            State::New(pipe) => self.buffer.read(|buffer| read_now(pipe, buffer), limit),
            State::Open(pipe) => self.buffer.read(|buffer| read_now(pipe, buffer), limit),
            State::Moving(_) | State::Closed => return 0,
        };
        self.handle_read(read, limit)
    }

    /// Handles the result of a read of at most `limit` bytes. Returns how many it was.
    fn handle_read(&mut self, read: io::Result<usize>, limit: usize) -> usize {
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) | Err(_) => {
                self.end();
                0
            }
            Ok(length) => {
                self.keep(Some(MAX_MOVE.min(limit - length)));
                length
            }
        }
    }

    /// Stops reading.
    fn end(&mut self) {
        if let State::New(_) | State::Open(_) = self.state {
            self.buffer.finish();
            self.keep(None);
        }
    }

    fn retire(&mut self) {
        self.retired = std::mem::replace(&mut self.state, State::Closed);
    }

    /// What is left to close, which takes a moment.
    pub fn take_retired(&mut self) -> impl Send + 'static {
        std::mem::replace(&mut self.retired, State::Closed)
    }

    /// Keeps what was read. If that takes a thread, it reads on for `budget` bytes; without a budget, the pipe is
    /// closed.
    fn keep(&mut self, budget: Option<usize>) {
        if self.output.has_room(self.stream, self.buffer.shown().len()) {
            self.buffer.keep(&self.output, self.stream);
            if budget.is_none() {
                self.retire();
            }
            return;
        }
        let pipe = match std::mem::replace(&mut self.state, State::Closed) {
            State::New(pipe) => Some(pipe),
            State::Open(pipe) => pipe.into_nonblocking_fd().ok(),
            State::Moving(_) | State::Closed => None,
        };
        let (stream, output) = (self.stream, self.output.clone());
        let buffer = std::mem::take(&mut self.buffer);
        let moving = spawn_blocking(move || {
            buffer.keep(&output, stream);
            match pipe.zip(budget) {
                Some((pipe, budget)) => copy_on_thread(pipe, &output, stream, buffer, budget),
                None => Moved { buffer, bytes: 0, pipe: None },
            }
        });
        self.state = State::Moving(Box::new(moving));
    }

    /// Waits for the thread, if there is one. Returns how many bytes it has read.
    async fn join_thread(&mut self) -> usize {
        let State::Moving(moving) = &mut self.state else { return 0 };
        let moved = moving.await;
        self.state = State::Closed;
        let Ok(Moved { buffer, bytes, pipe }) = moved else { return 0 };
        self.buffer = buffer;
        if let Some(pipe) = pipe {
            self.state = State::New(pipe);
        }
        bytes
    }
}

impl MaskingBuffer {
    /// Reads once, at most `limit` bytes.
    fn read(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
        limit: usize,
    ) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.bytes.resize(SMALL_READ, 0);
        }
        let room = self.bytes.len().min(limit);
        self.length = read(&mut self.bytes[..room])?;
        self.masker.take(&self.bytes[..self.length]);
        Ok(self.length)
    }

    fn finish(&mut self) {
        self.length = 0;
        self.masker.finish();
    }

    fn shown(&self) -> &[u8] {
        self.masker.shown(&self.bytes[..self.length])
    }

    fn keep(&self, output: &Output, stream: Stream) {
        let shown = self.shown();
        if !shown.is_empty() {
            output.append(stream, shown);
        }
    }

    /// Reads and keeps while there is more, up to `budget` bytes. Returns how many, and whether the pipe has ended.
    fn copy_available(
        &mut self,
        pipe: &OwnedFd,
        output: &Output,
        stream: Stream,
        budget: usize,
    ) -> (usize, bool) {
        let (mut bytes, mut paused_at) = (0, 0);
        while bytes < budget {
            match self.read(|buffer| read_now(pipe, buffer), budget - bytes) {
                Ok(length @ 1..) => {
                    self.keep(output, stream);
                    bytes += length;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The runtime serves writers of little output faster, and someone may wait for us.
                    if bytes - paused_at < LARGE_PIECE || !has_more_soon(pipe) {
                        break;
                    }
                    paused_at = bytes;
                }
                Ok(0) | Err(_) => {
                    self.finish();
                    self.keep(output, stream);
                    return (bytes, true);
                }
            }
        }
        // Everything is kept.
        self.length = 0;
        (bytes, false)
    }
}

fn read_now(pipe: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer))?)
}

/// Waits briefly for more. Returns whether there is more, or the pipe has ended.
fn has_more_soon(pipe: &OwnedFd) -> bool {
    let pause = Timespec::try_from(MAX_PAUSE).ok();
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], pause.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Reads and keeps while there is more, up to `budget` bytes.
fn copy_on_thread(
    pipe: OwnedFd,
    output: &Output,
    stream: Stream,
    mut buffer: MaskingBuffer,
    budget: usize,
) -> Moved {
    if !buffer.widened {
        // All pipes of a user share a limit; a small pipe works, too.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, LARGE_PIPE);
        buffer.widened = true;
    }
    let small = std::mem::replace(&mut buffer.bytes, output.quota().take_buffer());
    let (bytes, ended) = buffer.copy_available(&pipe, output, stream, budget);
    output.quota().give_buffer(std::mem::replace(&mut buffer.bytes, small));
    Moved { buffer, bytes, pipe: (!ended).then_some(pipe) }
}
