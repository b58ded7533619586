//! Who may use a control socket: people and servers, but nothing that a server runs.
//!
//!     connection ─▶ ancestry ─┬─ outside ────────────▶ service
//!                             ├─ our own server ─────▶ service
//!                             └─ below one of ours, or unknown ─▶ record ─▶ Refused
//!
//! A request here counts as a person's and bypasses the policy, so a command that could connect would type into other
//! jobs in a person's name. Access is decided before anything is read, so it holds for every request.
//!
//! The kernel names the peer (`SO_PEERCRED`) and gives a descriptor that keeps its process id from being reused
//! (`SO_PEERPIDFD`). The peer's ancestors are then read up to the top. If one of them is an agent, a keeper or a
//! recorder, of whichever server, the peer is refused. Variables, sessions and process groups would prove nothing,
//! because a command can change its own. Ancestors do: all of ours are subreapers, so an orphan stays below them. If
//! all of ours above a command are killed at once, its limit of file locks still gives it away.
//!
//! A server below another server (one that a command started) is a command like any other, except to the recorders it
//! started itself. Two things cannot be told from a person: what a command makes others do (cron, a tmux outside), and
//! what root runs, which can raise its limits.

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

use super::messages::{ControlReply, message};
use mcpz_audit::{Audit, RefusedPeer};

/// How long a refused peer may take to say something.
const PEER_TIMEOUT: Duration = Duration::from_secs(1);

/// How many refusals are recorded per window. A command that asks again and again would push everything else out of the
/// audit trail.
const MAX_RECORDED: usize = 32;
const RECORD_WINDOW: Duration = Duration::from_secs(10);

/// Why a peer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerRefusal {
    #[error(
        "an mcpz server runs this command (process {pid}, below {} {}); only people may manage jobs this way, from a \
         terminal outside mcpz", supervisor.name, supervisor.pid
    )]
    Below { pid: i32, supervisor: Supervisor },
    #[error(
        "an mcpz server runs this command (process {pid}: its file lock limit is lower than the server's, as for every \
         command); only people may manage jobs this way, from a terminal outside mcpz"
    )]
    Escaped { pid: i32 },
    #[error(
        "cannot tell who is asking for jobs: process {pid} has ended, or some of its ancestors are not visible \
         (hidepid, or another container)"
    )]
    Unknown { pid: i32 },
}

impl PeerRefusal {
    /// Why others would refuse this process, as far as it can tell.
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
    /// The server that started the job. It may itself run below another one.
    server: Option<Arc<ProcessHandle>>,
    /// How many more refusals may be recorded now.
    records: Arc<Semaphore>,
}

impl Access {
    /// Admits peers from outside.
    pub fn new(audit: Audit) -> Self {
        Self { audit, server: None, records: Arc::new(Semaphore::new(MAX_RECORDED)) }
    }

    /// Also admits this server, wherever it runs.
    pub fn with_server(self, server: Option<Identity>) -> Self {
        Self { server: server.and_then(ProcessHandle::new).map(Arc::new), ..self }
    }

    /// Returns a connection that may be served. Others learn why not, in a separate task.
    pub fn admit(&self, stream: UnixStream) -> Option<UnixStream> {
        let known = stream.peer_cred().ok();
        // 0 is a peer in a PID namespace that is not visible from ours.
        let pid = known.and_then(|known| known.pid()).unwrap_or(0);
        let peer = ProcessHandle::peer(stream.as_fd(), pid);
        let Err(refusal) = self.judge(pid, peer.as_ref()) else { return Some(stream) };
        // Root can do as it likes without a socket. A server that may not see other users' processes cannot see root's.
        let root = known.is_some_and(|known| known.uid() == 0) && !geteuid().is_root();
        if root && matches!(refusal, PeerRefusal::Unknown { .. }) {
            return Some(stream);
        }
        let name = peer.and_then(|peer| peer.name()).unwrap_or_default();
        tokio::spawn(self.clone().refuse(stream, refusal, name));
        None
    }

    /// The moment does not matter: a process that loses its parent meanwhile gets another one below the same
    /// supervisor.
    fn judge(&self, pid: i32, peer: Option<&ProcessHandle>) -> Result<(), PeerRefusal> {
        let ancestry = peer.map_or(Ancestry::Unknown, ProcessHandle::ancestry);
        let there = peer.is_some_and(ProcessHandle::is_alive);
        let ours = self.server.as_ref().is_some_and(|ours| ours.pid == pid && ours.is_alive());
        match ancestry {
            Ancestry::Outside if there => Ok(()),
            _ if there && ours => Ok(()),
            Ancestry::Below(supervisor) => Err(PeerRefusal::Below { pid, supervisor }),
            Ancestry::Escaped => Err(PeerRefusal::Escaped { pid }),
            Ancestry::Outside | Ancestry::Unknown => Err(PeerRefusal::Unknown { pid }),
        }
    }

    async fn refuse(self, mut stream: UnixStream, refusal: PeerRefusal, name: String) {
        // A peer that hangs up at once only tested whether anyone serves the socket.
        if timeout(PEER_TIMEOUT, hung_up(&stream)).await.unwrap_or(false) {
            return;
        }
        let reason = refusal.to_string();
        let (pid, below) = match refusal {
            PeerRefusal::Below { pid, supervisor } => (pid, Some(supervisor.pid)),
            PeerRefusal::Escaped { pid } | PeerRefusal::Unknown { pid } => (pid, None),
        };
        let room = self.records.clone().try_acquire_owned();
        if room.is_ok() {
            tracing::warn!("refused a connection to the control socket: {reason}");
            // On the disk before the peer hears of it, because it may try to remove the record.
            let peer = RefusedPeer { pid, name: &name, below, reason: &reason };
            if let Err(error) = self.audit.record_refused_peer(&peer).await {
                tracing::error!("cannot record the refusal: {}", error.chain());
            }
        }
        if let Ok(bytes) = message(&ControlReply::Refused(reason)) {
            let _ = timeout(PEER_TIMEOUT, stream.write_all(&bytes)).await;
        }
        drop(stream);
        if let Ok(_room) = room {
            sleep(RECORD_WINDOW).await;
        }
    }
}

/// Waits until the peer says something or hangs up. Returns whether it hung up. Reads nothing.
async fn hung_up(stream: &UnixStream) -> bool {
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
