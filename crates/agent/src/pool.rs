//! The keepers of one agent, and the socket on which the agent is asked for more.
//!
//!     agent ◀─ StartKeeper ─ Pool ─ take ─▶ KeeperConnection ─▶ Process
//!                             └──────── give_back ◀──────────────┘
//!
//! A [`KeeperConnection`] has one owner at a time: the pool while the keeper is idle, a process while it runs
//! something. A keeper is given back only when nothing of its run is left. It serves one owner,
//! in whose cgroup its runs start.

mod outbox;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpz_runtime::spawn_blocking;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};

use crate::agent_process::AgentProcess;
use crate::ancestry::resume_ours_below;
use crate::cgroup::SandboxCgroup;
use crate::error::LinkError;
use crate::frame::{self, AgentRequest};
use crate::socket::{self, Inbox};
use outbox::Outbox;

/// How many idle keepers are always kept.
const SPARES: usize = 2;

/// How long an idle keeper beyond those is kept.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Between two attempts to send a request that the agent does not take.
const SEND_INTERVAL: Duration = Duration::from_millis(2);

/// Between two attempts to resume processes that something may have stopped.
pub const RESUME_INTERVAL: Duration = Duration::from_millis(250);

/// The owner of the keepers that are started before anyone needs one.
pub const FIRST_OWNER: u64 = 0;

/// An agent and its keepers, as the server sees them.
pub struct Pool {
    pub agent: AgentProcess,
    pub control: UnixStream,
    /// Whether the agent confines what it starts.
    confined: bool,
    /// The cgroup of a whole sandbox, whose agent cannot make cgroups.
    cgroup: Mutex<Option<SandboxCgroup>>,
    state: Mutex<State>,
    outbox: Outbox,
    /// Those who wait for the agent's answers, in order.
    callers: Mutex<VecDeque<oneshot::Sender<Option<OwnedFd>>>>,
    /// Notified when more than [`SPARES`] keepers are idle.
    surplus: Notify,
    /// True once the agent and everything it started are gone.
    pub closed: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    /// With the time when they became idle, the most recent last.
    idle: Vec<(KeeperConnection, Instant)>,
    all: HashMap<u64, PooledKeeper>,
    started: u64,
    closed: bool,
}

/// What the pool knows of a keeper, idle or not.
struct PooledKeeper {
    socket: Weak<UnixStream>,
    /// Dropped when the keeper has ended, which completes [`KeeperConnection::gone`].
    _gone: oneshot::Sender<()>,
}

/// A connection to one keeper. Its holder may start a run.
pub struct KeeperConnection {
    /// The owner whose runs this keeper starts.
    pub owner: u64,
    pub socket: Arc<UnixStream>,
    pub inbox: Inbox,
    /// Completes when the keeper has ended and nothing of its run is left.
    pub gone: oneshot::Receiver<()>,
}

impl KeeperConnection {
    /// An idle keeper sends nothing, so anything to read is the end of its stream. Asks the kernel, because
    /// the runtime may not know yet.
    fn is_alive(&self) -> bool {
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let read = rustix::net::recv(&*self.socket, &mut [0; 1], peek);
        matches!(read, Err(Errno::AGAIN))
    }
}

impl Pool {
    pub fn new(
        agent: AgentProcess,
        control: UnixStream,
        confined: bool,
        cgroup: Option<SandboxCgroup>,
        closed: watch::Receiver<bool>,
    ) -> Self {
        Self {
            agent,
            control,
            confined,
            cgroup: Mutex::new(cgroup),
            state: Mutex::default(),
            outbox: Outbox::default(),
            callers: Mutex::default(),
            surplus: Notify::new(),
            closed,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed || self.is_hung_up()
    }

    /// Asks the agent something that it answers. `None` if it cannot.
    pub async fn ask(&self, request: &AgentRequest) -> Option<Option<OwnedFd>> {
        let (caller, answered) = oneshot::channel();
        {
            // Held for both, so that two requests do not overtake each other.
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            self.request(request, None).ok()?;
            callers.push_back(caller);
        }
        let mut closed = self.closed.clone();
        tokio::select! {
            answer = answered => answer.ok(),
            _ = closed.wait_for(|closed| *closed) => None,
        }
    }

    /// Passes the agent's answer to the one who waits for it.
    pub fn answer(&self, attached: Option<OwnedFd>) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.pop_front() {
            let _ = caller.send(attached);
        }
    }

    /// An idle keeper of this owner, or else a new one.
    pub fn take(&self, owner: u64) -> Result<KeeperConnection, LinkError> {
        self.take_idle(owner).map_or_else(|| self.start_keeper(owner), Ok)
    }

    /// Takes back a keeper whose run is over.
    pub fn give_back(&self, mut keeper: KeeperConnection) {
        keeper.inbox.shrink();
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.idle.push((keeper, Instant::now()));
        if state.idle.len() > SPARES {
            self.surplus.notify_one();
        }
    }

    /// A keeper of this owner that is idle and alive.
    fn take_idle(&self, owner: u64) -> Option<KeeperConnection> {
        let mut state = self.lock();
        loop {
            let last = state.idle.iter().rposition(|(keeper, _)| keeper.owner == owner)?;
            let (keeper, _) = state.idle.remove(last);
            if keeper.is_alive() {
                return Some(keeper);
            }
        }
    }

    /// Starts keepers that nobody needs yet.
    pub fn start_spares(&self) -> Result<(), LinkError> {
        for _ in 0..SPARES {
            let keeper = self.start_keeper(FIRST_OWNER)?;
            self.lock().idle.push((keeper, Instant::now()));
        }
        Ok(())
    }

    fn start_keeper(&self, owner: u64) -> Result<KeeperConnection, LinkError> {
        let (ours, theirs) = socket::pair().map_err(LinkError::Ask)?;
        let socket = Arc::new(socket::connect(ours).map_err(LinkError::Ask)?);
        let (ended, gone) = oneshot::channel();
        let keeper = {
            let mut state = self.lock();
            if state.closed {
                return Err(LinkError::Gone);
            }
            state.started += 1;
            let keeper = state.started;
            state
                .all
                .insert(keeper, PooledKeeper { socket: Arc::downgrade(&socket), _gone: ended });
            keeper
        };
        if let Err(error) = self.request(&AgentRequest::StartKeeper { keeper, owner }, Some(theirs))
        {
            self.forget(keeper);
            return Err(error);
        }
        Ok(KeeperConnection { owner, socket, inbox: Inbox::default(), gone })
    }

    /// Sends a request now, or queues it while the agent is busy.
    pub fn request(&self, request: &AgentRequest, fd: Option<OwnedFd>) -> Result<(), LinkError> {
        let mut bytes = Vec::new();
        frame::encode(request, &mut bytes).map_err(LinkError::TooLong)?;
        match self.outbox.send(self.control.as_fd(), bytes, fd) {
            Ok(()) => {
                self.resume();
                Ok(())
            }
            Err(Errno::PIPE | Errno::CONNRESET) => {
                // The agent is dead: no caller should ask it again.
                self.hang_up();
                Err(LinkError::Gone)
            }
            Err(errno) => Err(LinkError::Ask(errno.into())),
        }
    }

    /// Sends requests that had to wait, for as long as the agent lives.
    pub async fn send_waiting(&self) {
        loop {
            self.outbox.filled().await;
            while !self.outbox.send_waiting(self.control.as_fd()) {
                self.resume();
                // The kernel does not report when descriptors in flight have arrived.
                tokio::time::sleep(SEND_INTERVAL).await;
            }
        }
    }

    /// Notes that a keeper has ended and nothing of its run is left.
    pub fn forget(&self, keeper: u64) {
        self.lock().all.remove(&keeper);
    }

    /// The same for all keepers.
    pub fn forget_all(&self) {
        self.lock().all.clear();
    }

    /// Shuts down the connection to every keeper: each ends its run, then itself.
    pub fn hang_up(&self) {
        // Closes the sockets of keepers that will never be started, so that their processes see the end.
        self.outbox.clear();
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        for socket in state.all.values().filter_map(|entry| entry.socket.upgrade()) {
            let _ = rustix::net::shutdown(&*socket, Shutdown::Write);
        }
    }

    /// Whether the agent has closed its end, even if the runtime does not know yet.
    fn is_hung_up(&self) -> bool {
        let mut control = [PollFd::new(&self.control, PollFlags::RDHUP)];
        poll(&mut control, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Drops keepers that have been idle for a while.
    pub async fn trim(&self) {
        loop {
            self.surplus.notified().await;
            tokio::time::sleep(IDLE_TIME).await;
            let mut state = self.lock();
            let beyond = state.idle.len().saturating_sub(SPARES);
            let unneeded = state.idle.iter().take(beyond);
            let unneeded = unneeded.take_while(|(_, since)| since.elapsed() >= IDLE_TIME).count();
            state.idle.drain(..unneeded);
            if state.idle.len() > SPARES {
                self.surplus.notify_one();
            }
        }
    }

    /// Resumes the agent if something has stopped it.
    pub fn resume(&self) {
        self.agent.signal(Signal::CONT);
    }

    /// Resumes the agent and its keepers if something has stopped them. An agent resumes its own keepers, but
    /// the agent of a sandbox is a grandchild that must be searched for.
    pub async fn resume_all(&self) {
        self.resume();
        if self.confined {
            let root = self.agent.id().as_raw_nonzero().get();
            let _ = spawn_blocking(move || resume_ours_below(root)).await;
        }
    }

    /// Resumes stopped keepers after their agent has died. Only they are in its process group. False once
    /// none is left.
    pub fn resume_keepers(&self) -> bool {
        !self.confined && kill_process_group(self.agent.id(), Signal::CONT).is_ok()
    }

    /// How many processes of the sandbox the kernel has killed for lack of memory.
    pub fn oom_kills(&self) -> u64 {
        self.lock_cgroup().as_ref().map_or(0, SandboxCgroup::oom_kills)
    }

    /// Removes the cgroup of the sandbox, on a thread of its own because that may wait.
    pub async fn clear_cgroup(&self) {
        if let Some(cgroup) = self.take_cgroup() {
            let _ = spawn_blocking(move || drop(cgroup)).await;
        }
    }

    fn take_cgroup(&self) -> Option<SandboxCgroup> {
        self.lock_cgroup().take()
    }

    fn lock_cgroup(&self) -> MutexGuard<'_, Option<SandboxCgroup>> {
        self.cgroup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, so the state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
