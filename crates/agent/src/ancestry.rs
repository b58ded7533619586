//! Where a process comes from: from below one of our processes, or from outside.
//!
//!     init ─ sshd ─ bash ─ mcpz jobs                            outside: started by a person
//!     init ─ … ─ server ─ agent ─ keeper ─ sh ─ mcpz jobs       below: a command
//!     init ─ recorder ─ keeper ─ sh ─ … ─ mcpz jobs             below: a detached job, whose server is gone
//!
//! Our processes are recognised by their names. They are not dumpable, so only root can see what they execute, but
//! everyone can see their name and parent. Only a process itself can change its name, and a command that takes one of
//! ours gains nothing.
//!
//! A command cannot escape: the kernel gives orphans to the nearest subreaper above, and all our processes are
//! subreapers. If a keeper dies, the agent or the recorder inherits its processes. If those are killed with it, the
//! server does, or init, and then a marker tells such processes from others (`marker.rs`).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::marker::has_marker;
use crate::tree::{self, ProcessStat, State};

pub const AGENT: &CStr = c"mcpz-agent";
pub const KEEPER: &CStr = c"mcpz-keeper";
pub const RECORDER: &CStr = c"mcpz-record";

/// How many ancestors to read at most. No real process has so many, and each takes some microseconds.
const MAX_ANCESTORS: usize = 256;

/// How often to read an ancestry that changes meanwhile.
const TRIES: usize = 10;

/// Returns a pidfd of the process that connected, since Linux 6.5. Not in `libc` yet.
const SO_PEERPIDFD: libc::c_int = 77;

/// One process among all that will ever have its process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// When it was started, in clock ticks since boot.
    started: u64,
}

impl From<&ProcessStat> for Identity {
    fn from(stat: &ProcessStat) -> Self {
        Self { pid: stat.pid, started: stat.started }
    }
}

impl Identity {
    pub fn new(pid: i32, started: u64) -> Self {
        Self { pid, started }
    }

    pub fn own() -> Option<Self> {
        Self::of(std::process::id() as i32)
    }

    pub fn started(&self) -> u64 {
        self.started
    }

    /// The living process with this id.
    fn of(pid: i32) -> Option<Self> {
        let (stat, _) = tree::read_stat(pid)?;
        (stat.state != State::Zombie).then(|| Self::from(&stat))
    }
}

/// What is above a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ancestry {
    Outside,
    Below(Supervisor),
    /// It was below one of our processes, which is gone.
    Escaped,
    /// Some ancestors are not visible, or they keep changing.
    Unknown,
}

/// The one of our processes that a command is below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    pub name: String,
    pub pid: i32,
}

impl Ancestry {
    pub fn own() -> Self {
        Self::of(std::process::id() as i32)
    }

    /// The ancestry of the process that has this id now.
    pub fn of(pid: i32) -> Self {
        // Two equal readings prove each other: every process lived all the time in between, so no other process had
        // its id when its parent was read.
        let mut before = None;
        for _ in 0..TRIES {
            let seen = ancestors(pid);
            if seen.is_some() && seen == before {
                return seen.map_or(Self::Unknown, |steps| Self::from_steps(&steps));
            }
            before = seen;
        }
        Self::Unknown
    }

    fn from_steps(steps: &[Step]) -> Self {
        match steps.last() {
            Some(last) if last.is_ours() => {
                Self::Below(Supervisor { name: last.name.clone(), pid: last.identity.pid })
            }
            _ => Self::Outside,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    identity: Identity,
    name: String,
    parent: i32,
}

impl Step {
    fn is_ours(&self) -> bool {
        is_ours(&self.name)
    }
}

fn is_ours(name: &str) -> bool {
    [AGENT, KEEPER, RECORDER].iter().any(|ours| name.as_bytes() == ours.to_bytes())
}

/// Resumes those of our processes that are below this one, if something has stopped them.
pub fn resume_ours_below(root: i32) {
    let named = |pid: &i32| tree::read_stat(*pid).is_some_and(|(_, name)| is_ours(&name));
    let ours: Vec<_> = tree::descendants(root).into_iter().filter(named).collect();
    tree::signal(&ours, Signal::CONT);
}

/// A process and its ancestors, up to the first of our processes or the top. `None` if some are not visible.
fn ancestors(pid: i32) -> Option<Vec<Step>> {
    let (mut steps, mut next) = (Vec::new(), pid);
    while steps.len() < MAX_ANCESTORS {
        let (ProcessStat { pid, parent, started, .. }, name) = tree::read_stat(next)?;
        let step = Step { identity: Identity { pid, started }, name, parent };
        // A process that entered the container from outside (`docker exec`) has parent 0.
        let done = step.is_ours() || parent <= 1;
        steps.push(step);
        if done {
            return Some(steps);
        }
        next = parent;
    }
    None
}

/// A reference to one process, which tells whether that process is still alive.
#[derive(Debug)]
pub struct ProcessHandle {
    pub pid: i32,
    /// Where the kernel has no pidfd for it, the start time identifies the process.
    handle: Option<OwnedFd>,
    started: Option<u64>,
}

impl ProcessHandle {
    /// The process with this id that connected to a socket. `None` if it has ended.
    pub fn peer(socket: BorrowedFd<'_>, pid: i32) -> Option<Self> {
        let handle = match peer_handle(socket) {
            Ok(handle) => Some(handle),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => None,
            Err(_) => return None,
        };
        let started = Identity::of(pid).map(|found| found.started);
        Some(Self { pid, handle, started })
    }

    /// The process with this identity, if it is alive.
    pub fn new(identity: Identity) -> Option<Self> {
        let Identity { pid, started } = identity;
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
        // Other users' processes may be invisible.
        let same = Identity::of(pid).map_or(handle.is_some(), |found| found == identity);
        same.then_some(Self { pid, handle, started: Some(started) })
    }

    /// Whether it has lived until now. If so, everything read about its id so far was about this process.
    pub fn is_alive(&self) -> bool {
        match &self.handle {
            Some(handle) => {
                let mut polled = [PollFd::new(handle, PollFlags::IN)];
                matches!(poll(&mut polled, Some(&Timespec::default())), Ok(0))
            }
            None => {
                let found = Identity::of(self.pid).map(|found| found.started);
                found.is_some() && found == self.started
            }
        }
    }

    /// Its name, as it has set it.
    pub fn name(&self) -> Option<String> {
        tree::read_stat(self.pid).map(|(_, name)| name)
    }

    pub fn ancestry(&self) -> Ancestry {
        match (Ancestry::of(self.pid), has_marker(self.pid)) {
            (Ancestry::Outside, Some(true)) => Ancestry::Escaped,
            (Ancestry::Outside, None) => Ancestry::Unknown,
            (ancestry, _) => ancestry,
        }
    }
}

fn peer_handle(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut handle: libc::c_int = -1;
    let mut size = size_of_val(&handle) as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes an integer of that size.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut handle).cast(),
            &raw mut size,
        )
    };
    if done < 0 || handle < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created the descriptor for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(handle) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    fn step(pid: i32, name: &str) -> Step {
        Step { identity: Identity { pid, started: 1 }, name: name.to_owned(), parent: 1 }
    }

    #[test]
    fn ours_are_known_by_their_names() {
        for name in ["mcpz-agent", "mcpz-keeper", "mcpz-record"] {
            let below = Supervisor { name: name.to_owned(), pid: 7 };
            let steps = [step(9, "bash"), step(7, name)];
            assert_eq!(Ancestry::from_steps(&steps), Ancestry::Below(below));
        }
        let steps = [step(9, "bash"), step(7, "mcpz")];
        assert_eq!(Ancestry::from_steps(&steps), Ancestry::Outside);
    }

    #[test]
    fn what_has_the_top_above_it_is_outside() {
        assert_eq!(Ancestry::of(1), Ancestry::Outside);
    }

    #[test]
    fn nobody_knows_where_a_process_comes_from_that_is_not_there() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(Ancestry::of(child.id() as i32), Ancestry::Unknown);
    }

    #[test]
    fn below_a_process_with_such_a_name_everything_is_below() {
        // A process has the name of its file until it sets another.
        let folder = tempfile::tempdir().unwrap();
        let keeper = folder.path().join("mcpz-keeper");
        std::os::unix::fs::symlink("/bin/sh", &keeper).unwrap();
        let mut command = Command::new(&keeper);
        command.args(["-c", "setsid sh -c 'echo $$; read x'; true"]);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = shell.stdout.take().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line).unwrap();
        let keeper = Supervisor { name: "mcpz-keeper".to_owned(), pid: shell.id() as i32 };
        assert_eq!(Ancestry::of(line.trim().parse().unwrap()), Ancestry::Below(keeper));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    #[test]
    fn a_process_is_there_as_long_as_it_lives_with_a_handle_and_without() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = Identity::of(child.id() as i32).unwrap();
        let held = [(), ()].map(|()| ProcessHandle::new(identity).unwrap());
        let [with, mut without] = held;
        without.handle = None;
        assert!(with.is_alive() && without.is_alive());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!with.is_alive() && !without.is_alive());
        assert!(ProcessHandle::new(identity).is_none());
    }

    #[test]
    fn who_has_connected_is_held() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = ProcessHandle::peer(ours.as_fd(), std::process::id() as i32).unwrap();
        assert!(peer.is_alive());
        assert_eq!(peer.started, Identity::own().map(|own| own.started));
    }
}
