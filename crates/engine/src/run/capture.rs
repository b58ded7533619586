//! Reads one of a run's pipes into its output, without the secrets in it.
//!
//! What fits in memory is kept by whoever polls. What has to go to disk is moved by a thread that
//! may block, which reads on as long as the pipe has more, so that neither a slow disk nor a flood
//! of output holds up anybody else. Meanwhile the runtime does not listen: it would wake up for every
//! piece that somebody else reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mcpz_runtime::{Aside, aside};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::unix::pipe::Receiver;

use mcpz_output::LARGE_PIECE;
use mcpz_output::Masker;
use mcpz_output::{Output, Stream};

const SMALL_READ: usize = 8 << 10;

/// How much a pipe holds whose output is large: its writer and we take turns less often.
const LARGE_PIPE: usize = 1 << 20;

/// How long a thread that has moved much waits for more before it comes back: such output comes with
/// short breaks.
const LULL: Duration = Duration::from_millis(2);

/// How much a thread moves before it comes back, so that it does come back in a flood.
const STINT: usize = 32 << 20;

/// More than a terminal can hold that nobody has read: the kernel allows it 640 KiB, and 4 KiB to be
/// read next.
const MOST_IN_TERMINAL: usize = 1 << 20;

pub struct Capture {
    stream: Stream,
    output: Output,
    state: State,
    /// What was read to its end and is still to be closed.
    spent: State,
    intake: Intake,
    source: Source,
}

/// What the other end of a capture writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Pipe,
    Terminal,
}

/// What was read last, and what is to be kept of it.
#[derive(Default)]
struct Intake {
    masker: Masker,
    buffer: Vec<u8>,
    length: usize,
    /// Whether the pipe was made to hold much.
    widened: bool,
}

enum State {
    /// Nobody listens, or not any more: most commands have ended before that is worth it.
    New(OwnedFd),
    Open(Receiver),
    /// A thread has the intake.
    Moving(Aside<Moved>),
    Closed,
}

struct Moved {
    intake: Intake,
    bytes: usize,
    /// The pipe, unless it has ended.
    pipe: Option<OwnedFd>,
}

impl Capture {
    pub fn closed(stream: Stream, output: Output, masker: Masker) -> Self {
        let intake = Intake { masker, ..Intake::default() };
        let (state, spent) = (State::Closed, State::Closed);
        Self { stream, output, state, spent, intake, source: Source::Pipe }
    }

    /// Has what comes from `pipe` read, which must not block.
    pub fn open(&mut self, pipe: OwnedFd, source: Source) {
        self.state = State::New(pipe);
        self.source = source;
    }

    /// Makes the runtime listen.
    fn listen(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::New(pipe) => State::Open(Receiver::from_owned_fd_unchecked(pipe)?),
            other => other,
        };
        Ok(())
    }

    /// Has what comes from now on kept elsewhere.
    pub async fn switch(&mut self, output: Output) {
        self.drain().await;
        self.intake.finish();
        self.intake.keep(&self.output, self.stream);
        self.output = output;
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Waits for more and keeps it. Nothing is lost if it is dropped before it is done.
    pub async fn step(&mut self) -> io::Result<()> {
        self.listen()?;
        match &mut self.state {
            State::Closed | State::New(_) => std::future::pending().await,
            State::Moving(_) => {
                self.finish_moving().await;
            }
            State::Open(pipe) => match pipe.readable().await {
                Ok(()) => {
                    let read = self.intake.read(|buffer| pipe.try_read(buffer), usize::MAX);
                    self.take_in(read, usize::MAX);
                }
                Err(_) => self.end(),
            },
        }
        Ok(())
    }

    /// Keeps all that was written until now, and no more: a process that is still writing could
    /// hold us forever.
    pub async fn drain(&mut self) {
        if let State::Moving(_) = self.state {
            self.finish_moving().await;
        }
        let mut left = self.most_waiting();
        while left > 0 {
            let read = self.read_now(left);
            let moved = self.finish_moving().await;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read + moved);
        }
    }

    /// The most that was written and not read yet. A terminal only says how much of it is next in line;
    /// that all was read shows when there is nothing, as reading waits for the kernel to hand it over.
    fn most_waiting(&self) -> usize {
        match (self.source, self.pipe()) {
            (_, None) => 0,
            (Source::Terminal, Some(_)) => MOST_IN_TERMINAL,
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

    /// Drains and closes: whatever else is written, nobody will read it.
    pub async fn close(&mut self) {
        self.drain().await;
        self.end();
        self.finish_moving().await;
    }

    /// Reads once, at most `limit` bytes, whether or not the runtime listens. Returns how many.
    fn read_now(&mut self, limit: usize) -> usize {
        let read = match &self.state {
            State::New(pipe) => self.intake.read(|buffer| read_now(pipe, buffer), limit),
            State::Open(pipe) => self.intake.read(|buffer| read_now(pipe, buffer), limit),
            State::Moving(_) | State::Closed => return 0,
        };
        self.take_in(read, limit)
    }

    /// Sees to what was read, of at most `limit` bytes. Returns how much it was.
    fn take_in(&mut self, read: io::Result<usize>, limit: usize) -> usize {
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) | Err(_) => {
                self.end();
                0
            }
            Ok(length) => {
                self.keep(Some(STINT.min(limit - length)));
                length
            }
        }
    }

    /// Nothing more is read.
    fn end(&mut self) {
        if let State::New(_) | State::Open(_) = self.state {
            self.intake.finish();
            self.keep(None);
        }
    }

    fn spend(&mut self) {
        self.spent = std::mem::replace(&mut self.state, State::Closed);
    }

    /// What is left to be closed, which takes a moment.
    pub fn take_spent(&mut self) -> impl Send + 'static {
        std::mem::replace(&mut self.spent, State::Closed)
    }

    /// Keeps what was read. Where that takes a thread, it reads on for a stint, if there is one;
    /// without, the channel is closed.
    fn keep(&mut self, stint: Option<usize>) {
        if self.output.has_room(self.stream, self.intake.shown().len()) {
            self.intake.keep(&self.output, self.stream);
            if stint.is_none() {
                self.spend();
            }
            return;
        }
        let pipe = match std::mem::replace(&mut self.state, State::Closed) {
            State::New(pipe) => Some(pipe),
            State::Open(pipe) => pipe.into_nonblocking_fd().ok(),
            State::Moving(_) | State::Closed => None,
        };
        let (stream, output) = (self.stream, self.output.clone());
        let intake = std::mem::take(&mut self.intake);
        self.state = State::Moving(aside(move || {
            intake.keep(&output, stream);
            match pipe.zip(stint) {
                Some((pipe, stint)) => move_on(pipe, &output, stream, intake, stint),
                None => Moved { intake, bytes: 0, pipe: None },
            }
        }));
    }

    /// Waits for the thread, if there is one, and returns how many bytes it has read.
    async fn finish_moving(&mut self) -> usize {
        let State::Moving(moving) = &mut self.state else { return 0 };
        let moved = moving.await;
        self.state = State::Closed;
        let Ok(Moved { intake, bytes, pipe }) = moved else { return 0 };
        self.intake = intake;
        if let Some(pipe) = pipe {
            self.state = State::New(pipe);
        }
        bytes
    }
}

impl Intake {
    /// Reads once, at most `limit` bytes.
    fn read(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
        limit: usize,
    ) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer.resize(SMALL_READ, 0);
        }
        let room = self.buffer.len().min(limit);
        self.length = read(&mut self.buffer[..room])?;
        self.masker.take(&self.buffer[..self.length]);
        Ok(self.length)
    }

    fn finish(&mut self) {
        self.length = 0;
        self.masker.finish();
    }

    fn shown(&self) -> &[u8] {
        self.masker.shown(&self.buffer[..self.length])
    }

    fn keep(&self, output: &Output, stream: Stream) {
        let shown = self.shown();
        if !shown.is_empty() {
            output.append(stream, shown);
        }
    }

    /// Reads and keeps while there is more, up to `stint` bytes. Returns how many, and whether the pipe
    /// has ended.
    fn take_all(
        &mut self,
        pipe: &OwnedFd,
        output: &Output,
        stream: Stream,
        stint: usize,
    ) -> (usize, bool) {
        let (mut bytes, mut rested) = (0, 0);
        while bytes < stint {
            match self.read(|buffer| read_now(pipe, buffer), stint - bytes) {
                Ok(length @ 1..) => {
                    self.keep(output, stream);
                    bytes += length;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Whoever writes little is left to the runtime: somebody may wait for us.
                    if bytes - rested < LARGE_PIECE || !is_worth_another_look(pipe) {
                        break;
                    }
                    rested = bytes;
                }
                Ok(0) | Err(_) => {
                    self.finish();
                    self.keep(output, stream);
                    return (bytes, true);
                }
            }
        }
        // All of it is kept.
        self.length = 0;
        (bytes, false)
    }
}

fn read_now(pipe: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer))?)
}

/// Waits a moment for more. Whether there is, or never will be.
fn is_worth_another_look(pipe: &OwnedFd) -> bool {
    let lull = Timespec::try_from(LULL).ok();
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], lull.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Goes on reading while there is more, up to `stint` bytes, and keeps it.
fn move_on(
    pipe: OwnedFd,
    output: &Output,
    stream: Stream,
    mut intake: Intake,
    stint: usize,
) -> Moved {
    if !intake.widened {
        // There is a limit for all pipes of a user; a small one does as well.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, LARGE_PIPE);
        intake.widened = true;
    }
    let small = std::mem::replace(&mut intake.buffer, output.quota().take_buffer());
    let (bytes, ended) = intake.take_all(&pipe, output, stream, stint);
    output.quota().give_buffer(std::mem::replace(&mut intake.buffer, small));
    Moved { intake, bytes, pipe: (!ended).then_some(pipe) }
}
