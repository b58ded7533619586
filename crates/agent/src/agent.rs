//! The agent: a small process that forks keepers for a server, and cleans up after keepers that were killed.
//!
//! The agent exists because forking a large process with many threads is slow and dangerous, and forking a small one
//! with one thread is not. If a keeper is killed, its processes become children of the agent, which is a subreaper
//! too, and it kills them. The agent serves until the server's stream ends, and exits when all keepers have.
//!
//! The server talks to each keeper directly, over a socket pair whose other end it sends to the agent. Passing
//! everything through the agent took two more wake-ups each way: a short command then took 1.5 times as long as a bare
//! `posix_spawn`, instead of 1.25 times.
//!
//!     server ══ agent
//!        ║        ├─ keeper ─ run
//!        ╠════════╡
//!        ╚════════╧═ keeper   (idle)

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::slice;
use std::time::{Duration, Instant};

use mcpz_sandbox::Restrictions;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socket_with};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::ancestry::{AGENT, KEEPER};
use crate::cgroup::{AgentCgroups, KeeperCgroup};
use crate::frame::{
    AgentEvent, AgentRequest, Confinement, Failure, FrameError, KeeperEvent, Stage, VERSION,
};
use crate::git_configs::SharedConfig;
use crate::keeper::{Confined, Keeper, ORPHAN_GRACE};
use crate::keeper_count::KeeperCount;
use crate::launcher::close_on_exec_from;
use crate::limits::Limits;
use crate::memory::release_code_pages;
use crate::signals::{self, Waited};
use crate::socket::{self, Inbox};
use crate::tree::{self, Hunt};

/// How long to kill the processes that a killed keeper left behind.
const ORPHAN_KILL_TIME: Duration = Duration::from_secs(3);

/// How long no keeper may exit, while all runs are being killed, before the agent gives up.
const STUCK_TIME: Duration = Duration::from_secs(4);

/// The least time between two scans of all processes while they are being killed.
const SCAN_INTERVAL: Duration = Duration::from_millis(5);

/// Why an agent ended although its server had not hung up.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("cannot set up the agent")]
    Setup(#[source] io::Error),
    #[error("the server speaks version {theirs} of the protocol, this agent {VERSION}")]
    Version { theirs: u16 },
    #[error("the server sent a request before its greeting")]
    NoHello,
    #[error("cannot confine commands")]
    Confinement(#[source] io::Error),
    #[error("the server sent an invalid message")]
    Garbage(#[from] FrameError),
}

/// Serves the stream on standard input until it ends. When this returns, every process that was started is
/// gone, except those that not even SIGKILL ends.
pub fn serve_stdin() -> Result<(), AgentError> {
    let socket = detach_stdin().map_err(AgentError::Setup)?;
    close_on_exec_from(3);
    signals::block_all();
    // A terminal's signals are meant for the server, and commands must not read our memory. By libc: gVisor returns no
    // session, which rustix relies on.
    // SAFETY: has no arguments, and changes nothing that Rust knows of.
    unsafe { libc::setsid() };
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    become_subreaper();
    signals::resume_when_parent_dies();
    set_name(AGENT);
    let mut agent = Agent {
        server: socket,
        inbox: Inbox::default(),
        setup: None,
        keepers: HashMap::new(),
        keeper_count: KeeperCount::new(),
        confined: None,
    };
    let result = agent.serve();
    if result.is_err() {
        // The server is still there: it must notice that we exit, and hang up on the keepers.
        let _ = rustix::net::shutdown(&agent.server, rustix::net::Shutdown::Both);
    }
    agent.close();
    result
}

struct Agent {
    server: OwnedFd,
    inbox: Inbox,
    /// Set by the server's greeting.
    setup: Option<Enforcement>,
    keepers: HashMap<Pid, ForkedKeeper>,
    keeper_count: KeeperCount,
    /// What each command applies to itself, if commands are confined.
    confined: Option<Confined>,
}

/// The limits of every run, and the cgroups that enforce them.
struct Enforcement {
    limits: Limits,
    cgroups: AgentCgroups,
}

/// What the agent knows of one keeper.
struct ForkedKeeper {
    id: u64,
    owner: u64,
    cgroup: Option<KeeperCgroup>,
}

impl Agent {
    fn serve(&mut self) -> Result<(), AgentError> {
        loop {
            let socket = Some(self.server.as_fd());
            if signals::wait(&Waited { socket, ..Waited::default() }).socket {
                match self.inbox.fill(self.server.as_fd(), RecvFlags::DONTWAIT) {
                    Ok(0) => return Ok(()),
                    Ok(_) | Err(Errno::AGAIN) => {}
                    Err(_) => return Ok(()),
                }
            }
            while let Some(request) = self.inbox.next()? {
                self.handle(&request)?;
            }
            self.reap_keepers();
        }
    }

    fn handle(&mut self, request: &AgentRequest) -> Result<(), AgentError> {
        match request {
            AgentRequest::Hello { version: VERSION, limits, confinement } => {
                let cgroups = AgentCgroups::create(limits);
                let listener = match confinement.as_ref().map(|it| self.confine(it)).transpose() {
                    Ok(listener) => listener.flatten(),
                    Err(error) => {
                        self.report(&AgentEvent::Refused { reason: error.to_string() }, &[]);
                        return Err(AgentError::Confinement(error));
                    }
                };
                let port = listener.as_ref().map(|(_, port)| *port);
                let sent: Vec<_> = listener.iter().map(|(listener, _)| listener.as_fd()).collect();
                let folders = cgroups.paths();
                self.report(&AgentEvent::Hello { version: VERSION, cgroups: folders, port }, &sent);
                self.setup = Some(Enforcement { limits: *limits, cgroups });
                release_code_pages();
            }
            AgentRequest::Hello { version, .. } => {
                return Err(AgentError::Version { theirs: *version });
            }
            AgentRequest::ShareConfig { path, root } => {
                let file = self.inbox.take_fds(1).and_then(|mut fds| fds.pop());
                if let (Some(confined), Some(file)) = (&mut self.confined, file) {
                    let (path, root) = (path.clone(), root.clone());
                    confined.configs.push(SharedConfig { path, root, file: file.into() });
                }
            }
            AgentRequest::AllowWriting(paths) => {
                if let Some(confined) = &self.confined {
                    paths.iter().for_each(|path| confined.restrictions.allow_writing(path));
                }
                self.report(&AgentEvent::Answered { attached: false }, &[]);
            }
            AgentRequest::Connect { port } => {
                let stream = connect(*port);
                let sent: Vec<_> = stream.iter().map(AsFd::as_fd).collect();
                self.report(&AgentEvent::Answered { attached: stream.is_some() }, &sent);
            }
            AgentRequest::StartKeeper { keeper, owner } => {
                let (keeper, owner) = (*keeper, *owner);
                let Some(Enforcement { limits, cgroups }) = &mut self.setup else {
                    return Err(AgentError::NoHello);
                };
                match self.inbox.take_fds(1).and_then(|mut fds| fds.pop()) {
                    Some(socket) => {
                        let (limits, cgroup) = (*limits, cgroups.add(owner));
                        self.fork_keeper(
                            ForkedKeeper { id: keeper, owner, cgroup },
                            socket,
                            limits,
                        );
                    }
                    // This process has too many open files: the kernel has closed the socket, which the server sees.
                    None => self.report(&AgentEvent::KeeperGone { keeper }, &[]),
                }
            }
        }
        Ok(())
    }

    fn fork_keeper(&mut self, entry: ForkedKeeper, socket: OwnedFd, limits: Limits) {
        // SAFETY: this process has one thread, so the child finds nothing half done. It never
        // returns into our code: it serves and exits.
        match unsafe { libc::fork() } {
            -1 => {
                let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
                let failure = Failure { stage: Stage::Resources, errno };
                let _ = socket::send_all(socket.as_fd(), &[KeeperEvent::Failed(failure)], &[]);
                self.report(&AgentEvent::KeeperGone { keeper: entry.id }, &[]);
            }
            0 => run_keeper(socket, limits, entry.cgroup, self.confined.take(), self.keeper_count),
            pid => {
                let pid = Pid::from_raw(pid).expect("a child's id is positive");
                self.keepers.insert(pid, entry);
                self.keeper_count.set(self.keepers.len());
            }
        }
    }

    /// Reaps every keeper that has ended, and resumes those that were stopped.
    fn reap_keepers(&mut self) {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let (mut left, mut killed) = (Vec::new(), Vec::new());
        while let Ok(Some((pid, status))) = waitpid(None, options) {
            if status.stopped() {
                // Its own run may have stopped it.
                let _ = kill_process(pid, Signal::CONT);
            } else if let Some(entry) = self.keepers.remove(&pid) {
                // A keeper that exits by itself leaves nothing behind.
                match status.exit_status() {
                    Some(0) => left.push(entry),
                    _ => killed.push(entry),
                }
            }
        }
        self.keeper_count.set(self.keepers.len());
        left.into_iter().for_each(|entry| self.clean_up(entry));
        self.clean_up_killed(killed);
    }

    /// Kills what killed keepers left behind: their processes are our children now.
    fn clean_up_killed(&mut self, mut killed: Vec<ForkedKeeper>) {
        if killed.is_empty() {
            return;
        }
        killed.iter_mut().filter_map(|entry| entry.cgroup.as_mut()).for_each(KeeperCgroup::kill);
        self.kill_orphans();
        killed.into_iter().for_each(|entry| self.clean_up(entry));
    }

    /// Removes the cgroups of a keeper that has ended, and reports that it is gone.
    fn clean_up(&mut self, entry: ForkedKeeper) {
        if let Some(cgroup) = entry.cgroup {
            cgroup.remove();
        }
        if self.keepers.values().all(|other| other.owner != entry.owner) {
            self.setup.iter().for_each(|setup| setup.cgroups.forget(entry.owner));
        }
        self.report(&AgentEvent::KeeperGone { keeper: entry.id }, &[]);
    }

    /// Kills every child that is not a keeper, and its descendants, until none is left.
    fn kill_orphans(&self) {
        let is_keeper = |pid| Pid::from_raw(pid).is_some_and(|pid| self.keepers.contains_key(&pid));
        tree::end_children(ORPHAN_KILL_TIME, |pid| !is_keeper(pid));
    }

    fn report(&self, event: &AgentEvent, fds: &[BorrowedFd<'_>]) {
        // If this fails the server is gone; reading its stream will tell.
        let _ = socket::send_all(self.server.as_fd(), slice::from_ref(event), fds);
    }

    /// Restricts this process, and thereby everything it starts. Returns the listener on which commands reach
    /// the proxy, if they have one, and its port.
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
        self.confined = Some(Confined { restrictions, configs: Vec::new() });
        Ok(listener)
    }

    /// Ends all runs and waits until all keepers have exited, which they do when their runs have ended. Kills those
    /// that do not.
    fn close(mut self) {
        let me = getpid().as_raw_nonzero().get();
        let is_run = |keepers: &HashMap<Pid, ForkedKeeper>, pid| {
            Pid::from_raw(pid).is_none_or(|pid| !keepers.contains_key(&pid))
        };
        let mut all: Vec<_> = tree::scan_children(me).iter().map(|process| process.pid).collect();
        all.retain(|pid| is_run(&self.keepers, *pid));
        tree::signal(&all, Signal::TERM);
        // A stopped process would not handle the signal.
        tree::signal(&all, Signal::CONT);
        self.wait_for_keepers(ORPHAN_GRACE);
        let mut until = Instant::now() + STUCK_TIME;
        let mut hunt = Hunt::new(me);
        while !self.keepers.is_empty() && Instant::now() < until {
            let (before, began) = (self.keepers.len(), Instant::now());
            self.setup.iter().for_each(|setup| setup.cgroups.kill());
            hunt.kill_if(|pid| is_run(&self.keepers, pid));
            self.wait_for_keepers(began.elapsed().max(SCAN_INTERVAL));
            if self.keepers.len() < before {
                until = Instant::now() + STUCK_TIME;
            }
        }
        let left = std::mem::take(&mut self.keepers);
        for pid in left.keys() {
            let _ = kill_process(*pid, Signal::KILL);
            let _ = waitpid(Some(*pid), WaitOptions::empty());
        }
        self.clean_up_killed(left.into_values().collect());
        self.kill_orphans();
    }

    /// Reaps keepers until all have ended or the time is over.
    fn wait_for_keepers(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while !self.keepers.is_empty() && Instant::now() < until {
            let timer = Some(until.saturating_duration_since(Instant::now()));
            signals::wait(&Waited { timer, ..Waited::default() });
            self.reap_keepers();
        }
    }
}

/// Connects to a port of the loopback interface. Does not wait for a program that is too busy to accept.
fn connect(port: u16) -> Option<OwnedFd> {
    let addresses =
        [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()];
    addresses.iter().find_map(|address| {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).ok()?;
        match rustix::net::connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => Some(socket),
            Err(_) => None,
        }
    })
}

/// Makes a forked process a keeper; never returns.
pub fn run_keeper(
    socket: OwnedFd,
    limits: Limits,
    cgroup: Option<KeeperCgroup>,
    confined: Option<Confined>,
    keeper_count: KeeperCount,
) -> ! {
    let mut kept = vec![Some(socket.as_fd())];
    if let Some(Confined { restrictions, configs }) = &confined {
        kept.push(Some(restrictions.as_fd()));
        kept.extend(configs.iter().map(|config| Some(config.file.as_fd())));
    }
    close_all_but(&kept);
    become_subreaper();
    set_name(KEEPER);
    if let Ok(keeper) = Keeper::new(socket, limits, cgroup, confined, keeper_count) {
        keeper.serve();
    }
    // SAFETY: exits at once, without running the exit handlers of the process this was forked from.
    unsafe { libc::_exit(0) }
}

/// Closes all descriptors from 3 on, except these. If a keeper kept the agent's stream open, the server could
/// not tell that the agent is gone.
pub fn close_all_but(keep: &[Option<BorrowedFd<'_>>]) {
    let mut keep: Vec<_> = keep.iter().flatten().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: the closed descriptors belong to nobody, or to values of the forked agent that are
            // never used or dropped here.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Moves the stream off standard input, which programs inherit.
fn detach_stdin() -> io::Result<OwnedFd> {
    let socket = fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(socket)
}

/// Sets the name that `ps` and `top` show. Ancestry recognises our processes by it.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

pub fn become_subreaper() {
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}
