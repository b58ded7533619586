//! One run on this machine, as its keeper reports it.
//!
//!     SpawnFrame ─▶ NearProcess ── KeeperRequest ──▶ keeper
//!                      │ ◀──────── KeeperEvent ───────┘
//!                      └─ next ─▶ ProcessEvent
//!
//! A process owns the connection to its keeper. It gives the connection back to the pool only when nothing
//! of the run is left; dropped earlier, it ends the run.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use mcpz_runtime::spawn_blocking;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::time::timeout;

use crate::frame::{Failure, KeeperEvent, KeeperRequest, Stage, Status, encode};
use crate::inspect::Question;
use crate::keeper::ORPHAN_GRACE;
use crate::limits::Limit;
use crate::pool::{KeeperConnection, Pool, RESUME_INTERVAL};
use crate::process_event::{ProcessEvent, Started};
use crate::socket;
use crate::spawn_frame::{ExpectedFds, SpawnFrame};
use crate::tree::kill_and_reap_all;

/// How long the agent may take to kill what a killed keeper left behind.
const CLEANUP_TIME: Duration = Duration::from_secs(5);

/// A run and its keeper.
pub struct NearProcess {
    /// `None` once the keeper is gone.
    keeper: Option<KeeperConnection>,
    /// The request that starts the run, until the keeper has reported something.
    frame: Option<SpawnFrame>,
    /// How many bytes of the frame have been sent.
    frame_sent: usize,
    /// Later requests that have not been sent yet.
    pending: Vec<u8>,
    /// Whether there ever was a later request.
    requested: bool,
    expected: ExpectedFds,
    over: bool,
    /// The pool to give the keeper back to. A recorder's own keeper has none.
    pool: Option<Arc<Pool>>,
    /// How many processes of the sandbox had been killed for lack of memory when the run began.
    oom_kills: u64,
}

impl NearProcess {
    /// Sends the request that starts the run.
    pub(crate) fn new(
        keeper: KeeperConnection,
        frame: SpawnFrame,
        pool: Option<Arc<Pool>>,
    ) -> Self {
        let oom_kills = pool.as_ref().map_or(0, |pool| pool.oom_kills());
        let mut process = Self {
            keeper: Some(keeper),
            expected: frame.expected,
            frame: Some(frame),
            frame_sent: 0,
            pending: Vec::new(),
            requested: false,
            over: false,
            pool,
            oom_kills,
        };
        process.send();
        process
    }

    /// The next event; `Lost` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> ProcessEvent {
        while let Some(keeper) = &mut self.keeper
            && !self.over
        {
            let event = match keeper.inbox.next() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    if let Err(error) = self.exchange().await {
                        if let Some(frame) = self.reclaim_unread(&error) {
                            return ProcessEvent::NotStarted(frame);
                        }
                        self.lose_keeper().await;
                    }
                    continue;
                }
                Err(_) => {
                    self.lose_keeper().await;
                    continue;
                }
            };
            self.frame = None;
            return self.interpret(event);
        }
        ProcessEvent::Lost
    }

    /// The frame, if the keeper ended before it read all of it. The kernel reports ECONNRESET when the
    /// other end is closed with unread bytes, and only the frame can be unread if nothing else was sent.
    fn reclaim_unread(&mut self, error: &io::Error) -> Option<SpawnFrame> {
        let unread = error.raw_os_error() == Some(Errno::CONNRESET.raw_os_error());
        let frame = self.frame.take_if(|_| unread && !self.requested)?;
        self.keeper = None;
        Some(frame)
    }

    /// Whether the agent was killed, which ends the run.
    pub fn is_orphaned(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.is_closed())
    }

    /// Sends SIGTERM to the whole process tree, and SIGKILL to what is left after the grace.
    pub fn kill(&mut self, grace: Duration) {
        self.request(&KeeperRequest::Kill { grace });
    }

    /// Sends a signal to the first process.
    pub fn signal(&mut self, signal: i32) {
        self.request(&KeeperRequest::Signal(signal));
    }

    /// Asks the keeper a question. [`ProcessEvent::Answered`] carries the answer, unless the run ends first.
    pub fn ask(&mut self, question: Question) {
        self.request(&KeeperRequest::Ask(question));
    }

    fn request(&mut self, request: &KeeperRequest) {
        let encoded = encode(request, &mut self.pending);
        debug_assert!(encoded.is_ok(), "only a spawn can be too long");
        self.requested = true;
        self.send();
    }

    /// Turns a keeper's event into what it means for the run.
    fn interpret(&mut self, event: KeeperEvent) -> ProcessEvent {
        match event {
            KeeperEvent::Failed(failure) => {
                self.over = true;
                ProcessEvent::Failed(failure)
            }
            KeeperEvent::Started { pid, fds } => match self.take_fds(pid, fds.into()) {
                Some(started) => ProcessEvent::Started(started),
                // The kernel drops descriptors that do not fit into this process's table.
                None => {
                    self.hang_up();
                    let errno = Errno::MFILE.raw_os_error();
                    ProcessEvent::Failed(Failure { stage: Stage::Resources, errno })
                }
            },
            KeeperEvent::Exited { mut exit, gone } => {
                self.over = gone;
                if exit.limit.is_none()
                    && let Some(limit) = self.limit_of_sandbox(exit.status)
                {
                    (exit.limit, exit.status) =
                        (Some(limit), Status::Signal(Signal::KILL.as_raw()));
                }
                ProcessEvent::Exited { exit, gone }
            }
            KeeperEvent::Gone { survivors, limit } => {
                self.over = true;
                // The keeper stays with the survivors and ends when they do.
                if !survivors.is_empty() {
                    self.keeper = None;
                }
                ProcessEvent::Gone { survivors, limit }
            }
            KeeperEvent::Answered(answer) => ProcessEvent::Answered(answer),
        }
    }

    /// The memory limit of the whole sandbox, if that ended the run. The keeper is inside and cannot tell.
    fn limit_of_sandbox(&self, status: Status) -> Option<Limit> {
        let killed = Signal::KILL.as_raw();
        let killed = status == Status::Signal(killed) || status == Status::Code(128 + killed);
        let killed =
            killed && self.pool.as_ref().is_some_and(|pool| pool.oom_kills() > self.oom_kills);
        killed.then_some(Limit::SharedMemory)
    }

    fn take_fds(&mut self, pid: i32, count: usize) -> Option<Started> {
        let mut fds = self.keeper.as_mut()?.inbox.take_fds(count)?;
        let replies = match self.expected.replies {
            true => Some(fds.pop()?),
            false => None,
        };
        let mut fds = fds.into_iter();
        let stdout = fds.next()?;
        let (stderr, stdin) = match self.expected.terminal {
            true => (None, Some(stdout.try_clone().ok()?)),
            false => (Some(fds.next()?), fds.next()),
        };
        Some(Started { pid, stdout, stderr, stdin, replies })
    }

    /// Makes the keeper end its run and then itself.
    fn hang_up(&mut self) {
        self.kill(ORPHAN_GRACE);
        if let Some(keeper) = self.keeper.take() {
            let _ = rustix::net::shutdown(&*keeper.socket, Shutdown::Write);
        }
    }

    /// Waits for bytes from the keeper, and sends pending requests meanwhile.
    async fn exchange(&mut self) -> io::Result<()> {
        if self.keeper.is_none() {
            return Ok(());
        }
        let interest = match self.next_pending().is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let ready = match (&self.frame, &self.pool) {
            (Some(_), Some(pool)) => {
                match timeout(RESUME_INTERVAL, keeper.socket.ready(interest)).await {
                    Ok(ready) => ready?,
                    // A keeper reports as soon as it has started the run, unless something has stopped it.
                    Err(_) => {
                        pool.resume_all().await;
                        return Ok(());
                    }
                }
            }
            _ => keeper.socket.ready(interest).await?,
        };
        if ready.is_readable() {
            let KeeperConnection { socket, inbox, .. } = keeper;
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

    /// The bytes to send next: the rest of the frame, then later requests.
    fn next_pending(&self) -> &[u8] {
        let frame = self.frame.as_ref().map(|frame| &frame.bytes[self.frame_sent..]);
        frame.filter(|rest| !rest.is_empty()).unwrap_or(&self.pending)
    }

    /// Sends as much as the socket takes now; `exchange` sends the rest.
    fn send(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        let socket = keeper.socket.clone();
        loop {
            let bytes = self.next_pending();
            if bytes.is_empty() {
                return;
            }
            // The descriptor travels with the first byte.
            let directory = self.frame.as_ref().filter(|_| self.frame_sent == 0);
            let directory = directory.and_then(|frame| frame.directory.as_ref()).map(AsFd::as_fd);
            let sent = socket.try_io(Interest::WRITABLE, || {
                let flags = SendFlags::DONTWAIT;
                Ok(socket::send(socket.as_fd(), bytes, directory.as_slice(), flags)?)
            });
            match sent {
                Ok(sent) => self.note_sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The keeper is dead; reading will report it.
                Err(_) => {
                    self.frame_sent = self.frame.as_ref().map_or(0, |frame| frame.bytes.len());
                    self.pending.clear();
                }
            }
        }
    }

    fn note_sent(&mut self, sent: usize) {
        match &self.frame {
            Some(frame) if self.frame_sent < frame.bytes.len() => self.frame_sent += sent,
            _ => drop(self.pending.drain(..sent)),
        }
    }

    /// Gives up on the keeper, which is dead or sends garbage, and waits until what it left behind is killed.
    async fn lose_keeper(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = rustix::net::shutdown(&*keeper.socket, Shutdown::Write);
            match self.pool {
                Some(_) => drop(timeout(CLEANUP_TIME, &mut keeper.gone).await),
                // A recorder has no agent above it to do this.
                None => drop(spawn_blocking(kill_and_reap_all).await),
            }
        }
        self.keeper = None;
    }
}

impl Drop for NearProcess {
    fn drop(&mut self) {
        if !self.over || !self.next_pending().is_empty() {
            self.hang_up();
        }
        if let (Some(keeper), Some(pool)) = (self.keeper.take(), &self.pool) {
            pool.give_back(keeper);
        }
    }
}
