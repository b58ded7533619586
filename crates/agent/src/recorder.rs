//! What a recorder needs: to detach from its server, and a keeper of its own.
//!
//!     server, later init ─ recorder ─ keeper ─ run
//!
//! Both functions fork, so they must be called while the process has one thread. A recorder is a subreaper:
//! if its keeper is killed, the run's processes become the recorder's children, and it kills them. It makes the cgroups
//! for its run itself.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::DumpableBehavior;
use tokio::sync::oneshot;

use crate::agent::{become_subreaper, close_all_but, run_keeper, set_name};
use crate::ancestry::RECORDER;
use crate::cgroup::AgentCgroups;
use crate::children::keep_awake;
use crate::error::LinkError;
use crate::frame::Spawn;
use crate::keeper_count::KeeperCount;
use crate::launcher::close_on_exec_from;
use crate::limits::Limits;
use crate::near_process::NearProcess;
use crate::pool::{FIRST_OWNER, KeeperConnection};
use crate::process::Process;
use crate::signals;
use crate::socket::{self, Inbox};
use crate::spawn_frame::SpawnFrame;

/// A keeper that is a child of this process, ready for its one run.
pub struct OwnKeeper {
    pid: i32,
    socket: OwnedFd,
}

/// The stdin and stdout that the process was started with, moved to descriptors that programs do not get.
pub struct InheritedStdio {
    pub input: File,
    pub output: File,
}

/// Continues in a forked process that is independent of the one that started this one. Must be called while
/// there is one thread.
pub fn daemonize() -> io::Result<InheritedStdio> {
    let inherited = InheritedStdio {
        input: File::from(fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?),
        output: File::from(fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?),
    };
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // Otherwise a program that reads the server's log would wait for this process to end.
    rustix::stdio::dup2_stderr(&null)?;
    // The parent may have leaked descriptors, and other programs may wait for their end.
    close_all_but(&[
        Some(inherited.input.as_fd()),
        Some(inherited.output.as_fd()),
        Some(null.as_fd()),
    ]);
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
    Ok(inherited)
}

impl OwnKeeper {
    /// Forks a keeper. Must be called while there is one thread. The cgroups must live as long as the run.
    pub fn fork(limits: Limits) -> io::Result<(Self, AgentCgroups)> {
        let (ours, theirs) = socket::pair()?;
        let mut cgroups = AgentCgroups::create(&limits);
        let cgroup = cgroups.add(FIRST_OWNER);
        // SAFETY: there is one thread. The child never returns into our code.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                signals::block_all();
                run_keeper(theirs, limits, cgroup, None, KeeperCount::new())
            }
            pid => Ok((Self { pid, socket: ours }, cgroups)),
        }
    }

    /// Starts the program. Must be called within a tokio runtime.
    pub fn spawn(self, spawn: Spawn) -> Result<Process, LinkError> {
        let socket = Arc::new(socket::connect(self.socket).map_err(LinkError::Start)?);
        // Somebody may have stopped it.
        tokio::spawn(keep_awake(self.pid));
        // No agent reports that this keeper has ended.
        let (_, gone) = oneshot::channel();
        let keeper = KeeperConnection { owner: FIRST_OWNER, socket, inbox: Inbox::default(), gone };
        Ok(NearProcess::new(keeper, SpawnFrame::new(spawn)?, None).into())
    }
}
