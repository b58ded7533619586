//! The server's side of an agent: starts one, asks it, and tells each run what concerns it.
//!
//! A [`Link`] is cheap to clone. One task reads what the agent tells and ends when the stream does;
//! every run that is not over then hears that it is lost.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc, watch};

use crate::cgroup;
use crate::frame::{self, Event, Exit, Failure, FrameError, Request, RunId, Spawn, VERSION};
use crate::wire::{self, Inbox};

/// Why the agent could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the agent could not be started")]
    Start(#[source] io::Error),
    #[error("the agent is gone")]
    Gone,
    #[error("the request does not fit")]
    TooLong(#[source] FrameError),
}

/// What happens to one run, in this order.
#[derive(Debug)]
pub enum Happening {
    Failed(Failure),
    Started(Started),
    Exited {
        exit: Exit,
        gone: bool,
    },
    Gone {
        survivors: Vec<i32>,
    },
    /// The agent or the run's keeper was killed. Nothing of the run is left.
    Lost,
}

/// A program that runs, and our ends of its pipes. They do not block.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub stdin: Option<OwnedFd>,
}

/// A connection to an agent.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    socket: UnixStream,
    state: Mutex<State>,
    /// Woken when there is something to send that the socket did not take at once.
    backlog: Notify,
    closed: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    runs: HashMap<RunId, mpsc::UnboundedSender<Happening>>,
    unsent: Vec<u8>,
    asked: u64,
    closed: bool,
}

impl Link {
    /// Starts `program agent` and connects to it. Must be called within a tokio runtime.
    pub fn start(program: &Path) -> Result<Self, LinkError> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(|errno| LinkError::Start(errno.into()))?;
        let agent = Command::new(program)
            .arg("agent")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(LinkError::Start)?;
        let socket = connect(ours).map_err(LinkError::Start)?;
        let (closing, closed) = watch::channel(false);
        let shared =
            Arc::new(Shared { socket, state: Mutex::default(), backlog: Notify::new(), closed });
        let link = Self { shared: shared.clone() };
        link.ask(&Request::Hello { version: VERSION })?;
        tokio::spawn(async move {
            let mut reader = Reader { shared, inbox: Inbox::default(), cgroup: None };
            reader.read_all().await;
            reader.close(agent);
            let _ = closing.send(true);
        });
        Ok(link)
    }

    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed
    }

    /// Asks for a program to be started. What becomes of it is told by the returned [`Process`].
    pub fn spawn(&self, spawn: Spawn) -> Result<Process, LinkError> {
        let (sender, happenings) = mpsc::unbounded_channel();
        let run = {
            let mut state = self.shared.lock();
            let run = RunId(state.asked);
            state.asked += 1;
            state.runs.insert(run, sender);
            run
        };
        let asked = self.ask(&Request::Spawn { run, spawn });
        if let Err(error) = asked {
            self.shared.lock().runs.remove(&run);
            return Err(error);
        }
        Ok(Process { run, happenings, link: self.clone() })
    }

    /// Ends the agent and with it every run, and waits until they are gone.
    pub async fn close(&self) {
        let _ = rustix::net::shutdown(&self.shared.socket, Shutdown::Write);
        let mut closed = self.shared.closed.clone();
        let _ = closed.wait_for(|closed| *closed).await;
    }

    fn ask(&self, request: &Request) -> Result<(), LinkError> {
        let mut bytes = Vec::new();
        frame::encode(request, &mut bytes).map_err(LinkError::TooLong)?;
        self.shared.send(&bytes)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends at once what the socket takes, and leaves the rest to the reader task.
    fn send(&self, bytes: &[u8]) -> Result<(), LinkError> {
        let mut state = self.lock();
        if state.closed {
            return Err(LinkError::Gone);
        }
        let mut rest = bytes;
        while state.unsent.is_empty() && !rest.is_empty() {
            match wire::send(self.socket.as_fd(), rest, &[], SendFlags::DONTWAIT) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(LinkError::Gone),
            }
        }
        if !rest.is_empty() {
            state.unsent.extend_from_slice(rest);
            drop(state);
            self.backlog.notify_one();
        }
        Ok(())
    }

    /// Sends what was left over, as the socket takes it.
    async fn send_backlog(&self) -> io::Result<()> {
        loop {
            self.backlog.notified().await;
            while !self.lock().unsent.is_empty() {
                self.socket.writable().await?;
                let mut state = self.lock();
                let sent = self.socket.try_io(Interest::WRITABLE, || {
                    let flags = SendFlags::DONTWAIT;
                    Ok(wire::send(self.socket.as_fd(), &state.unsent, &[], flags)?)
                });
                match sent {
                    Ok(sent) => drop(state.unsent.drain(..sent)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

struct Reader {
    shared: Arc<Shared>,
    inbox: Inbox,
    cgroup: Option<PathBuf>,
}

impl Reader {
    /// Reads until the stream ends or carries garbage.
    async fn read_all(&mut self) {
        let shared = self.shared.clone();
        tokio::select! {
            () = async { while self.read_once().await {} } => {}
            _ = shared.send_backlog() => {}
        }
    }

    async fn read_once(&mut self) -> bool {
        let socket = &self.shared.socket;
        if socket.readable().await.is_err() {
            return false;
        }
        let received = socket.try_io(Interest::READABLE, || {
            Ok(self.inbox.fill(socket.as_fd(), RecvFlags::DONTWAIT)?)
        });
        match received {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        loop {
            match self.inbox.next::<Event>() {
                Ok(Some((event, _))) => {
                    if !self.dispatch(event) {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Tells the run. False when the agent breaks the protocol.
    fn dispatch(&mut self, event: Event) -> bool {
        let (run, happening, last) = match event {
            Event::Hello { version, cgroup } => {
                self.cgroup = cgroup;
                return version == VERSION;
            }
            Event::Started { run, pid, fds } => {
                let Some(fds) = self.inbox.take_fds(fds.into()) else {
                    return false;
                };
                let mut fds = fds.into_iter();
                let (Some(stdout), Some(stderr)) = (fds.next(), fds.next()) else {
                    return false;
                };
                let stdin = fds.next();
                (run, Happening::Started(Started { pid, stdout, stderr, stdin }), false)
            }
            Event::Failed { run, failure } => (run, Happening::Failed(failure), true),
            Event::Exited { run, exit, gone } => (run, Happening::Exited { exit, gone }, gone),
            Event::Gone { run, survivors } => (run, Happening::Gone { survivors }, true),
            Event::Lost { run } => (run, Happening::Lost, true),
        };
        let mut state = self.shared.lock();
        let listener = match last {
            true => state.runs.remove(&run),
            false => state.runs.get(&run).cloned(),
        };
        drop(state);
        // A listener that is gone has no more interest in its run.
        if let Some(listener) = listener {
            let _ = listener.send(happening);
        }
        true
    }

    /// Sees the agent off and tells every run that is not over.
    fn close(self, mut agent: Child) {
        // An agent that broke the protocol is still there; its keepers end their runs when it dies.
        let _ = agent.kill();
        let _ = agent.wait();
        if let Some(cgroup) = &self.cgroup {
            cgroup::clear(cgroup);
        }
        let runs = {
            let mut state = self.shared.lock();
            state.closed = true;
            std::mem::take(&mut state.runs)
        };
        for listener in runs.into_values() {
            let _ = listener.send(Happening::Lost);
        }
    }
}

/// One run, as far as the agent knows it.
pub struct Process {
    run: RunId,
    happenings: mpsc::UnboundedReceiver<Happening>,
    link: Link,
}

impl Process {
    /// What happens next. After the last happening, and when the agent is gone: `Lost`.
    pub async fn next(&mut self) -> Happening {
        self.happenings.recv().await.unwrap_or(Happening::Lost)
    }

    /// Asks the whole tree to end, and kills what is left of it after the grace.
    pub fn kill(&self, grace: Duration) {
        // An agent that is gone has taken the run along.
        let _ = self.link.ask(&Request::Kill { run: self.run, grace });
    }

    /// Sends one signal to the first process.
    pub fn signal(&self, signal: i32) {
        let _ = self.link.ask(&Request::Signal { run: self.run, signal });
    }
}

fn connect(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
