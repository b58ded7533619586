//! The agent: a small process that alone starts others.
//!
//! It hands each run to a keeper and passes frames on, in both directions. Keepers are forked ahead
//! of need and used again, so that a run costs no fork of ours. It lives as long as the server's
//! stream: when that ends, it hangs up on all keepers, which then end their runs, and leaves last.
//!
//!     server ═══ agent ═╦═ keeper ─ run
//!                       ╠═ keeper ─ run
//!                       ╚═ keeper   (idle)

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, getpid, waitpid};

use crate::cgroup::{Group, Groups};
use crate::child::close_on_exec_from;
use crate::frame::{self, Event, Failure, FrameError, Request, RunId, Stage, VERSION};
use crate::keeper::Keeper;
use crate::wire::{self, Inbox};
use crate::{signals, tree};

/// Keepers that are always ready.
const SPARE: usize = 2;

/// How long a keeper beyond those waits for more work before it is let go.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How long processes of a killed keeper are hunted.
const SWEEP_TIME: Duration = Duration::from_secs(3);

const SERVER: u64 = 0;

/// Why an agent ended other than by its server leaving.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent cannot be set up")]
    Setup(#[source] io::Error),
    #[error("the server speaks version {theirs} of the protocol, this agent {VERSION}")]
    Version { theirs: u16 },
    #[error("the server speaks before it has said hello")]
    NoHello,
    #[error("the server sends garbage")]
    Garbage(#[from] FrameError),
}

/// Serves the stream on standard input until it ends. Everything that was started is gone when
/// this returns.
pub fn serve_stdin() -> Result<(), AgentError> {
    let socket = detach_stdin().map_err(AgentError::Setup)?;
    close_on_exec_from(3);
    signals::take_over();
    // A terminal's signals are for the server, and our secrets are for nobody.
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    become_subreaper();
    let mut agent = Agent::new(socket).map_err(AgentError::Setup)?;
    let result = agent.serve();
    agent.close();
    result
}

struct Agent {
    server: OwnedFd,
    inbox: Inbox,
    epoll: OwnedFd,
    groups: Option<Groups>,
    keepers: HashMap<u64, Handle>,
    runs: HashMap<RunId, u64>,
    idle: Vec<u64>,
    forked: u64,
    greeted: bool,
}

/// The agent's side of one keeper.
struct Handle {
    pid: Pid,
    socket: OwnedFd,
    inbox: Inbox,
    group: Option<Group>,
    run: Option<RunId>,
    idle_since: Instant,
}

impl Agent {
    fn new(server: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        listen(&epoll, server.as_fd(), SERVER)?;
        Ok(Self {
            server,
            inbox: Inbox::default(),
            epoll,
            groups: Groups::create(),
            keepers: HashMap::new(),
            runs: HashMap::new(),
            idle: Vec::new(),
            forked: 0,
            greeted: false,
        })
    }

    fn serve(&mut self) -> Result<(), AgentError> {
        let mut ready = Vec::with_capacity(64);
        loop {
            ready.clear();
            let timer = self.idle_timer();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut ready),
                timer.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(AgentError::Setup(errno.into())),
            }
            for event in &ready {
                match event.data.u64() {
                    SERVER => {
                        if !self.hear_server()? {
                            return Ok(());
                        }
                    }
                    keeper => self.hear_keeper(keeper),
                }
            }
            self.let_go();
        }
    }

    /// Takes in what the server says. False when it has left.
    fn hear_server(&mut self) -> Result<bool, AgentError> {
        match self.inbox.fill(self.server.as_fd(), RecvFlags::DONTWAIT) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(true),
            Err(_) => return Ok(false),
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        while let Some((request, bytes)) = inbox.next::<Request>()? {
            self.obey(&request, bytes)?;
        }
        self.inbox = inbox;
        Ok(true)
    }

    fn obey(&mut self, request: &Request, bytes: &[u8]) -> Result<(), AgentError> {
        match request {
            Request::Hello { version: VERSION } => {
                self.greeted = true;
                let cgroup = self.groups.as_ref().map(|groups| groups.path().to_owned());
                self.tell(&Event::Hello { version: VERSION, cgroup });
                while self.idle.len() < SPARE {
                    let Ok(keeper) = self.fork_keeper() else {
                        break;
                    };
                    self.idle.push(keeper);
                }
            }
            Request::Hello { version } => return Err(AgentError::Version { theirs: *version }),
            _ if !self.greeted => return Err(AgentError::NoHello),
            Request::Spawn { run, .. } => self.hand_over(*run, bytes),
            Request::Signal { run, .. } | Request::Kill { run, .. } => {
                // A run that is not there has ended while the server spoke.
                if let Some(handle) = self.runs.get(run).and_then(|keeper| self.keepers.get(keeper))
                {
                    let _ = wire::send_all(handle.socket.as_fd(), bytes, &[]);
                }
            }
        }
        Ok(())
    }

    /// Gives a run to a keeper. One that does not take it was killed while idle: the next gets it.
    fn hand_over(&mut self, run: RunId, bytes: &[u8]) {
        loop {
            let keeper = match self.idle.pop().map_or_else(|| self.fork_keeper(), Ok) {
                Ok(keeper) => keeper,
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                    let failure = Failure { stage: Stage::Resources, errno };
                    return self.tell(&Event::Failed { run, failure });
                }
            };
            let Some(handle) = self.keepers.get_mut(&keeper) else {
                continue;
            };
            if wire::send_all(handle.socket.as_fd(), bytes, &[]).is_ok() {
                handle.run = Some(run);
                self.runs.insert(run, keeper);
                return;
            }
            self.bury(keeper);
        }
    }

    /// Passes on what a keeper tells.
    fn hear_keeper(&mut self, keeper: u64) {
        let Some(handle) = self.keepers.get_mut(&keeper) else {
            return;
        };
        match handle.inbox.fill(handle.socket.as_fd(), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => return,
            Ok(0) | Err(_) => return self.bury(keeper),
            Ok(_) => {}
        }
        loop {
            let Some(handle) = self.keepers.get_mut(&keeper) else {
                return;
            };
            let (event, bytes) = match handle.inbox.next::<Event>() {
                Ok(Some((event, bytes))) => (event, bytes.to_vec()),
                Ok(None) => return,
                Err(_) => return self.bury(keeper),
            };
            let fds = match event {
                Event::Started { fds, .. } => handle.inbox.take_fds(fds.into()).unwrap_or_default(),
                _ => Vec::new(),
            };
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            // A server that does not listen has left, which its own stream will tell.
            let _ = wire::send_all(self.server.as_fd(), &bytes, &fds);
            match event {
                Event::Failed { run, .. } | Event::Exited { run, gone: true, .. } => {
                    self.release(keeper, run);
                }
                Event::Gone { run, survivors } if survivors.is_empty() => {
                    self.release(keeper, run);
                }
                // It stays with its survivors, and ends when they do.
                Event::Gone { run, .. } => {
                    self.runs.remove(&run);
                }
                _ => {}
            }
        }
    }

    fn release(&mut self, keeper: u64, run: RunId) {
        self.runs.remove(&run);
        if let Some(handle) = self.keepers.get_mut(&keeper) {
            handle.run = None;
            handle.idle_since = Instant::now();
            self.idle.push(keeper);
        }
    }

    /// Sees to what a keeper that is gone left behind: its processes are ours now.
    fn bury(&mut self, keeper: u64) {
        let Some(handle) = self.keepers.remove(&keeper) else {
            return;
        };
        self.idle.retain(|idle| *idle != keeper);
        drop(handle.socket);
        let _ = rustix::process::kill_process(handle.pid, Signal::KILL);
        let _ = waitpid(Some(handle.pid), WaitOptions::empty());
        if let Some(group) = &handle.group {
            group.kill();
        }
        self.kill_orphans();
        if let Some(group) = handle.group {
            group.remove();
        }
        if let Some(run) = handle.run
            && self.runs.remove(&run).is_some()
        {
            self.tell(&Event::Lost { run });
        }
    }

    /// Kills every child that is no keeper, with all below it, until there is none.
    fn kill_orphans(&self) {
        let me = getpid().as_raw_nonzero().get();
        let until = Instant::now() + SWEEP_TIME;
        while Instant::now() < until {
            let keepers = || self.keepers.values().map(|handle| handle.pid.as_raw_nonzero().get());
            let orphans: Vec<_> = tree::children(me)
                .into_iter()
                .filter(|pid| !keepers().any(|k| k == *pid))
                .collect();
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                tree::signal(&[orphan], Signal::KILL);
                tree::signal(&tree::descendants(orphan), Signal::KILL);
                let _ = waitpid(Pid::from_raw(orphan), WaitOptions::NOHANG);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn fork_keeper(&mut self) -> io::Result<u64> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let group = self.groups.as_mut().and_then(Groups::add);
        // SAFETY: this process has one thread, so the child finds nothing half done. It never
        // returns into our code: it serves and leaves.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => live_as_keeper(theirs, group),
            pid => Pid::from_raw(pid).expect("a child's id is positive"),
        };
        self.forked += 1;
        let keeper = self.forked;
        listen(&self.epoll, ours.as_fd(), keeper)?;
        let handle = Handle {
            pid,
            socket: ours,
            inbox: Inbox::default(),
            group,
            run: None,
            idle_since: Instant::now(),
        };
        self.keepers.insert(keeper, handle);
        Ok(keeper)
    }

    fn idle_timer(&self) -> Option<Timespec> {
        let surplus = self.idle.len() > SPARE;
        surplus.then_some(Timespec { tv_sec: IDLE_TIME.as_secs() as i64, tv_nsec: 0 })
    }

    /// Lets go of spare keepers that had nothing to do for long. The longest idle come first.
    fn let_go(&mut self) {
        while self.idle.len() > SPARE {
            let keeper = self.idle[0];
            let waits = self.keepers.get(&keeper).map(|handle| handle.idle_since.elapsed());
            if waits.is_some_and(|waits| waits < IDLE_TIME) {
                return;
            }
            self.bury(keeper);
            self.idle.retain(|idle| *idle != keeper);
        }
    }

    fn tell(&self, event: &Event) {
        let mut bytes = Vec::new();
        if frame::encode(event, &mut bytes).is_ok() {
            // A server that does not listen has left, which its own stream will tell.
            let _ = wire::send_all(self.server.as_fd(), &bytes, &[]);
        }
    }

    /// Hangs up on all keepers and waits until they have ended their runs and themselves.
    fn close(mut self) {
        let handles: Vec<_> = self.keepers.drain().map(|(_, handle)| handle).collect();
        let (pids, groups): (Vec<_>, Vec<_>) =
            handles.into_iter().map(|handle| (handle.pid, handle.group)).unzip();
        for pid in pids {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
        self.kill_orphans();
        for group in groups.into_iter().flatten() {
            group.remove();
        }
    }
}

/// The rest of a forked process's life.
fn live_as_keeper(socket: OwnedFd, group: Option<Group>) -> ! {
    // Another keeper's socket held open here would hide from it that the agent is gone.
    close_all_but(&[
        socket.as_raw_fd(),
        group.as_ref().map_or(-1, |group| group.folder().as_raw_fd()),
    ]);
    become_subreaper();
    if let Ok(keeper) = Keeper::new(socket, group) {
        keeper.serve();
    }
    // SAFETY: leaves at once, without running the exit handlers of the process this was forked of.
    unsafe { libc::_exit(0) }
}

fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: the descriptors closed belong to values of the forked agent that nobody here
            // will ever use or drop.
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

fn become_subreaper() {
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

fn listen(epoll: &OwnedFd, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
    let data = epoll::EventData::new_u64(token);
    epoll::add(epoll, socket, data, epoll::EventFlags::IN)?;
    Ok(())
}
