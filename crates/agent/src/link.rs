//! The server's side: how it starts an agent, has programs started, and ends it all.
//!
//!     Link ─ Order ─▶ agent ─ Report ─▶ Reader
//!       └─ Letter ─▶ keeper ─ Event ─▶ Process
//!
//! A [`Link`] is cheap to clone. A run takes a keeper out of the pool and gives it back when
//! nothing of the run is left; there is nobody between the run and its keeper. When the agent is
//! killed, all keepers are told to end their runs.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, Shutdown};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::agent_process::AgentProcess;
use crate::cgroup::{self, Whole};
use crate::error::LinkError;
use crate::frame::{Confinement, Order, Report, Spawn, VERSION};
use crate::limits::Limits;
use crate::pool::{Pool, WAKE_AGAIN};
use crate::process::{Letter, Process};
use crate::wire::{self, Inbox};
use mcpz_runtime::aside;

/// How long the agent may take to leave: it gives up long before, unless it is still ending runs.
const LEAVE_TIME: Duration = Duration::from_secs(60);

/// How long it may take to read what an agent has said that has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long keepers may take to leave when their agent is gone.
const LAST_CALL: Duration = Duration::from_secs(5);

/// A connection to an agent and its keepers.
#[derive(Clone)]
pub struct Link {
    pool: Arc<Pool>,
}

/// What could not be sent, and why.
pub struct Unsent {
    pub error: LinkError,
    pub letter: Letter,
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
        Self::connect(command, limits, None, &mut None).map(|(link, _)| link)
    }

    /// Starts an agent for one owner that confines whatever it starts, with a command that ends up
    /// being one. Returns where commands find their way out, if they are to have one. The agent may go
    /// with the thread that calls this.
    pub async fn start_confined(
        mut command: Command,
        limits: Limits,
        confinement: Confinement,
    ) -> Result<(Self, Option<TcpListener>), LinkError> {
        let mut whole = match limits.own_namespace {
            true => aside(move || Whole::create(&limits)).await.ok(),
            false => None,
        };
        whole.iter().for_each(|whole| whole.enclose(&mut command));
        let connected = Self::connect(command, limits, Some(confinement), &mut whole);
        if let Some(unused) = whole {
            let _ = aside(move || drop(unused)).await;
        }
        let (link, greeted) = connected?;
        match greeted.await {
            Ok(Ok(listener)) => Ok((link, listener)),
            Ok(Err(why)) => Err(LinkError::Confinement(why)),
            Err(_) => Err(LinkError::Gone),
        }
    }

    /// Has a command be an agent, and takes what all of it is in once it runs.
    fn connect(
        mut command: Command,
        limits: Limits,
        confinement: Option<Confinement>,
        whole: &mut Option<Whole>,
    ) -> Result<(Self, oneshot::Receiver<Greeting>), LinkError> {
        let (ours, theirs) = wire::pair().map_err(LinkError::Start)?;
        let control = wire::connect(ours).map_err(LinkError::Start)?;
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let agent = AgentProcess::new(command.spawn().map_err(LinkError::Start)?);
        let (closing, closed) = watch::channel(false);
        let pool = Pool::new(agent, control, confinement.is_some(), whole.take(), closed);
        let link = Self { pool: Arc::new(pool) };
        let (greeting, greeted) = oneshot::channel();
        let reader = Reader {
            pool: link.pool.clone(),
            inbox: Inbox::default(),
            cgroups: Vec::new(),
            greeting: Some(greeting),
        };
        // From now on it is reaped, whatever happens.
        tokio::spawn(async move {
            reader.read_all().await;
            let _ = closing.send(true);
        });
        let confinement = confinement.map(Box::new);
        let hello = Order::Hello { version: VERSION, limits, confinement };
        let told = link.pool.order(&hello, None).and_then(|()| link.pool.make_spare());
        match told {
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

    /// Has a program started for an owner. What becomes of it is told by the returned [`Process`].
    pub fn spawn(&self, owner: u64, spawn: Spawn) -> Result<Process, LinkError> {
        self.send(owner, Letter::new(spawn)?).map_err(|unsent| unsent.error)
    }

    /// The same, but gives the letter back on failure, so that the caller can try another agent.
    pub fn send(&self, owner: u64, letter: Letter) -> Result<Process, Unsent> {
        match self.pool.take(owner) {
            Ok(keeper) => Ok(Process::new(keeper, letter, Some(self.pool.clone()))),
            Err(error) => Err(Unsent { error, letter }),
        }
    }

    /// Ends the agent and with it every run, and waits until they are gone.
    pub async fn close(&self) {
        self.hang_up();
        let mut closed = self.pool.closed.clone();
        let until = Instant::now() + LEAVE_TIME;
        // One that was stopped could not hear.
        self.pool.wake();
        while Instant::now() < until {
            if timeout(WAKE_AGAIN, closed.wait_for(|closed| *closed)).await.is_ok() {
                return;
            }
            self.pool.wake_all().await;
        }
        let _ = rustix::net::shutdown(&self.pool.control, Shutdown::Read);
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Ends the agent and with it every run, and does not wait for that.
    pub fn hang_up(&self) {
        self.pool.hang_up();
        let _ = rustix::net::shutdown(&self.pool.control, Shutdown::Write);
    }
}

struct Reader {
    pool: Arc<Pool>,
    inbox: Inbox,
    cgroups: Vec<PathBuf>,
    greeting: Option<oneshot::Sender<Greeting>>,
}

/// What an agent says first: where commands find their way out, or why nothing can be started.
type Greeting = Result<Option<TcpListener>, String>;

impl Reader {
    /// Hears the agent until its stream ends or carries garbage, and sees it off.
    async fn read_all(mut self) {
        let pool = self.pool.clone();
        let has_ended = tokio::select! {
            () = self.read_on() => false,
            () = pool.trim() => false,
            () = pool.send_unsent() => false,
            () = pool.agent.ended() => true,
        };
        if has_ended {
            let _ = timeout(LAST_WORDS, self.read_on()).await;
        }
        self.pool.hang_up();
        // An agent that broke the protocol is still there.
        self.pool.agent.signal(Signal::KILL);
        // Until it is reaped, no other process group can have its number.
        self.pool.wake_keepers();
        self.pool.agent.reap().await;
        let cgroups = std::mem::take(&mut self.cgroups);
        let _ = aside(move || cgroup::clear_all(&cgroups)).await;
        self.pool.clear_whole().await;
        self.pool.bury_all();
        let until = Instant::now() + LAST_CALL;
        while Instant::now() < until && self.pool.wake_keepers() {
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
                    self.pool.bury(keeper);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}
