//! The pipes of a run: one end is here, the other in the place.
//!
//!     Source   is read here, and sent while there is credit
//!     Sink     is written here, and gives credit back for what was written
//!
//! In a place, stdin is a sink and the others are sources; in the server it is the other way round. What was in a
//! source at some moment can be waited for, and so can what had arrived for a sink.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::unix::pipe::{Receiver, Sender};

use super::codec::{Frame, PIPES, PipeId, REPLIES, STDERR, STDOUT};
use super::outgoing::Outgoing;

/// How much may be on its way for a pipe, at first. Short commands beside a flood take 3 ms over ssh with this, and 8
/// ms with four times as much.
pub const FIRST_WINDOW: usize = 256 << 10;

/// The same for a pipe that has moved much.
const LARGE_WINDOW: usize = 1 << 20;

/// How much that is.
const MUCH: u64 = 8 << 20;

/// More than a terminal can hold unread. It does not tell how much it holds.
const MAX_IN_TERMINAL: usize = 1 << 20;

/// The other end broke the rules.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub &'static str);

/// What the other end sends for a pipe.
pub enum Arrival {
    Data(u8, Vec<u8>),
    /// It will send nothing more, or does not read any more.
    End(u8),
    Credit(u8, u32),
}

impl Arrival {
    /// What a frame has for a pipe of some run, or the message that it is.
    pub fn of<M>(frame: Frame<'_, M>) -> Result<(u64, Self), M> {
        Ok(match frame {
            Frame::Message(message) => return Err(message),
            Frame::Data(id, bytes) => (id.run, Self::Data(id.pipe, bytes.to_vec())),
            Frame::End(id) => (id.run, Self::End(id.pipe)),
            Frame::Credit(id, bytes) => (id.run, Self::Credit(id.pipe, bytes)),
        })
    }
}

/// The pipes of one run that are open here.
pub struct Pipes {
    run: u64,
    outgoing: Arc<Outgoing>,
    sources: [Option<Source>; PIPES],
    sinks: [Option<Sink>; PIPES],
}

struct Source {
    pipe: Receiver,
    /// How much the other end has room for.
    credit: usize,
    is_terminal: bool,
    /// How much of it somebody waits for.
    awaited: usize,
}

struct Sink {
    pipe: Sender,
    arrived: VecDeque<Vec<u8>>,
    /// How much of the first piece is written.
    offset: usize,
    received: u64,
    written: u64,
    /// How much the other end may still send.
    allowed: usize,
    window: usize,
    /// Written, and not given back yet.
    owed: usize,
    ended: bool,
    /// What must have been written to stdout and stderr before this.
    behind: VecDeque<(u64, Position)>,
}

/// How much had arrived for stdout and stderr at some moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position([u64; 2]);

impl Pipes {
    pub fn new(run: u64, outgoing: Arc<Outgoing>) -> Self {
        Self { run, outgoing, sources: Default::default(), sinks: Default::default() }
    }

    /// Must be called within a runtime. The pipe must not block.
    pub fn add_source(&mut self, pipe: u8, fd: OwnedFd, is_terminal: bool) -> io::Result<()> {
        let source = Source {
            pipe: Receiver::from_owned_fd_unchecked(fd)?,
            credit: FIRST_WINDOW,
            is_terminal,
            awaited: 0,
        };
        self.sources[usize::from(pipe)] = Some(source);
        Ok(())
    }

    /// The same for a pipe that is written here.
    pub fn add_sink(&mut self, pipe: u8, fd: OwnedFd) -> io::Result<()> {
        let sink = Sink {
            pipe: Sender::from_owned_fd_unchecked(fd)?,
            arrived: VecDeque::new(),
            offset: 0,
            received: 0,
            written: 0,
            allowed: FIRST_WINDOW,
            window: FIRST_WINDOW,
            owed: 0,
            ended: false,
            behind: VecDeque::new(),
        };
        self.sinks[usize::from(pipe)] = Some(sink);
        Ok(())
    }

    pub fn take(&mut self, arrival: Arrival) -> Result<(), Violation> {
        match arrival {
            Arrival::Data(pipe, bytes) => self.receive(pipe, bytes)?,
            Arrival::End(pipe) => self.receive_end(pipe),
            Arrival::Credit(pipe, bytes) => self.receive_credit(pipe, bytes)?,
        }
        Ok(())
    }

    fn receive(&mut self, pipe: u8, bytes: Vec<u8>) -> Result<(), Violation> {
        let position = self.position();
        // Nobody may have wanted to write it any more.
        let Some(sink) = self.sinks.get_mut(usize::from(pipe)).and_then(Option::as_mut) else {
            return Ok(());
        };
        if sink.ended {
            return Err(Violation("data came after its end"));
        }
        sink.allowed = sink
            .allowed
            .checked_sub(bytes.len())
            .ok_or(Violation("there was no room for so much data"))?;
        sink.received += bytes.len() as u64;
        if pipe == REPLIES {
            sink.behind.push_back((sink.received, position));
        }
        sink.arrived.push_back(bytes);
        Ok(())
    }

    fn receive_end(&mut self, pipe: u8) {
        let Some(at) = Some(usize::from(pipe)).filter(|at| *at < PIPES) else { return };
        self.sources[at] = None;
        if let Some(sink) = &mut self.sinks[at] {
            sink.ended = true;
        }
    }

    fn receive_credit(&mut self, pipe: u8, bytes: u32) -> Result<(), Violation> {
        let Some(source) = self.sources.get_mut(usize::from(pipe)).and_then(Option::as_mut) else {
            return Ok(());
        };
        source.credit += bytes as usize;
        match source.credit > 2 * LARGE_WINDOW {
            true => Err(Violation("more credit came than there is room")),
            false => Ok(()),
        }
    }

    /// Moves what can be moved, or waits until something can.
    pub async fn step(&mut self) {
        poll_fn(|context| self.poll_step(context)).await;
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut moved = false;
        let has_room = self.outgoing.poll_room(context).is_ready();
        for at in 0..PIPES {
            moved |= has_room && self.poll_source(at, context);
            moved |= self.poll_sink(at, context);
        }
        if moved { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_source(&mut self, at: usize, context: &mut Context<'_>) -> bool {
        let Some(source) = &self.sources[at] else { return false };
        if source.credit == 0 || source.pipe.poll_read_ready(context).is_pending() {
            return false;
        }
        // What a shell printed before its reply goes first.
        if at == usize::from(REPLIES) {
            self.await_source(usize::from(STDOUT));
            self.await_source(usize::from(STDERR));
            if !self.drain() {
                return false;
            }
        }
        self.read(at, Reading::Ready);
        true
    }

    fn is_awaited(&self, at: usize) -> bool {
        self.sources[at].as_ref().is_some_and(|source| source.awaited > 0)
    }

    /// Reads a source once, and sends that. False if there is nothing to read now, or no credit.
    fn read(&mut self, at: usize, how: Reading) -> bool {
        let Some(source) = &mut self.sources[at] else { return false };
        let limit = match how {
            Reading::Ready => source.credit,
            Reading::Awaited => source.credit.min(source.awaited),
        };
        if limit == 0 {
            return false;
        }
        let id = PipeId { run: self.run, pipe: at as u8 };
        let pipe = &source.pipe;
        let read = self.outgoing.data(id, limit, |buffer| {
            let read = || Ok(rustix::io::read(pipe, buffer).map(|(read, _)| read)?);
            match how {
                Reading::Ready => pipe.try_io(read),
                Reading::Awaited => read(),
            }
        });
        match read {
            Ok(length @ 1..) => {
                source.credit -= length;
                source.awaited = source.awaited.saturating_sub(length);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => source.awaited = 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // A terminal ends with an error.
            Ok(0) | Err(_) => {
                self.sources[at] = None;
                self.outgoing.end(id);
            }
        }
        false
    }

    fn await_source(&mut self, at: usize) {
        if let Some(source) = &mut self.sources[at] {
            source.awaited = match source.is_terminal {
                true => MAX_IN_TERMINAL,
                false => rustix::io::ioctl_fionread(&source.pipe).map_or(0, |left| left as usize),
            };
        }
    }

    /// Notes what is in the sources, until [`Pipes::drain`] says that it was sent.
    pub fn begin_drain(&mut self) {
        (0..PIPES).for_each(|at| self.await_source(at));
    }

    /// Sends what was noted, as far as there is credit. True if that was all.
    pub fn drain(&mut self) -> bool {
        for at in 0..PIPES {
            while self.is_awaited(at) && self.read(at, Reading::Awaited) {}
        }
        !(0..PIPES).any(|at| self.is_awaited(at))
    }

    fn poll_sink(&mut self, at: usize, context: &mut Context<'_>) -> bool {
        let position = self.written();
        let Some(sink) = &mut self.sinks[at] else { return false };
        if sink.arrived.is_empty() {
            if sink.ended {
                self.sinks[at] = None;
            }
            return false;
        }
        if !sink.may_write(position) || sink.pipe.poll_write_ready(context).is_pending() {
            return false;
        }
        let id = PipeId { run: self.run, pipe: at as u8 };
        match sink.write() {
            Ok(()) => sink.give_back(id, &self.outgoing),
            // Nobody reads it any more.
            Err(_) => {
                self.sinks[at] = None;
                self.outgoing.end(id);
            }
        }
        true
    }

    /// How much has arrived for stdout and stderr.
    pub fn position(&self) -> Position {
        self.printed(|sink| sink.received)
    }

    fn written(&self) -> Position {
        self.printed(|sink| sink.written)
    }

    /// Whether all that had arrived then is written, or cannot be.
    pub fn has_written(&self, position: Position) -> bool {
        self.written().is_past(position)
    }

    fn printed(&self, of: impl Fn(&Sink) -> u64) -> Position {
        let at = |pipe: u8| self.sinks[usize::from(pipe)].as_ref().map_or(u64::MAX, &of);
        Position([at(STDOUT), at(STDERR)])
    }
}

/// How a source is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// The runtime says that there is something to read.
    Ready,
    /// Somebody waits for what is there, which the runtime may not know of yet.
    Awaited,
}

impl Position {
    fn is_past(self, other: Self) -> bool {
        // A pipe that is closed now was open then.
        self.0.iter().zip(other.0).all(|(now, then)| *now >= then)
    }
}

impl Sink {
    /// Whether all that was printed before the first piece is written.
    fn may_write(&mut self, written: Position) -> bool {
        while let Some((until, position)) = self.behind.front() {
            if *until <= self.written {
                self.behind.pop_front();
                continue;
            }
            return written.is_past(*position);
        }
        true
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(first) = self.arrived.front() {
            let rest = &first[self.offset..];
            let written = match self.pipe.try_write(rest) {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            self.written += written as u64;
            self.owed += written;
            match written == rest.len() {
                true => {
                    self.arrived.pop_front();
                    self.offset = 0;
                }
                false => self.offset += written,
            }
            // The next piece may have to wait for something else.
            if !self.behind.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Gives credit back for what was written, in large pieces.
    fn give_back(&mut self, id: PipeId, outgoing: &Outgoing) {
        if self.owed < self.window / 4 {
            return;
        }
        if self.written > MUCH && self.window < LARGE_WINDOW {
            self.owed += LARGE_WINDOW - self.window;
            self.window = LARGE_WINDOW;
        }
        outgoing.credit(id, self.owed as u32);
        self.allowed += std::mem::take(&mut self.owed);
    }
}
