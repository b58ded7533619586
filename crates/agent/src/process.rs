//! One run, as its keeper tells it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::time::timeout;

use crate::error::LinkError;
use crate::frame::{self, Event, Exit, Failure, Request, Spawn, Stage, Status, Stdin};
use crate::keeper::ORPHAN_GRACE;
use crate::limits::Limit;
use crate::look::{Question, Seen};
use crate::pool::{Connection, Pool, WAKE_AGAIN};
use crate::tree::kill_all_below;
use crate::wire;
use mcpz_runtime::aside;

/// How long the agent may take to kill what a killed keeper left behind.
const BURIAL: Duration = Duration::from_secs(5);

/// What happens to one run, in this order.
#[derive(Debug)]
pub enum Happening {
    /// Its keeper was killed, or never came to be, before it read what starts the run: somebody else
    /// can start it.
    Untouched(Letter),
    Failed(Failure),
    Started(Started),
    Exited {
        exit: Exit,
        gone: bool,
    },
    Gone {
        survivors: Vec<i32>,
        limit: Option<Limit>,
    },
    /// The answer to the first question that was not answered yet.
    Seen(Seen),
    /// The run's keeper was killed. Nothing of the run is left.
    Lost,
}

/// A program that runs, and our ends of its pipes. They do not block.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    /// What it prints; all of it, if it has a terminal.
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
    pub stdin: Option<OwnedFd>,
    /// Where to write orders and to read answers, if it is directed.
    pub direction: Option<(OwnedFd, OwnedFd)>,
}

/// The frame that starts a run, what goes with it, and what the run was asked to have.
#[derive(Debug)]
pub struct Letter {
    bytes: Vec<u8>,
    handle: Option<OwnedFd>,
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    terminal: bool,
    directed: bool,
}

impl Letter {
    /// What starts a program.
    pub fn new(spawn: Spawn) -> Result<Self, LinkError> {
        let terminal = matches!(spawn.stdin, Stdin::Terminal { .. });
        let shape = Shape { terminal, directed: spawn.directed };
        let (spawn, handle) = spawn.enclose();
        let mut bytes = Vec::new();
        frame::encode(&Request::Spawn(spawn), &mut bytes).map_err(LinkError::TooLong)?;
        Ok(Self { bytes, handle, shape })
    }

    /// What it starts, for somebody who has to write another one.
    pub fn open(self) -> Option<Spawn> {
        match frame::decode(&self.bytes).ok()?? {
            (Request::Spawn(spawn), _) => spawn.unpack(|| self.handle),
            _ => None,
        }
    }
}

/// A run and its keeper. Dropped before the run is over, it ends the run.
pub struct Process {
    /// Gone when the keeper is.
    keeper: Option<Connection>,
    /// What starts it, until the keeper has said something.
    letter: Option<Letter>,
    /// How much of that was sent.
    posted: usize,
    /// What else is to be sent.
    unsent: Vec<u8>,
    /// Whether there ever was anything else.
    asked: bool,
    shape: Shape,
    over: bool,
    /// Where the keeper came from, if it can be used again.
    pool: Option<Arc<Pool>>,
    /// How many were killed there for want of memory before.
    kills: u64,
}

impl Process {
    /// Sends what starts the run.
    pub(crate) fn new(keeper: Connection, letter: Letter, pool: Option<Arc<Pool>>) -> Self {
        let (shape, kills) = (letter.shape, pool.as_ref().map_or(0, |pool| pool.kills()));
        let mut process = Self {
            keeper: Some(keeper),
            letter: Some(letter),
            posted: 0,
            unsent: Vec::new(),
            asked: false,
            shape,
            over: false,
            pool,
            kills,
        };
        process.send();
        process
    }

    /// What happens next. After the last happening: `Lost`. Nothing is lost if this is dropped
    /// before it is done.
    pub async fn next(&mut self) -> Happening {
        while let Some(keeper) = &mut self.keeper
            && !self.over
        {
            let event = match keeper.inbox.next() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    if let Err(error) = self.exchange().await {
                        if let Some(letter) = self.take_back(&error) {
                            return Happening::Untouched(letter);
                        }
                        self.mourn().await;
                    }
                    continue;
                }
                Err(_) => {
                    self.mourn().await;
                    continue;
                }
            };
            self.letter = None;
            return self.happening(event);
        }
        Happening::Lost
    }

    /// What starts the run, if the keeper has not read all of it and never will. That is what the
    /// kernel says when a socket is closed with something in it, which is nothing else here.
    fn take_back(&mut self, error: &io::Error) -> Option<Letter> {
        let unread = error.raw_os_error() == Some(Errno::CONNRESET.raw_os_error());
        let letter = self.letter.take_if(|_| unread && !self.asked)?;
        self.keeper = None;
        Some(letter)
    }

    /// Whether the agent was killed, and the run was ended for that.
    pub fn is_orphaned(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.is_closed())
    }

    /// Asks the whole tree to end, and kills what is left of it after the grace.
    pub fn kill(&mut self, grace: Duration) {
        self.ask(&Request::Kill { grace });
    }

    /// Sends one signal to the first process.
    pub fn signal(&mut self, signal: i32) {
        self.ask(&Request::Signal(signal));
    }

    /// Asks its keeper something, which is answered by [`Happening::Seen`] unless the run is over before.
    pub fn look(&mut self, question: Question) {
        self.ask(&Request::Look(question));
    }

    fn ask(&mut self, request: &Request) {
        let encoded = frame::encode(request, &mut self.unsent);
        debug_assert!(encoded.is_ok(), "only a spawn can be too long");
        self.asked = true;
        self.send();
    }

    /// Takes an event for what it means.
    fn happening(&mut self, event: Event) -> Happening {
        match event {
            Event::Failed(failure) => {
                self.over = true;
                Happening::Failed(failure)
            }
            Event::Started { pid, fds } => match self.take_ends(pid, fds.into()) {
                Some(started) => Happening::Started(started),
                // The kernel drops descriptors for which this process has no room.
                None => {
                    self.hang_up();
                    let errno = Errno::MFILE.raw_os_error();
                    Happening::Failed(Failure { stage: Stage::Resources, errno })
                }
            },
            Event::Exited { mut exit, gone } => {
                self.over = gone;
                if exit.limit.is_none()
                    && let Some(limit) = self.limit_outside(exit.status)
                {
                    (exit.limit, exit.status) =
                        (Some(limit), Status::Signal(Signal::KILL.as_raw()));
                }
                Happening::Exited { exit, gone }
            }
            Event::Gone { survivors, limit } => {
                self.over = true;
                // It stays with them, and ends when they do.
                if !survivors.is_empty() {
                    self.keeper = None;
                }
                Happening::Gone { survivors, limit }
            }
            Event::Seen(seen) => Happening::Seen(seen),
        }
    }

    /// The limit that ended a process which its keeper, within the same bounds, cannot see.
    fn limit_outside(&self, status: Status) -> Option<Limit> {
        let killed = Signal::KILL.as_raw();
        let killed = status == Status::Signal(killed) || status == Status::Code(128 + killed);
        let killed = killed && self.pool.as_ref().is_some_and(|pool| pool.kills() > self.kills);
        killed.then_some(Limit::SharedMemory)
    }

    fn take_ends(&mut self, pid: i32, count: usize) -> Option<Started> {
        let mut fds = self.keeper.as_mut()?.inbox.take_fds(count)?;
        let direction = match self.shape.directed {
            true => {
                let (answers, orders) = (fds.pop()?, fds.pop()?);
                Some((orders, answers))
            }
            false => None,
        };
        let mut fds = fds.into_iter();
        let stdout = fds.next()?;
        let (stderr, stdin) = match self.shape.terminal {
            true => (None, Some(stdout.try_clone().ok()?)),
            false => (Some(fds.next()?), fds.next()),
        };
        Some(Started { pid, stdout, stderr, stdin, direction })
    }

    /// Has the keeper end its run and itself.
    fn hang_up(&mut self) {
        self.kill(ORPHAN_GRACE);
        if let Some(keeper) = self.keeper.take() {
            let _ = rustix::net::shutdown(&*keeper.socket, Shutdown::Write);
        }
    }

    /// Waits until the keeper says something, sending meanwhile what is still to be sent.
    async fn exchange(&mut self) -> io::Result<()> {
        if self.keeper.is_none() {
            return Ok(());
        }
        let interest = match self.next_unsent().is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let ready = match (&self.letter, &self.pool) {
            (Some(_), Some(pool)) => match timeout(WAKE_AGAIN, keeper.socket.ready(interest)).await
            {
                Ok(ready) => ready?,
                // It says something as soon as it has started the run, unless somebody has stopped it.
                Err(_) => {
                    pool.wake_all().await;
                    return Ok(());
                }
            },
            _ => keeper.socket.ready(interest).await?,
        };
        if ready.is_readable() {
            let Connection { socket, inbox, .. } = keeper;
            let received = socket.try_io(Interest::READABLE, || {
                Ok(inbox.fill(socket.as_fd(), RecvFlags::DONTWAIT)?)
            });
            match received {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        if ready.is_writable() {
            self.send();
        }
        Ok(())
    }

    /// What is to be sent next.
    fn next_unsent(&self) -> &[u8] {
        let letter = self.letter.as_ref().map(|letter| &letter.bytes[self.posted..]);
        letter.filter(|rest| !rest.is_empty()).unwrap_or(&self.unsent)
    }

    /// Sends what the socket takes now; the rest is sent while waiting.
    fn send(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        let socket = keeper.socket.clone();
        loop {
            let bytes = self.next_unsent();
            if bytes.is_empty() {
                return;
            }
            // Goes with the first byte.
            let handle = self.letter.as_ref().filter(|_| self.posted == 0);
            let handle = handle.and_then(|letter| letter.handle.as_ref()).map(AsFd::as_fd);
            let sent = socket.try_io(Interest::WRITABLE, || {
                let flags = SendFlags::DONTWAIT;
                Ok(wire::send(socket.as_fd(), bytes, handle.as_slice(), flags)?)
            });
            match sent {
                Ok(sent) => self.note_sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A keeper that does not listen is dead, which reading will tell.
                Err(_) => {
                    self.posted = self.letter.as_ref().map_or(0, |letter| letter.bytes.len());
                    self.unsent.clear();
                }
            }
        }
    }

    fn note_sent(&mut self, sent: usize) {
        match &self.letter {
            Some(letter) if self.posted < letter.bytes.len() => self.posted += sent,
            _ => drop(self.unsent.drain(..sent)),
        }
    }

    /// The keeper is dead, or as good as. Waits until the agent has killed what it left behind.
    async fn mourn(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = rustix::net::shutdown(&*keeper.socket, Shutdown::Write);
            match self.pool {
                Some(_) => drop(timeout(BURIAL, &mut keeper.buried).await),
                // Nobody is above us who would.
                None => drop(aside(kill_all_below).await),
            }
        }
        self.keeper = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.over || !self.next_unsent().is_empty() {
            self.hang_up();
        }
        if let (Some(keeper), Some(pool)) = (self.keeper.take(), &self.pool) {
            pool.give_back(keeper);
        }
    }
}
