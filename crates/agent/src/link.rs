//! The server's side: an agent, and a pool of keepers that are ready to run something.
//!
//! A [`Link`] is cheap to clone. A run takes a keeper out of the pool and gives it back when
//! nothing of the run is left; there is nobody between the run and its keeper. When the agent is
//! killed, all keepers are told to end their runs.

mod outbox;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

use crate::ancestry::wake_ours_below;
use crate::cgroup::{self, Whole};
use crate::frame::{self, Confinement, FrameError, Order, Report, Spawn, VERSION};
use crate::limits::Limits;
use crate::process::{Letter, Process};
use crate::wire::Inbox;
use mcpz_runtime::aside;
use outbox::Outbox;

/// Keepers that are always ready.
const SPARE: usize = 2;

/// Whose those are that are made before anybody needs one.
pub const FIRST_OWNER: u64 = 0;

/// How long a keeper beyond those waits for more work before it is let go.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Between two tries to give the agent an order it does not take.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// How long the agent may take to leave: it gives up long before, unless it is still ending runs.
const LEAVE_TIME: Duration = Duration::from_secs(60);

/// Between two tries to wake what somebody may have stopped.
pub const WAKE_AGAIN: Duration = Duration::from_millis(250);

/// How long it may take to read what an agent has said that has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long keepers may take to leave when their agent is gone.
const LAST_CALL: Duration = Duration::from_secs(5);

/// Why nothing could be started.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the agent could not be started")]
    Start(#[source] io::Error),
    #[error("the agent cannot be asked for another keeper")]
    Ask(#[source] io::Error),
    #[error("commands cannot be confined as they must be: {0}")]
    Confinement(String),
    #[error("the agent is gone")]
    Gone,
    #[error("the request does not fit")]
    TooLong(#[source] FrameError),
}

/// A connection to an agent and its keepers.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Pid,
    control: UnixStream,
    /// Whether what it starts lives in namespaces of its own.
    confined: bool,
    /// What all of it is in, if it can make nothing like that itself.
    whole: Mutex<Option<Whole>>,
    state: Mutex<State>,
    outbox: Outbox,
    /// Told when there are more idle keepers than need to be.
    surplus: Notify,
    closed: watch::Receiver<bool>,
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

/// What could not be sent, and why.
pub struct Unsent {
    pub error: LinkError,
    pub letter: Letter,
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

impl Link {
    /// Starts `program agent`, with these variables and no others, and connects to it. Every run has
    /// these limits. Must be called within a tokio runtime.
    pub fn start(
        program: &Path,
        variables: &[(OsString, OsString)],
        limits: Limits,
    ) -> Result<Self, LinkError> {
        let mut command = Command::new(program);
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        command.arg0("mcpz").arg("agent");
        Self::connect(command, limits, None, None).map(|(link, _)| link)
    }

    /// Starts an agent for one owner that confines whatever it starts, with a command that ends up
    /// being one. Returns where commands find their way out, if they are to have one. The agent may go
    /// with the thread that calls this.
    pub async fn start_confined(
        mut command: Command,
        limits: Limits,
        confinement: Confinement,
    ) -> Result<(Self, Option<TcpListener>), LinkError> {
        let whole = match limits.own_namespace {
            true => aside(move || Whole::create(&limits)).await.ok(),
            false => None,
        };
        whole.iter().for_each(|whole| whole.enclose(&mut command));
        let (link, greeted) = Self::connect(command, limits, Some(confinement), whole)?;
        match greeted.await {
            Ok(Ok(listener)) => Ok((link, listener)),
            Ok(Err(why)) => Err(LinkError::Confinement(why)),
            Err(_) => Err(LinkError::Gone),
        }
    }

    /// Has a command be an agent.
    fn connect(
        mut command: Command,
        limits: Limits,
        confinement: Option<Confinement>,
        whole: Option<Whole>,
    ) -> Result<(Self, oneshot::Receiver<Greeting>), LinkError> {
        let (ours, theirs) = pair().map_err(LinkError::Start)?;
        let agent = command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(LinkError::Start)?;
        let control = connect(ours).map_err(LinkError::Start)?;
        let (closing, closed) = watch::channel(false);
        let shared = Shared {
            agent: Pid::from_child(&agent),
            control,
            confined: confinement.is_some(),
            whole: Mutex::new(whole),
            state: Mutex::default(),
            outbox: Outbox::default(),
            surplus: Notify::new(),
            closed,
        };
        let link = Self { shared: Arc::new(shared) };
        let confinement = confinement.map(Box::new);
        link.order(&Order::Hello { version: VERSION, limits, confinement }, None)?;
        for _ in 0..SPARE {
            let keeper = link.make_keeper(FIRST_OWNER)?;
            link.shared.lock().idle.push((keeper, Instant::now()));
        }
        let (greeting, greeted) = oneshot::channel();
        let reader = Reader {
            shared: link.shared.clone(),
            inbox: Inbox::default(),
            cgroups: Vec::new(),
            greeting: Some(greeting),
        };
        tokio::spawn(async move {
            reader.read_all(agent).await;
            let _ = closing.send(true);
        });
        Ok((link, greeted))
    }

    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed || self.shared.is_hung_up()
    }

    /// Has a program started for an owner. What becomes of it is told by the returned [`Process`].
    pub fn spawn(&self, owner: u64, spawn: Spawn) -> Result<Process, LinkError> {
        self.send(owner, Letter::new(spawn)?).map_err(|unsent| unsent.error)
    }

    /// The same, but gives the letter back on failure, so that the caller can try another agent.
    pub fn send(&self, owner: u64, letter: Letter) -> Result<Process, Unsent> {
        let keeper = match self.take_idle(owner) {
            Some(keeper) => keeper,
            None => match self.make_keeper(owner) {
                Ok(keeper) => keeper,
                Err(error) => return Err(Unsent { error, letter }),
            },
        };
        Ok(Process::new(keeper, letter, Some(self.clone())))
    }

    /// Ends the agent and with it every run, and waits until they are gone.
    pub async fn close(&self) {
        self.hang_up();
        let mut closed = self.shared.closed.clone();
        let until = Instant::now() + LEAVE_TIME;
        // One that was stopped could not hear.
        self.shared.wake();
        while Instant::now() < until {
            if timeout(WAKE_AGAIN, closed.wait_for(|closed| *closed)).await.is_ok() {
                return;
            }
            self.wake_all().await;
        }
        let _ = rustix::net::shutdown(&self.shared.control, Shutdown::Read);
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Ends the agent and with it every run, and does not wait for that.
    pub fn hang_up(&self) {
        self.shared.hang_up();
        let _ = rustix::net::shutdown(&self.shared.control, Shutdown::Write);
    }

    /// Has the agent and its keepers go on if somebody has stopped them. An agent wakes its keepers itself, but
    /// that of a sandbox can only be found by looking for it.
    pub(crate) async fn wake_all(&self) {
        self.shared.wake();
        if self.shared.confined {
            let root = self.shared.agent.as_raw_nonzero().get();
            let _ = aside(move || wake_ours_below(root)).await;
        }
    }

    /// Takes back a keeper whose run is over.
    pub(crate) fn give_back(&self, mut keeper: Connection) {
        keeper.inbox.shrink();
        let mut state = self.shared.lock();
        if state.closed {
            return;
        }
        state.idle.push((keeper, Instant::now()));
        if state.idle.len() > SPARE {
            self.shared.surplus.notify_one();
        }
    }

    /// How many processes were killed for want of memory where all of the agent is.
    pub(crate) fn kills(&self) -> u64 {
        let whole = self.shared.whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.as_ref().map_or(0, Whole::kills)
    }

    /// A keeper of this owner that is idle and alive.
    fn take_idle(&self, owner: u64) -> Option<Connection> {
        let mut state = self.shared.lock();
        loop {
            let last = state.idle.iter().rposition(|(keeper, _)| keeper.owner == owner)?;
            let (keeper, _) = state.idle.remove(last);
            if keeper.is_alive() {
                return Some(keeper);
            }
        }
    }

    fn make_keeper(&self, owner: u64) -> Result<Connection, LinkError> {
        let (ours, theirs) = pair().map_err(LinkError::Ask)?;
        let socket = Arc::new(connect(ours).map_err(LinkError::Ask)?);
        let (burying, buried) = oneshot::channel();
        let keeper = {
            let mut state = self.shared.lock();
            if state.closed {
                return Err(LinkError::Gone);
            }
            state.made += 1;
            let keeper = state.made;
            state.all.insert(keeper, Entry { socket: Arc::downgrade(&socket), _buried: burying });
            keeper
        };
        if let Err(error) = self.order(&Order::Keep { keeper, owner }, Some(theirs)) {
            self.shared.lock().all.remove(&keeper);
            return Err(error);
        }
        Ok(Connection { owner, socket, inbox: Inbox::default(), buried })
    }

    /// Gives an order now or, while the agent is busy with others, when it takes more.
    fn order(&self, order: &Order, fd: Option<OwnedFd>) -> Result<(), LinkError> {
        let mut bytes = Vec::new();
        frame::encode(order, &mut bytes).map_err(LinkError::TooLong)?;
        match self.shared.outbox.post(self.shared.control.as_fd(), bytes, fd) {
            Ok(()) => {
                self.shared.wake();
                Ok(())
            }
            Err(Errno::PIPE | Errno::CONNRESET) => {
                // Nobody is to ask it again.
                self.shared.hang_up();
                Err(LinkError::Gone)
            }
            Err(errno) => Err(LinkError::Ask(errno.into())),
        }
    }
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the agent is gone, though nobody may have heard of it yet.
    fn is_hung_up(&self) -> bool {
        let mut control = [PollFd::new(&self.control, PollFlags::RDHUP)];
        poll(&mut control, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Has the agent go on if somebody has stopped it.
    fn wake(&self) {
        let _ = kill_process(self.agent, Signal::CONT);
    }

    /// Continues stopped keepers after their agent has died; the agent would have done so. Only they are in its
    /// process group. False once none is left.
    fn wake_keepers(&self) -> bool {
        !self.confined && kill_process_group(self.agent, Signal::CONT).is_ok()
    }

    /// Sends orders that had to wait, for as long as the agent is there.
    async fn send_unsent(&self) {
        loop {
            self.outbox.filled().await;
            while !self.outbox.send(self.control.as_fd()) {
                self.wake();
                // The kernel does not tell when descriptors have arrived.
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Tells every keeper that nobody is interested any more: it ends its run, and then itself.
    fn hang_up(&self) {
        // The ends of keepers that never come to be: who waits for one sees them closed.
        self.outbox.clear();
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        for socket in state.all.values().filter_map(|entry| entry.socket.upgrade()) {
            let _ = rustix::net::shutdown(&*socket, Shutdown::Write);
        }
    }

    /// Lets go of keepers that were not needed for a while.
    async fn trim(&self) {
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
}

struct Reader {
    shared: Arc<Shared>,
    inbox: Inbox,
    cgroups: Vec<PathBuf>,
    greeting: Option<oneshot::Sender<Greeting>>,
}

/// What an agent says first: where commands find their way out, or why nothing can be started.
type Greeting = Result<Option<TcpListener>, String>;

impl Reader {
    /// Hears the agent until its stream ends or carries garbage, and sees it off.
    async fn read_all(mut self, mut agent: Child) {
        let shared = self.shared.clone();
        let has_ended = tokio::select! {
            () = self.read_on() => false,
            () = shared.trim() => false,
            () = shared.send_unsent() => false,
            () = ended(shared.agent) => true,
        };
        if has_ended {
            let _ = timeout(LAST_WORDS, self.read_on()).await;
        }
        self.shared.hang_up();
        // An agent that broke the protocol is still there.
        let _ = agent.kill();
        // Until it is reaped, no other process group can have its number.
        self.shared.wake_keepers();
        let _ = agent.wait();
        let cgroups = std::mem::take(&mut self.cgroups);
        let _ = aside(move || cgroup::clear_all(&cgroups)).await;
        let whole = self.shared.whole.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = aside(move || drop(whole)).await;
        self.shared.lock().all.clear();
        let until = Instant::now() + LAST_CALL;
        while Instant::now() < until && self.shared.wake_keepers() {
            tokio::time::sleep(WAKE_AGAIN).await;
        }
    }

    async fn read_on(&mut self) {
        while self.read_once().await {}
    }

    /// Tells whoever waits for the agent's first word.
    fn greet(&mut self, greeting: Greeting) {
        if let Some(waiting) = self.greeting.take() {
            let _ = waiting.send(greeting);
        }
    }

    async fn read_once(&mut self) -> bool {
        let control = &self.shared.control;
        if control.readable().await.is_err() {
            return false;
        }
        let received = control.try_io(Interest::READABLE, || {
            Ok(self.inbox.fill(control.as_fd(), RecvFlags::DONTWAIT)?)
        });
        match received {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        loop {
            match self.inbox.next() {
                Ok(Some(Report::Hello { version, cgroups, port })) => {
                    self.cgroups = cgroups;
                    let listener = port.and_then(|_| self.inbox.take_fds(1)?.pop());
                    if version != VERSION {
                        return false;
                    }
                    self.greet(Ok(listener.map(TcpListener::from)));
                }
                Ok(Some(Report::Refused { why })) => {
                    self.greet(Err(why));
                    return false;
                }
                Ok(Some(Report::Buried { keeper })) => {
                    self.shared.lock().all.remove(&keeper);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// Done when a child has ended. The end of its stream says so as well, unless somebody still holds the other end: a
/// keeper that was stopped before it could let go of it.
async fn ended(child: Pid) {
    let child = pidfd_open(child, PidfdFlags::empty()).ok();
    // SAFETY: it is ours, and open for as long as it is registered.
    let register = |child| unsafe { AsyncFd::register_with_interest(child, Interest::READABLE) };
    match child.and_then(|child| register(child).ok()) {
        Some(child) => drop(child.readable().await),
        None => std::future::pending().await,
    }
}

pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

pub(crate) fn connect(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
