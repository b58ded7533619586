//! The agent: a small process that forks keepers for a server, and sees to what they leave behind.
//!
//! The server talks to each keeper itself; the agent is there because a fork of a large process
//! with many threads is slow and dangerous, and one of a small process with one thread is neither.
//! Should a keeper be killed, its processes come to the agent, which is a subreaper too, and are
//! killed. It lives as long as the server's stream, and leaves when all keepers have.
//!
//!     server ══ agent
//!        ║        ├─ keeper ─ run
//!        ╠════════╡
//!        ╚════════╧═ keeper   (idle)

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::slice;
use std::time::{Duration, Instant};

use mcpz_sandbox::Restrictions;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::ancestry::{AGENT, KEEPER};
use crate::cgroup::{Group, Groups};
use crate::child::close_on_exec_from;
use crate::crowd::Crowd;
use crate::frame::{Confinement, Event, Failure, FrameError, Order, Report, Stage, VERSION};
use crate::keeper::{Keeper, ORPHAN_GRACE};
use crate::limits::Limits;
use crate::wire::{self, Inbox};
use crate::{code, signals, tree};

/// How long processes of a killed keeper are hunted.
const SWEEP_TIME: Duration = Duration::from_secs(3);

/// How long no run may end, while all of them are being killed, before that is given up.
const LEAVE_TIME: Duration = Duration::from_secs(4);

/// The least time between two looks at all processes while they are being killed.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Why an agent ended other than by its server leaving.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent cannot be set up")]
    Setup(#[source] io::Error),
    #[error("the server speaks version {theirs} of the protocol, this agent {VERSION}")]
    Version { theirs: u16 },
    #[error("the server gives orders before it has said hello")]
    NoHello,
    #[error("commands cannot be confined")]
    Confinement(#[source] io::Error),
    #[error("the server sends garbage")]
    Garbage(#[from] FrameError),
}

/// Serves the stream on standard input until it ends. Everything that was started is gone when
/// this returns, but for what not even SIGKILL ends.
pub fn serve_stdin() -> Result<(), AgentError> {
    let socket = detach_stdin().map_err(AgentError::Setup)?;
    close_on_exec_from(3);
    signals::take_over();
    // A terminal's signals are for the server, and our secrets are for nobody.
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    become_subreaper();
    signals::wake_when_parent_ends();
    set_name(AGENT);
    let mut agent = Agent {
        server: socket,
        inbox: Inbox::default(),
        ward: None,
        keepers: HashMap::new(),
        crowd: Crowd::new(),
        restrictions: None,
    };
    let result = agent.serve();
    if result.is_err() {
        // The server has not left: it must hear that we do, and hang up on the keepers.
        let _ = rustix::net::shutdown(&agent.server, rustix::net::Shutdown::Both);
    }
    agent.close();
    result
}

struct Agent {
    server: OwnedFd,
    inbox: Inbox,
    /// What the server has said in its greeting, and what was made for it.
    ward: Option<Ward>,
    keepers: HashMap<Pid, Record>,
    crowd: Crowd,
    /// What each command puts on itself.
    restrictions: Option<Restrictions>,
}

struct Ward {
    limits: Limits,
    groups: Groups,
}

/// What the agent knows of one keeper.
struct Record {
    keeper: u64,
    owner: u64,
    group: Option<Group>,
}

impl Agent {
    fn serve(&mut self) -> Result<(), AgentError> {
        loop {
            if signals::wait(Some(self.server.as_fd()), [None; 2], None).socket {
                match self.inbox.fill(self.server.as_fd(), RecvFlags::DONTWAIT) {
                    Ok(0) => return Ok(()),
                    Ok(_) | Err(Errno::AGAIN) => {}
                    Err(_) => return Ok(()),
                }
            }
            while let Some(order) = self.inbox.next()? {
                self.obey(&order)?;
            }
            self.bury_ended();
        }
    }

    fn obey(&mut self, order: &Order) -> Result<(), AgentError> {
        match order {
            Order::Hello { version: VERSION, limits, confinement } => {
                let groups = Groups::create(limits);
                let listener = match confinement.as_ref().map(|it| self.confine(it)).transpose() {
                    Ok(listener) => listener.flatten(),
                    Err(error) => {
                        self.report(&Report::Refused { why: error.to_string() }, &[]);
                        return Err(AgentError::Confinement(error));
                    }
                };
                let port = listener.as_ref().map(|(_, port)| *port);
                let sent: Vec<_> = listener.iter().map(|(listener, _)| listener.as_fd()).collect();
                let cgroups = groups.paths();
                self.report(&Report::Hello { version: VERSION, cgroups, port }, &sent);
                self.ward = Some(Ward { limits: *limits, groups });
                code::forget();
            }
            Order::Hello { version, .. } => return Err(AgentError::Version { theirs: *version }),
            Order::Keep { keeper, owner } => {
                let (keeper, owner) = (*keeper, *owner);
                let Some(Ward { limits, groups }) = &mut self.ward else {
                    return Err(AgentError::NoHello);
                };
                match self.inbox.take_fds(1).and_then(|mut fds| fds.pop()) {
                    Some(socket) => {
                        let (limits, group) = (*limits, groups.add(owner));
                        self.fork_keeper(Record { keeper, owner, group }, socket, limits);
                    }
                    // Out of descriptors: the kernel has closed it, which the server sees.
                    None => self.report(&Report::Buried { keeper }, &[]),
                }
            }
        }
        Ok(())
    }

    fn fork_keeper(&mut self, record: Record, socket: OwnedFd, limits: Limits) {
        // SAFETY: this process has one thread, so the child finds nothing half done. It never
        // returns into our code: it serves and leaves.
        match unsafe { libc::fork() } {
            -1 => {
                let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
                let failure = Failure { stage: Stage::Resources, errno };
                let _ = wire::tell(socket.as_fd(), &[Event::Failed(failure)], &[]);
                self.report(&Report::Buried { keeper: record.keeper }, &[]);
            }
            0 => live_as_keeper(socket, limits, record.group, self.restrictions.take(), self.crowd),
            pid => {
                let pid = Pid::from_raw(pid).expect("a child's id is positive");
                self.keepers.insert(pid, record);
                self.crowd.set(self.keepers.len());
            }
        }
    }

    /// Sees to every keeper that has ended.
    fn bury_ended(&mut self) {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let (mut left, mut killed) = (Vec::new(), Vec::new());
        while let Ok(Some((pid, status))) = waitpid(None, options) {
            if status.stopped() {
                // A keeper that its own run has stopped.
                let _ = kill_process(pid, Signal::CONT);
            } else if let Some(kept) = self.keepers.remove(&pid) {
                // One that leaves by itself leaves nothing behind.
                match status.exit_status() {
                    Some(0) => left.push(kept),
                    _ => killed.push(kept),
                }
            }
        }
        self.crowd.set(self.keepers.len());
        left.into_iter().for_each(|kept| self.bury(kept));
        self.bury_killed(killed);
    }

    /// Sees to what keepers left behind that were killed: their processes are ours now.
    fn bury_killed(&mut self, mut killed: Vec<Record>) {
        if killed.is_empty() {
            return;
        }
        killed.iter_mut().filter_map(|kept| kept.group.as_mut()).for_each(Group::kill);
        self.kill_orphans();
        killed.into_iter().for_each(|kept| self.bury(kept));
    }

    /// Removes what was made for a keeper of which nothing is left.
    fn bury(&mut self, kept: Record) {
        if let Some(group) = kept.group {
            group.remove();
        }
        if self.keepers.values().all(|other| other.owner != kept.owner) {
            self.ward.iter().for_each(|ward| ward.groups.forget(kept.owner));
        }
        self.report(&Report::Buried { keeper: kept.keeper }, &[]);
    }

    /// Kills every child that is no keeper, with all below it, until there is none.
    fn kill_orphans(&self) {
        let me = getpid().as_raw_nonzero().get();
        let until = Instant::now() + SWEEP_TIME;
        while Instant::now() < until {
            let children = tree::children(me).into_iter().filter_map(Pid::from_raw);
            let orphans: Vec<_> = children.filter(|pid| !self.keepers.contains_key(pid)).collect();
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                tree::kill(orphan.as_raw_nonzero().get());
                let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn report(&self, report: &Report, fds: &[BorrowedFd<'_>]) {
        // A server that does not listen has left, which its own stream will tell.
        let _ = wire::tell(self.server.as_fd(), slice::from_ref(report), fds);
    }

    /// Takes from this process, and from all it will start, what no command may have. Returns where
    /// commands find their way out, if they are to have one.
    fn confine(&mut self, confinement: &Confinement) -> io::Result<Option<(TcpListener, u16)>> {
        let restrictions =
            Restrictions::prepare(&confinement.permissions).map_err(io::Error::other)?;
        let listener = match confinement.proxied {
            true => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let port = listener.local_addr()?.port();
                Some((listener, port))
            }
            false => None,
        };
        restrictions.restrict_agent()?;
        self.restrictions = Some(restrictions);
        Ok(listener)
    }

    /// Ends all runs, and waits until all keepers have left, which they do when their runs have ended.
    /// Those that do not are killed.
    fn close(mut self) {
        let me = getpid().as_raw_nonzero().get();
        let runs = |keepers: &HashMap<Pid, Record>, pid| {
            Pid::from_raw(pid).is_none_or(|pid| !keepers.contains_key(&pid))
        };
        let mut all = tree::descendants(me);
        all.retain(|pid| runs(&self.keepers, *pid));
        tree::signal(&all, Signal::TERM);
        // A stopped process could not hear.
        tree::signal(&all, Signal::CONT);
        self.wait_for_keepers(ORPHAN_GRACE);
        let mut until = Instant::now() + LEAVE_TIME;
        while !self.keepers.is_empty() && Instant::now() < until {
            let (before, began) = (self.keepers.len(), Instant::now());
            self.ward.iter().for_each(|ward| ward.groups.kill());
            tree::kill_those_below(me, |pid| runs(&self.keepers, pid));
            self.wait_for_keepers(began.elapsed().max(LOOK_AGAIN));
            if self.keepers.len() < before {
                until = Instant::now() + LEAVE_TIME;
            }
        }
        let left = std::mem::take(&mut self.keepers);
        for pid in left.keys() {
            let _ = kill_process(*pid, Signal::KILL);
            let _ = waitpid(Some(*pid), WaitOptions::empty());
        }
        self.bury_killed(left.into_values().collect());
        self.kill_orphans();
    }

    /// Sees to keepers that end, until all have or the time is over.
    fn wait_for_keepers(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while !self.keepers.is_empty() && Instant::now() < until {
            signals::wait(None, [None; 2], Some(until.saturating_duration_since(Instant::now())));
            self.bury_ended();
        }
    }
}

/// The rest of a forked process's life.
pub fn live_as_keeper(
    socket: OwnedFd,
    limits: Limits,
    group: Option<Group>,
    restrictions: Option<Restrictions>,
    crowd: Crowd,
) -> ! {
    close_all_but(&[Some(socket.as_fd()), restrictions.as_ref().map(AsFd::as_fd)]);
    become_subreaper();
    set_name(KEEPER);
    if let Ok(keeper) = Keeper::new(socket, limits, group, restrictions, crowd) {
        keeper.serve();
    }
    // SAFETY: leaves at once, without running the exit handlers of the process this was forked of.
    unsafe { libc::_exit(0) }
}

/// Closes the descriptors of the forked agent: the server could not tell that the agent is gone as
/// long as a keeper held its stream.
pub fn close_all_but(keep: &[Option<BorrowedFd<'_>>]) {
    let mut keep: Vec<_> = keep.iter().flatten().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: the descriptors closed belong to nobody, or to values of the forked agent that
            // nobody here will ever use or drop.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Moves the stream off standard input, where programs would find it.
fn detach_stdin() -> io::Result<OwnedFd> {
    let socket = fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(socket)
}

/// What `ps` and `top` show, and by what a command is known to be below us.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

pub fn become_subreaper() {
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}
