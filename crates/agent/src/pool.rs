//! The keepers of one agent, and the socket on which the agent is asked for more.
//!
//!     Link ─ take_idle, make_keeper ─▶ Connection ─▶ Process ─ give_back ─▶ idle
//!
//! A [`Connection`] has one owner at a time: the pool while the keeper is idle, a process while it runs
//! something. A keeper is given back only when nothing of its run is left.

mod outbox;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};

use crate::agent_process::AgentProcess;
use crate::ancestry::wake_ours_below;
use crate::cgroup::Whole;
use crate::error::LinkError;
use crate::frame::{self, Order};
use crate::wire::{self, Inbox};
use mcpz_runtime::aside;
use outbox::Outbox;

/// Keepers that are always ready.
pub const SPARE: usize = 2;

/// How long a keeper beyond those waits for more work before it is let go.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Between two tries to give the agent an order it does not take.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// Between two tries to wake what somebody may have stopped.
pub const WAKE_AGAIN: Duration = Duration::from_millis(250);

/// The owner of the keepers that are made before anybody needs one.
pub const FIRST_OWNER: u64 = 0;

/// An agent and its keepers, as the server sees them.
pub struct Pool {
    pub agent: AgentProcess,
    pub control: UnixStream,
    /// Whether what it starts lives in namespaces of its own.
    confined: bool,
    /// What all of it is in, if it can make nothing like that itself.
    whole: Mutex<Option<Whole>>,
    state: Mutex<State>,
    outbox: Outbox,
    /// Told when there are more idle keepers than need to be.
    surplus: Notify,
    /// True when the agent and all it started are gone.
    pub closed: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    /// With the time since when they are; the last one is the one that is idle for the shortest.
    idle: Vec<(Connection, Instant)>,
    all: HashMap<u64, Entry>,
    made: u64,
    closed: bool,
}

/// What is known of a keeper, idle or not.
struct Entry {
    socket: Weak<UnixStream>,
    _buried: oneshot::Sender<()>,
}

/// A keeper, in the hands of whoever may use it.
pub struct Connection {
    /// Whose runs it keeps.
    pub owner: u64,
    pub socket: Arc<UnixStream>,
    pub inbox: Inbox,
    /// Done when the keeper has ended and nothing of it is left.
    pub buried: oneshot::Receiver<()>,
}

impl Connection {
    /// An idle keeper says nothing: whatever can be read is the end of its stream. The kernel is
    /// asked, as the runtime may not have heard yet.
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
        whole: Option<Whole>,
        closed: watch::Receiver<bool>,
    ) -> Self {
        Self {
            agent,
            control,
            confined,
            whole: Mutex::new(whole),
            state: Mutex::default(),
            outbox: Outbox::default(),
            surplus: Notify::new(),
            closed,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed || self.is_hung_up()
    }

    /// A keeper for runs of this owner: an idle one, or else a new one.
    pub fn take(&self, owner: u64) -> Result<Connection, LinkError> {
        self.take_idle(owner).map_or_else(|| self.make_keeper(owner), Ok)
    }

    /// Takes back a keeper whose run is over.
    pub fn give_back(&self, mut keeper: Connection) {
        keeper.inbox.shrink();
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.idle.push((keeper, Instant::now()));
        if state.idle.len() > SPARE {
            self.surplus.notify_one();
        }
    }

    /// A keeper of this owner that is idle and alive.
    fn take_idle(&self, owner: u64) -> Option<Connection> {
        let mut state = self.lock();
        loop {
            let last = state.idle.iter().rposition(|(keeper, _)| keeper.owner == owner)?;
            let (keeper, _) = state.idle.remove(last);
            if keeper.is_alive() {
                return Some(keeper);
            }
        }
    }

    /// Has keepers made that nobody needs yet.
    pub fn make_spare(&self) -> Result<(), LinkError> {
        for _ in 0..SPARE {
            let keeper = self.make_keeper(FIRST_OWNER)?;
            self.lock().idle.push((keeper, Instant::now()));
        }
        Ok(())
    }

    fn make_keeper(&self, owner: u64) -> Result<Connection, LinkError> {
        let (ours, theirs) = wire::pair().map_err(LinkError::Ask)?;
        let socket = Arc::new(wire::connect(ours).map_err(LinkError::Ask)?);
        let (burying, buried) = oneshot::channel();
        let keeper = {
            let mut state = self.lock();
            if state.closed {
                return Err(LinkError::Gone);
            }
            state.made += 1;
            let keeper = state.made;
            state.all.insert(keeper, Entry { socket: Arc::downgrade(&socket), _buried: burying });
            keeper
        };
        if let Err(error) = self.order(&Order::Keep { keeper, owner }, Some(theirs)) {
            self.bury(keeper);
            return Err(error);
        }
        Ok(Connection { owner, socket, inbox: Inbox::default(), buried })
    }

    /// Gives an order now or, while the agent is busy with others, when it takes more.
    pub fn order(&self, order: &Order, fd: Option<OwnedFd>) -> Result<(), LinkError> {
        let mut bytes = Vec::new();
        frame::encode(order, &mut bytes).map_err(LinkError::TooLong)?;
        match self.outbox.post(self.control.as_fd(), bytes, fd) {
            Ok(()) => {
                self.wake();
                Ok(())
            }
            Err(Errno::PIPE | Errno::CONNRESET) => {
                // Nobody is to ask it again.
                self.hang_up();
                Err(LinkError::Gone)
            }
            Err(errno) => Err(LinkError::Ask(errno.into())),
        }
    }

    /// Sends orders that had to wait, for as long as the agent is there.
    pub async fn send_unsent(&self) {
        loop {
            self.outbox.filled().await;
            while !self.outbox.send(self.control.as_fd()) {
                self.wake();
                // The kernel does not tell when descriptors have arrived.
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Notes that a keeper has ended, and that nothing of it is left.
    pub fn bury(&self, keeper: u64) {
        self.lock().all.remove(&keeper);
    }

    /// The same for all of them.
    pub fn bury_all(&self) {
        self.lock().all.clear();
    }

    /// Tells every keeper that nobody is interested any more: it ends its run, and then itself.
    pub fn hang_up(&self) {
        // The ends of keepers that never come to be: who waits for one sees them closed.
        self.outbox.clear();
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        for socket in state.all.values().filter_map(|entry| entry.socket.upgrade()) {
            let _ = rustix::net::shutdown(&*socket, Shutdown::Write);
        }
    }

    /// Whether the agent is gone, though nobody may have heard of it yet.
    fn is_hung_up(&self) -> bool {
        let mut control = [PollFd::new(&self.control, PollFlags::RDHUP)];
        poll(&mut control, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Lets go of keepers that were not needed for a while.
    pub async fn trim(&self) {
        loop {
            self.surplus.notified().await;
            tokio::time::sleep(IDLE_TIME).await;
            let mut state = self.lock();
            let beyond = state.idle.len().saturating_sub(SPARE);
            let unneeded = state.idle.iter().take(beyond);
            let unneeded = unneeded.take_while(|(_, since)| since.elapsed() >= IDLE_TIME).count();
            state.idle.drain(..unneeded);
            if state.idle.len() > SPARE {
                self.surplus.notify_one();
            }
        }
    }

    /// Has the agent go on if somebody has stopped it.
    pub fn wake(&self) {
        self.agent.signal(Signal::CONT);
    }

    /// Has the agent and its keepers go on if somebody has stopped them. An agent wakes its keepers itself, but
    /// that of a sandbox can only be found by looking for it.
    pub async fn wake_all(&self) {
        self.wake();
        if self.confined {
            let root = self.agent.id().as_raw_nonzero().get();
            let _ = aside(move || wake_ours_below(root)).await;
        }
    }

    /// Continues stopped keepers after their agent has died; the agent would have done so. Only they are in its
    /// process group. False once none is left.
    pub fn wake_keepers(&self) -> bool {
        !self.confined && kill_process_group(self.agent.id(), Signal::CONT).is_ok()
    }

    /// How many processes were killed for want of memory where all of the agent is.
    pub fn kills(&self) -> u64 {
        self.lock_whole().as_ref().map_or(0, Whole::kills)
    }

    /// Removes what all of the agent was in, which may take a moment.
    pub async fn clear_whole(&self) {
        if let Some(whole) = self.take_whole() {
            let _ = aside(move || drop(whole)).await;
        }
    }

    fn take_whole(&self) -> Option<Whole> {
        self.lock_whole().take()
    }

    fn lock_whole(&self) -> MutexGuard<'_, Option<Whole>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
