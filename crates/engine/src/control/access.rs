//! Who may use a control socket: people and servers, but nothing that a server runs.
//!
//!     connection ─▶ ancestry ─┬─ outside ────────────▶ service
//!                             ├─ our own server ─────▶ service
//!                             └─ below one of ours, or unknown ─▶ record ─▶ Refused
//!
//! What is asked for here counts as a person's wish and passes no policy: a command that could ask would
//! type into other jobs in a person's name. Access is decided before anything is read, so it holds for
//! everything that can be asked.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{Ancestry, Identity, ProcessHandle, Supervisor};
use rustix::net::RecvFlags;
use rustix::process::geteuid;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::messages::{Reply, message};
use mcpz_audit::{Audit, RefusedPeer};

/// How long somebody who is refused may take to say something.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many refusals are recorded at most, and how long each of them counts: a command that asks again and
/// again would push everything else out of the trail.
const RECORDED: usize = 32;
const COUNTS: Duration = Duration::from_secs(10);

/// Why somebody is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "an mcpz server runs this command (process {pid}, below {} {}); only people can ask for jobs this \
         way, from a terminal outside", supervisor.name, supervisor.pid
    )]
    Below { pid: i32, supervisor: Supervisor },
    #[error(
        "an mcpz server runs this command (process {pid}, whose limit of file locks is lower than the \
         server's, as that of all commands); only people can ask for jobs this way, from a terminal outside"
    )]
    Escaped { pid: i32 },
    #[error(
        "cannot tell who asks for jobs: process {pid} has ended, or not all processes above it are visible \
         (hidepid, or another container)"
    )]
    Unknown { pid: i32 },
}

impl Refusal {
    /// Why nobody should let this process in, as far as it sees that itself.
    pub fn own() -> Option<Self> {
        match Ancestry::own() {
            Ancestry::Below(supervisor) => {
                Some(Self::Below { pid: std::process::id() as i32, supervisor })
            }
            Ancestry::Outside | Ancestry::Escaped | Ancestry::Unknown => None,
        }
    }
}

#[derive(Clone)]
pub struct Access {
    audit: Audit,
    /// The server that the job was started by. It may itself be below another one.
    server: Option<Arc<ProcessHandle>>,
    /// How many more are recorded now.
    records: Arc<Semaphore>,
}

impl Access {
    /// Lets in those who come from outside.
    pub fn new(audit: Audit) -> Self {
        Self { audit, server: None, records: Arc::new(Semaphore::new(RECORDED)) }
    }

    /// Lets in this server, too, wherever it runs.
    pub fn with_server(self, server: Option<Identity>) -> Self {
        Self { server: server.and_then(ProcessHandle::new).map(Arc::new), ..self }
    }

    /// Passes a connection that may be served; others are told why not, in a task.
    pub fn admit(&self, stream: UnixStream) -> Option<UnixStream> {
        let known = stream.peer_cred().ok();
        // 0 is somebody in a namespace that cannot be seen from ours.
        let pid = known.and_then(|known| known.pid()).unwrap_or(0);
        let peer = ProcessHandle::peer(stream.as_fd(), pid);
        let Err(refusal) = self.judge(pid, peer.as_ref()) else { return Some(stream) };
        // Root needs no socket to do as it likes. A service that may not see others' processes sees nothing of it.
        let root = known.is_some_and(|known| known.uid() == 0) && !geteuid().is_root();
        if root && matches!(refusal, Refusal::Unknown { .. }) {
            return Some(stream);
        }
        let name = peer.and_then(|peer| peer.name()).unwrap_or_default();
        tokio::spawn(self.clone().refuse(stream, refusal, name));
        None
    }

    /// It does not matter when this is: a process that loses its parent meanwhile gets another one below
    /// the same supervisor.
    fn judge(&self, pid: i32, peer: Option<&ProcessHandle>) -> Result<(), Refusal> {
        let ancestry = peer.map_or(Ancestry::Unknown, ProcessHandle::ancestry);
        let there = peer.is_some_and(ProcessHandle::is_alive);
        let ours = self.server.as_ref().is_some_and(|ours| ours.pid == pid && ours.is_alive());
        match ancestry {
            Ancestry::Outside if there => Ok(()),
            _ if there && ours => Ok(()),
            Ancestry::Below(supervisor) => Err(Refusal::Below { pid, supervisor }),
            Ancestry::Escaped => Err(Refusal::Escaped { pid }),
            Ancestry::Outside | Ancestry::Unknown => Err(Refusal::Unknown { pid }),
        }
    }

    async fn refuse(self, mut stream: UnixStream, refusal: Refusal, name: String) {
        // A connection that closes at once was only a test whether anyone is here.
        if timeout(PATIENCE, has_left(&stream)).await.unwrap_or(false) {
            return;
        }
        let reason = refusal.to_string();
        let (pid, below) = match refusal {
            Refusal::Below { pid, supervisor } => (pid, Some(supervisor.pid)),
            Refusal::Escaped { pid } | Refusal::Unknown { pid } => (pid, None),
        };
        let room = self.records.clone().try_acquire_owned();
        if room.is_ok() {
            tracing::warn!("refused at the control socket: {reason}");
            // It is on the disk before it is told: the refused process may try to remove the trace.
            let peer = RefusedPeer { pid, name: &name, below, reason: &reason };
            if let Err(error) = self.audit.refuse_peer(&peer).await {
                tracing::error!("the refusal is not recorded: {}", error.chain());
            }
        }
        if let Ok(bytes) = message(&Reply::Refused(reason)) {
            let _ = timeout(PATIENCE, stream.write_all(&bytes)).await;
        }
        drop(stream);
        if let Ok(_room) = room {
            sleep(COUNTS).await;
        }
    }
}

/// Whether somebody has left without a word; waits until that is known. What is said is not read.
async fn has_left(stream: &UnixStream) -> bool {
    let mut byte = [0];
    loop {
        if stream.readable().await.is_err() {
            return true;
        }
        let seen = stream.try_io(Interest::READABLE, || {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            Ok(rustix::net::recv(stream, &mut byte, flags)?.1)
        });
        match seen {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            seen => return seen.unwrap_or(0) == 0,
        }
    }
}
