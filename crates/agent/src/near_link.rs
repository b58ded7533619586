//! The server's connection to its agent: starts the agent, has it start programs, and ends it.
//!
//!     NearLink ── AgentRequest ──▶ agent ── AgentEvent ──▶ AgentMonitor
//!       └──────── SpawnFrame ────▶ keeper ── KeeperEvent ─▶ NearProcess
//!
//! A [`NearLink`] is cheap to clone. A run takes a keeper out of the pool, talks to it directly, and gives it back
//! when nothing of the run is left. If the agent is killed, every keeper is told to end its run. Nothing here
//! may block: the runtime's thread serves everybody.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpz_runtime::spawn_blocking;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::agent_process::AgentProcess;
use crate::cgroup::{self, SandboxCgroup};
use crate::children::{self, end_orphans};
use crate::error::LinkError;
use crate::frame::{AgentEvent, AgentRequest, Confinement, VERSION};
use crate::git_configs::SharedConfig;
use crate::limits::Limits;
use crate::listening::listening;
use crate::near_process::NearProcess;
use crate::pool::{Pool, RESUME_INTERVAL};
use crate::signals;
use crate::socket::{self, Inbox};
use crate::spawn_frame::{SpawnFrame, Unsent};
use crate::tree;

/// How long the agent may take to exit. It gives up long before, unless it is still ending runs.
const EXIT_TIME: Duration = Duration::from_secs(60);

/// How long to read what an agent sent before it ended.
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// How long keepers may take to exit after their agent.
const KEEPER_EXIT_TIME: Duration = Duration::from_secs(5);

/// A connection to an agent and its keepers.
#[derive(Clone)]
pub struct NearLink {
    pool: Arc<Pool>,
}

impl NearLink {
    /// Starts `program agent` with exactly these variables, so nothing below it can have more. The limits hold for
    /// every run. Must be called within a tokio runtime.
    pub fn start(
        program: &Path,
        variables: &[(OsString, OsString)],
        limits: Limits,
    ) -> Result<Self, LinkError> {
        let mut command = Command::new(program);
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        command.arg0("mcpz").arg("agent");
        Self::connect(command, limits, None, &mut None).map(|(link, _)| link)
    }

    /// Starts an agent that confines everything it starts, by a command that ends up executing
    /// `mcpz agent`. Returns the listener on which confined commands reach the proxy, if they have one.
    ///
    /// Must be called on a thread that outlives the agent: bubblewrap dies with the thread that starts it.
    pub async fn start_confined(
        mut command: Command,
        limits: Limits,
        confinement: Confinement,
        configs: Vec<SharedConfig>,
    ) -> Result<(Self, Option<TcpListener>), LinkError> {
        let mut cgroup = match limits.own_namespace {
            true => spawn_blocking(move || SandboxCgroup::create(&limits)).await.ok(),
            false => None,
        };
        cgroup.iter().for_each(|cgroup| cgroup.start_inside(&mut command));
        let connected = Self::connect(command, limits, Some((confinement, configs)), &mut cgroup);
        if let Some(unused) = cgroup {
            let _ = spawn_blocking(move || drop(unused)).await;
        }
        let (link, greeted) = connected?;
        match greeted.await {
            Ok(Ok(listener)) => Ok((link, listener)),
            Ok(Err(reason)) => Err(LinkError::Confinement(reason)),
            Err(_) => Err(LinkError::Gone),
        }
    }

    /// Starts the command and greets it as an agent. Takes the cgroup once the command runs.
    fn connect(
        mut command: Command,
        limits: Limits,
        confinement: Option<(Confinement, Vec<SharedConfig>)>,
        cgroup: &mut Option<SandboxCgroup>,
    ) -> Result<(Self, oneshot::Receiver<Greeting>), LinkError> {
        let (ours, theirs) = socket::pair().map_err(LinkError::Start)?;
        let control = socket::connect(ours).map_err(LinkError::Start)?;
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let resume = || {
            signals::resume_when_parent_dies();
            Ok(())
        };
        // From the beginning: it may be stopped, and we killed, before it could do so itself.
        // SAFETY: between fork and exec it makes one system call and touches nothing else.
        unsafe { command.pre_exec(resume) };
        let agent = AgentProcess::new(children::start(&mut command).map_err(LinkError::Start)?);
        let (closing, closed) = watch::channel(false);
        let pool = Pool::new(agent, control, confinement.is_some(), cgroup.take(), closed);
        let link = Self { pool: Arc::new(pool) };
        let (greeting, greeted) = oneshot::channel();
        let monitor = AgentMonitor {
            pool: link.pool.clone(),
            inbox: Inbox::default(),
            cgroups: Vec::new(),
            greeting: Some(greeting),
        };
        // First of all, so that the agent is reaped even if it cannot be greeted.
        tokio::spawn(async move {
            monitor.run().await;
            let _ = closing.send(true);
        });
        let (confinement, configs) = confinement.unzip();
        let confinement = confinement.map(Box::new);
        let hello = AgentRequest::Hello { version: VERSION, limits, confinement };
        let share = |config: SharedConfig| {
            let SharedConfig { path, root, file } = config;
            link.pool.request(&AgentRequest::ShareConfig { path, root }, Some(file.into()))
        };
        let greeted_with = link.pool.request(&hello, None);
        let shared = greeted_with.and_then(|()| configs.into_iter().flatten().try_for_each(share));
        let sent = shared.and_then(|()| link.pool.start_spares());
        match sent {
            Ok(()) => Ok((link, greeted)),
            Err(error) => {
                link.hang_up();
                Err(error)
            }
        }
    }

    pub fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    /// A process in the namespaces of a confined agent: bubblewrap's child.
    pub fn confined_process(&self) -> Option<i32> {
        let bubblewrap = self.pool.agent.id().as_raw_nonzero().get();
        tree::children(bubblewrap).first().copied()
    }

    /// Lets confined commands write to these paths as well, which did not exist when the agent was confined.
    pub async fn allow_writing(&self, paths: Vec<PathBuf>) {
        self.pool.ask(&AgentRequest::AllowWriting(paths)).await;
    }

    /// The ports on which something listens in the network of a confined agent.
    pub fn listening(&self) -> BTreeSet<u16> {
        self.confined_process().map(listening).unwrap_or_default()
    }

    /// Connects to a port that confined commands listen on. `None` if there is none, or the agent is gone.
    pub async fn connect_inside(&self, port: u16) -> Option<TcpStream> {
        let connected = self.pool.ask(&AgentRequest::Connect { port }).await??;
        Some(TcpStream::from(connected))
    }

    /// Has a program started for an owner.
    pub fn send(&self, owner: u64, frame: SpawnFrame) -> Result<NearProcess, Unsent> {
        match self.pool.take(owner) {
            Ok(keeper) => Ok(NearProcess::new(keeper, frame, Some(self.pool.clone()))),
            Err(error) => Err(Unsent { error, frame }),
        }
    }

    /// Ends the agent and with it every run, and waits until they are gone.
    pub async fn close(&self) {
        self.hang_up();
        let mut closed = self.pool.closed.clone();
        let until = Instant::now() + EXIT_TIME;
        // A stopped agent would not notice that its stream has ended.
        self.pool.resume();
        while Instant::now() < until {
            if timeout(RESUME_INTERVAL, closed.wait_for(|closed| *closed)).await.is_ok() {
                return;
            }
            self.pool.resume_all().await;
        }
        let _ = rustix::net::shutdown(&self.pool.control, Shutdown::Read);
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Ends the agent and with it every run, without waiting.
    pub fn hang_up(&self) {
        self.pool.hang_up();
        let _ = rustix::net::shutdown(&self.pool.control, Shutdown::Write);
    }
}

/// The task that reads what the agent sends, and cleans up when it ends.
struct AgentMonitor {
    pool: Arc<Pool>,
    inbox: Inbox,
    /// The agent's cgroups, to clear if it was killed.
    cgroups: Vec<PathBuf>,
    greeting: Option<oneshot::Sender<Greeting>>,
}

/// The agent's first event: the listener for the proxy, or why it refuses to start anything.
type Greeting = Result<Option<TcpListener>, String>;

impl AgentMonitor {
    /// Reads until the agent ends or sends garbage, then ends it and cleans up.
    async fn run(mut self) {
        let pool = self.pool.clone();
        // The end of the stream means that the agent has ended, but its end may come later or never: a keeper
        // that was stopped early still holds the agent's end open.
        let has_ended = tokio::select! {
            () = self.read_all() => false,
            () = pool.trim() => false,
            () = pool.send_waiting() => false,
            () = children::keep_awake(pool.agent.id().as_raw_nonzero().get()) => false,
            () = pool.agent.ended() => true,
        };
        if has_ended {
            let _ = timeout(DRAIN_TIME, self.read_all()).await;
        }
        self.pool.hang_up();
        // An agent that broke the protocol is still alive.
        self.pool.agent.signal(Signal::KILL);
        // Before it is reaped: until then no other process group can have its number.
        self.pool.resume_keepers();
        let exited = self.pool.agent.reap().await;
        let cgroups = std::mem::take(&mut self.cgroups);
        let _ = spawn_blocking(move || cgroup::clear_all(&cgroups)).await;
        self.pool.clear_cgroup().await;
        if !exited {
            let _ = spawn_blocking(end_orphans).await;
        }
        self.pool.forget_all();
        let until = Instant::now() + KEEPER_EXIT_TIME;
        while Instant::now() < until && self.pool.resume_keepers() {
            tokio::time::sleep(RESUME_INTERVAL).await;
        }
        if !exited {
            // Some keepers may have been killed only now.
            let _ = spawn_blocking(end_orphans).await;
        }
    }

    async fn read_all(&mut self) {
        while self.read_once().await {}
    }

    /// Passes the agent's first event to `start_confined`, which waits for it.
    fn greet(&mut self, greeting: Greeting) {
        if let Some(waiting) = self.greeting.take() {
            let _ = waiting.send(greeting);
        }
    }

    /// False when there is nothing more to read.
    async fn read_once(&mut self) -> bool {
        let control = &self.pool.control;
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
                Ok(Some(AgentEvent::Hello { version, cgroups, port })) => {
                    self.cgroups = cgroups;
                    let listener = port.and_then(|_| self.inbox.take_fds(1)?.pop());
                    if version != VERSION {
                        return false;
                    }
                    self.greet(Ok(listener.map(TcpListener::from)));
                }
                Ok(Some(AgentEvent::Refused { reason })) => {
                    self.greet(Err(reason));
                    return false;
                }
                Ok(Some(AgentEvent::Answered { attached })) => {
                    let stream = attached.then(|| self.inbox.take_fds(1)?.pop()).flatten();
                    self.pool.answer(stream);
                }
                Ok(Some(AgentEvent::KeeperGone { keeper })) => self.pool.forget(keeper),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}
