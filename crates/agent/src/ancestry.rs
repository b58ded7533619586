//! Where a process comes from: from below one of ours, or from outside.
//!
//!     init ─ sshd ─ bash ─ mcpz jobs                            outside: somebody's own
//!     init ─ … ─ server ─ agent ─ keeper ─ sh ─ mcpz jobs       below: a command
//!     init ─ recorder ─ keeper ─ sh ─ … ─ mcpz jobs             below: a detached one
//!
//! Ours are known by their names. They are not dumpable, so nobody but root can see what they execute,
//! but everybody can see their name and parent. Only a process itself can change its name, and a command
//! that takes one of ours gains nothing by that.
//!
//! A command cannot leave: whatever is orphaned goes to the subreaper above it, and all of ours are
//! subreapers. A keeper that dies leaves its processes to the agent or the recorder. Only if all of them
//! are killed together do those go to init, and then a mark tells them from others (`mark.rs`).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::mark::is_marked;
use crate::tree::{self, Entry, State};

pub const AGENT: &CStr = c"mcpz-agent";
pub const KEEPER: &CStr = c"mcpz-keeper";
pub const RECORDER: &CStr = c"mcpz-record";

/// The most that is climbed. Nobody sits below so many, and each takes some microseconds.
const MAX_HEIGHT: usize = 256;

/// How often an ancestry that changes while it is looked at is looked at again.
const TRIES: usize = 10;

/// Asks for a handle on the process that has connected: Linux 6.5. Not in `libc` yet.
const SO_PEERPIDFD: libc::c_int = 77;

/// One process among all that will ever have its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// When it was started, in the kernel's own unit.
    started: u64,
}

impl From<&Entry> for Identity {
    fn from(entry: &Entry) -> Self {
        Self { pid: entry.pid, started: entry.started }
    }
}

impl Identity {
    pub fn own() -> Option<Self> {
        Self::of(std::process::id() as i32)
    }

    /// The living process that has this number.
    fn of(pid: i32) -> Option<Self> {
        let (entry, _) = tree::look(pid)?;
        (entry.state != State::Ended).then(|| Self::from(&entry))
    }
}

/// What there is above a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ancestry {
    Outside,
    Below(Supervisor),
    /// It was below one of ours, which is gone.
    Escaped,
    /// Not all that is above can be seen, or it does not stay as it is.
    Unknown,
}

/// A process of ours that a command is below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    pub name: String,
    pub pid: i32,
}

impl Ancestry {
    pub fn own() -> Self {
        Self::of(std::process::id() as i32)
    }

    /// The ancestry of the process that has this number now.
    pub fn of(pid: i32) -> Self {
        // What was seen twice was so in between: each process was there all the time, and so nobody
        // else had its number when its parent was read.
        let mut before = None;
        for _ in 0..TRIES {
            let seen = climb(pid);
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

/// Has those of ours go on that are below a process, if somebody has stopped them.
pub fn wake_ours_below(root: i32) {
    let named = |pid: &i32| tree::look(*pid).is_some_and(|(_, name)| is_ours(&name));
    let ours: Vec<_> = tree::descendants(root).into_iter().filter(named).collect();
    tree::signal(&ours, Signal::CONT);
}

/// A process and all above it, up to the first of ours or the top. Nothing if some cannot be seen.
fn climb(pid: i32) -> Option<Vec<Step>> {
    let (mut steps, mut next) = (Vec::new(), pid);
    while steps.len() < MAX_HEIGHT {
        let (Entry { pid, parent, started, .. }, name) = tree::look(next)?;
        let step = Step { identity: Identity { pid, started }, name, parent };
        // The parent of what was brought into a container from outside (`docker exec`) is 0.
        let done = step.is_ours() || parent <= 1;
        steps.push(step);
        if done {
            return Some(steps);
        }
        next = parent;
    }
    None
}

/// A process that is held on to: as long as it is there, nobody else has its number.
#[derive(Debug)]
pub struct Held {
    pub pid: i32,
    /// Where the kernel has none, the time of its start has to do.
    handle: Option<OwnedFd>,
    started: Option<u64>,
}

impl Held {
    /// The process that has connected to a socket, known by this number. Nothing if it has ended.
    pub fn peer(socket: BorrowedFd<'_>, pid: i32) -> Option<Self> {
        let handle = match peer_handle(socket) {
            Ok(handle) => Some(handle),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => None,
            Err(_) => return None,
        };
        let started = Identity::of(pid).map(|found| found.started);
        Some(Self { pid, handle, started })
    }

    /// The process that is meant, if it is there.
    pub fn new(identity: Identity) -> Option<Self> {
        let Identity { pid, started } = identity;
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
        // Not everybody may see it.
        let same = Identity::of(pid).map_or(handle.is_some(), |found| found == identity);
        same.then_some(Self { pid, handle, started: Some(started) })
    }

    /// Whether it has lived until now. Then all that was seen of its number was about it.
    pub fn is_there(&self) -> bool {
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

    /// What it calls itself.
    pub fn name(&self) -> Option<String> {
        tree::look(self.pid).map(|(_, name)| name)
    }

    pub fn ancestry(&self) -> Ancestry {
        match (Ancestry::of(self.pid), is_marked(self.pid)) {
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
    // SAFETY: the descriptor was made for us, and nobody else knows of it.
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
        // A process has the name of its file until it takes another.
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
        let held = [(), ()].map(|()| Held::new(identity).unwrap());
        let [with, mut without] = held;
        without.handle = None;
        assert!(with.is_there() && without.is_there());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!with.is_there() && !without.is_there());
        assert!(Held::new(identity).is_none());
    }

    #[test]
    fn who_has_connected_is_held() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Held::peer(ours.as_fd(), std::process::id() as i32).unwrap();
        assert!(peer.is_there());
        assert_eq!(peer.started, Identity::own().map(|own| own.started));
    }
}
