//! A process that keeps one run by itself, with nobody above it: what outlives a server.
//!
//!     init ─ whoever calls this ─ keeper ─ run
//!
//! The caller has one thread when it forks. It is a subreaper: should its keeper be killed, what that
//! leaves behind comes to the caller, and is killed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::DumpableBehavior;
use tokio::sync::oneshot;

use crate::agent::{become_subreaper, close_all_but, live_as_keeper, set_name};
use crate::ancestry::RECORDER;
use crate::cgroup::Groups;
use crate::child::close_on_exec_from;
use crate::crowd::Crowd;
use crate::error::LinkError;
use crate::frame::Spawn;
use crate::limits::Limits;
use crate::pool::{Connection, FIRST_OWNER};
use crate::process::{Letter, Process};
use crate::signals;
use crate::wire::{self, Inbox};

/// A keeper of our own, which is ready for its one run.
pub struct Keep {
    socket: OwnedFd,
}

/// What the process was started with, out of the way of what it starts.
pub struct Given {
    pub input: File,
    pub output: File,
}

/// Goes on in a process that whoever started us has nothing to do with. Must be called while there is
/// one thread.
pub fn stand_alone() -> io::Result<Given> {
    let given = Given {
        input: File::from(fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?),
        output: File::from(fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?),
    };
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // Whoever reads what the server logs would wait for us, too.
    rustix::stdio::dup2_stderr(&null)?;
    // Whoever started us may have left some open, and somebody may wait for their end.
    close_all_but(&[Some(given.input.as_fd()), Some(given.output.as_fd()), Some(null.as_fd())]);
    close_on_exec_from(3);
    // SAFETY: there is one thread, so the child finds nothing half done.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: leaves without running exit handlers, which are the child's now.
        _ => unsafe { libc::_exit(0) },
    }
    rustix::process::setsid()?;
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    become_subreaper();
    set_name(RECORDER);
    Ok(given)
}

impl Keep {
    /// Forks a keeper. Must be called while there is one thread. The folders are for as long as the
    /// run is there.
    pub fn fork(limits: Limits) -> io::Result<(Self, Groups)> {
        let (ours, theirs) = wire::pair()?;
        let mut groups = Groups::create(&limits);
        let group = groups.add(FIRST_OWNER);
        // SAFETY: there is one thread. The child never returns into our code.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                signals::take_over();
                live_as_keeper(theirs, limits, group, None, Crowd::new())
            }
            _ => Ok((Self { socket: ours }, groups)),
        }
    }

    /// Has a program started. Must be called within a tokio runtime.
    pub fn spawn(self, spawn: Spawn) -> Result<Process, LinkError> {
        let socket = Arc::new(wire::connect(self.socket).map_err(LinkError::Start)?);
        // Nobody buries this one but we ourselves.
        let (_, buried) = oneshot::channel();
        let keeper = Connection { owner: FIRST_OWNER, socket, inbox: Inbox::default(), buried };
        Ok(Process::new(keeper, Letter::new(spawn)?, None))
    }
}
