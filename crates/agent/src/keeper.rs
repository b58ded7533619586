//! The keeper: a process that supervises one run at a time.
//!
//! A keeper is a child subreaper: every process of its run, however often it forks or starts sessions of its own,
//! becomes a child of the keeper when its parent ends. So "no child left" means "nothing of the run is left", and
//! the keeper can start the next one, which saves forking a keeper for each run. A keeper stays with the processes that
//! its run left behind.
//!
//!     idle ── Spawn ──▶ running ── first process ended ──▶ left-overs ── none left ──▶ idle
//!                          └── Kill ──▶ SIGTERM ── grace ──▶ SIGKILL …
//!
//! If the stream ends without a `Kill`, the server is gone, and the agent ends all runs. A keeper whose agent is gone,
//! or does nothing, ends its run itself.

mod run;

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mcpz_sandbox::Restrictions;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::beneath::{BeneathError, open_beneath};
use crate::cgroup::KeeperCgroup;
use crate::exec_lock::{Asks, ChosenProgram, ExecLock, FirstProcess, NotChosen};
use crate::frame::{Directory, Failure, KeeperEvent, KeeperRequest, Program, Spawn, Stage, Stdin};
use crate::git_configs::SharedConfig;
use crate::keeper_count::KeeperCount;
use crate::launcher::{ChildCgroup, Launched, Launcher, resources};
use crate::limit_watch::LimitWatch;
use crate::limits::Limits;
use crate::signals::{self, Waited, Woken};
use crate::socket::{self, Inbox};
use crate::tree;
use run::Run;

/// Between two checks whether the agent is still alive.
const AGENT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Between two looks whether the run is to end, while a decision takes long.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long a run may take to end before it is killed, when no server is left to say.
pub const ORPHAN_GRACE: Duration = Duration::from_millis(200);

/// How often to try, a moment apart, to raise a run's OOM score. Only root can raise that of a program that changes
/// its user.
const OOM_SCORE_TRIES: u8 = 5;

pub struct Keeper {
    agent: Option<Pid>,
    socket: OwnedFd,
    inbox: Inbox,
    launcher: Launcher,
    limits: Limits,
    cgroup: Option<KeeperCgroup>,
    keeper_count: KeeperCount,
    /// Installed for the first run that may not execute everything, or that may change a shared configuration.
    exec_lock: Option<ExecLock>,
    /// Configurations of git to share, until the lock has them.
    configs: Vec<SharedConfig>,
}

/// How commands are confined.
pub struct Confined {
    pub restrictions: Restrictions,
    /// Configurations of git that commands may change in harmless ways.
    pub configs: Vec<SharedConfig>,
}

/// The server hung up or sent garbage: the keeper ends.
pub struct Hangup;

impl Keeper {
    pub fn new(
        socket: OwnedFd,
        limits: Limits,
        cgroup: Option<KeeperCgroup>,
        confined: Option<Confined>,
        keeper_count: KeeperCount,
    ) -> std::io::Result<Self> {
        signals::resume_when_parent_dies();
        let (agent, inbox, mut cgroup) = (getppid(), Inbox::default(), cgroup);
        cgroup.iter_mut().for_each(KeeperCgroup::enter);
        let (restrictions, configs) = match confined {
            Some(Confined { restrictions, configs }) => (Some(restrictions), configs),
            None => (None, Vec::new()),
        };
        let launcher = Launcher::new(&limits, restrictions)?;
        let exec_lock = None;
        Ok(Self {
            agent,
            socket,
            inbox,
            launcher,
            limits,
            cgroup,
            keeper_count,
            exec_lock,
            configs,
        })
    }

    fn is_orphan(&self) -> bool {
        getppid() != self.agent
    }

    /// Supervises one run after the other until the server hangs up.
    pub fn serve(mut self) {
        while let Ok(spawn) = self.next_spawn() {
            if self.supervise(spawn).is_err() {
                return;
            }
        }
    }

    fn next_spawn(&mut self) -> Result<Spawn, Hangup> {
        loop {
            match self.next_request()? {
                Some(KeeperRequest::Spawn(spawn)) => {
                    let inbox = &mut self.inbox;
                    inbox.shrink();
                    match spawn.join_directory(|| inbox.take_fds(1)?.pop()) {
                        Some(spawn) => return Ok(spawn),
                        // The kernel drops descriptors that do not fit into this process's table.
                        None => self.send(&[KeeperEvent::Failed(resources(Errno::MFILE))], &[])?,
                    }
                }
                // A request about a run that has ended meanwhile.
                Some(_) => {}
                None => {
                    self.launcher.prepare();
                    self.exec_lock.iter_mut().for_each(ExecLock::look_ahead);
                    self.receive(RecvFlags::empty())?;
                }
            }
        }
    }

    /// Supervises one run, from its start until nothing of it is left.
    fn supervise(&mut self, mut spawn: Spawn) -> Result<(), Hangup> {
        let began = Instant::now();
        let is_locked = spawn.exec_rules.is_some();
        let ready = open_directory(&mut spawn)
            .and_then(|()| self.install_lock(&spawn))
            .and_then(|()| self.prepare_lock(&mut spawn));
        let chosen = match ready {
            Ok(chosen) => chosen,
            Err(failure) => return self.send(&[KeeperEvent::Failed(failure)], &[]),
        };
        self.cgroup.iter_mut().for_each(KeeperCgroup::rejoin_memory);
        let cgroup = self.cgroup.as_ref();
        let child_cgroup = ChildCgroup {
            folder: cgroup.and_then(KeeperCgroup::folder),
            counts_memory: cgroup.is_some_and(|cgroup| cgroup.enforced().memory.is_some()),
        };
        let token = self.exec_lock.as_ref().map_or(0, ExecLock::token);
        let file = chosen.as_ref().map(|chosen| &*chosen.file);
        let launched = match self.launcher.launch(&spawn, file, child_cgroup, token) {
            Ok(launched) => launched,
            Err(failure) => return self.send(&[KeeperEvent::Failed(failure)], &[]),
        };
        if let Some(lock) = self.exec_lock.as_mut().filter(|_| is_locked) {
            let Launched { pid, environment, .. } = &launched;
            let words = spawn.program.words();
            let is_ours =
                matches!(spawn.program, Program::Script { .. }) || spawn.stdin == Stdin::Orders;
            let (chosen, is_session) = (chosen.as_ref(), spawn.stdin == Stdin::Orders);
            let pid = *pid;
            lock.begin(&FirstProcess { pid, words, is_ours, is_session, environment, chosen });
        }
        // Closes the run's directory, which the keeper must not keep open.
        drop(spawn);
        let limits = LimitWatch::new(
            launched.pid,
            self.limits,
            self.cgroup.as_ref(),
            began,
            self.keeper_count.get(),
        );
        let mut run = Run::new(launched, began, limits);
        run.oom_score_tries = if self.launcher.sets_oom_score() { 0 } else { OOM_SCORE_TRIES };
        let mut hung_up = false;
        loop {
            if hung_up && (self.is_orphan() || run.agent_is_late()) {
                self.raise_cpu_weight();
                run.terminate(ORPHAN_GRACE, self.cgroup.as_ref());
            }
            run.raise_oom_score();
            if run.is_long() {
                self.cgroup.iter_mut().for_each(KeeperCgroup::leave_memory);
            }
            let empty = run.reap();
            if self.report(&mut run, empty).is_err() {
                hung_up = true;
            }
            if hung_up {
                run.server_gone_since.get_or_insert_with(Instant::now);
            }
            if empty {
                self.exec_lock.iter_mut().for_each(ExecLock::end);
                self.cgroup = self.cgroup.take().and_then(KeeperCgroup::renew);
                return if hung_up { Err(Hangup) } else { Ok(()) };
            }
            if run.advance_termination(self.cgroup.as_mut()) {
                // The server does not use this keeper again; it stays with the survivors until they end.
                let survivors = tree::children(std::process::id() as i32);
                let exited = run.end_with_survivors(&survivors, self.cgroup.as_mut());
                let gone = KeeperEvent::Gone { survivors, limit: run.limits.reached() };
                let _ = self.send(&exited.into_iter().chain([gone]).collect::<Vec<_>>(), &[]);
                hung_up = true;
            }
            if hung_up {
                if run.is_given_up() && self.is_orphan() {
                    return Err(Hangup);
                }
                if let Some(agent) = self.agent.filter(|_| !self.is_orphan()) {
                    // Something may have stopped it.
                    let _ = kill_process(agent, Signal::CONT);
                }
                let again =
                    run.timer().map_or(AGENT_CHECK_INTERVAL, |it| it.min(AGENT_CHECK_INTERVAL));
                let execs = self.exec_lock.as_ref().map(AsFd::as_fd);
                let waited = Waited { execs, timer: Some(again), ..Waited::default() };
                self.answer_execs(signals::wait(&waited));
                continue;
            }
            self.exec_lock.iter_mut().for_each(ExecLock::settle);
            let woken;
            (woken, hung_up) = self.wait(&mut run);
            while !hung_up {
                match self.next_request() {
                    Ok(Some(KeeperRequest::Ask(question))) => {
                        let answer = run.answer(&question, self.exec_lock.as_mut());
                        let answer = KeeperEvent::Answered(answer);
                        hung_up = self.send(&[answer], &[]).is_err();
                    }
                    Ok(Some(request)) => {
                        if matches!(request, KeeperRequest::Kill { .. }) {
                            self.raise_cpu_weight();
                        }
                        hung_up = run.handle(&request, self.cgroup.as_ref()).is_err();
                    }
                    Ok(None) => break,
                    Err(Hangup) => hung_up = true,
                }
            }
            self.answer_execs(woken);
        }
    }

    /// Makes the kernel ask before programs are executed or files are renamed, if this run needs that and no earlier
    /// one did.
    fn install_lock(&mut self, spawn: &Spawn) -> Result<(), Failure> {
        let failed = |errno: i32| Failure { stage: Stage::Confinement, errno };
        let asks = Asks { execs: spawn.exec_rules.is_some(), renames: !self.configs.is_empty() };
        match &self.exec_lock {
            // A process has one listener at most.
            Some(lock) if asks.execs && !lock.asks_about_execs() => Err(failed(libc::EBUSY)),
            None if asks.execs || asks.renames => {
                let configs = std::mem::take(&mut self.configs);
                let installed = ExecLock::install(asks, configs);
                match installed {
                    Ok(lock) => self.exec_lock = Some(lock),
                    // Without it, no configuration can be changed, which is safe.
                    Err(_) if !asks.execs => {}
                    Err(error) => return Err(failed(error.raw_os_error().unwrap_or(libc::EIO))),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Gets the lock ready for a run. Chooses the program of one without a shell, about which the kernel does not ask.
    fn prepare_lock(&mut self, spawn: &mut Spawn) -> Result<Option<ChosenProgram>, Failure> {
        let (Some(lock), Some(rules)) = (&mut self.exec_lock, spawn.exec_rules.take()) else {
            return Ok(None);
        };
        let garbled = |_| Failure { stage: Stage::Confinement, errno: libc::EPROTO };
        let holds = lock.prepare(&rules, self.launcher.path(spawn)).map_err(garbled)?;
        let Program::Argv(words) = &spawn.program else { return Ok(None) };
        // The shell of a session was chosen by the server.
        if spawn.stdin == Stdin::Orders || !holds {
            return Ok(None);
        }
        let opened = match &spawn.directory {
            Directory::Path(path) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let opened = rustix::fs::open(path, flags, Mode::empty());
                let failed =
                    |errno: Errno| Failure { stage: Stage::Directory, errno: errno.raw_os_error() };
                Some(opened.map_err(failed)?)
            }
            Directory::Own | Directory::Handle(_) | Directory::Beneath { .. } => None,
        };
        let directory = match &spawn.directory {
            Directory::Handle(handle) => Some(handle.as_fd()),
            _ => opened.as_ref().map(AsFd::as_fd),
        };
        let files = self.launcher.files(spawn)?;
        let chosen = lock.choose_first(words, (directory, files));
        chosen.map(Some).map_err(|why| match why {
            NotChosen::Denied => Failure { stage: Stage::Denied, errno: libc::EACCES },
            NotChosen::NotFound(errno) => Failure { stage: Stage::Program, errno },
        })
    }

    fn answer_execs(&mut self, woken: Woken) {
        let Some(lock) = self.exec_lock.as_mut().filter(|_| woken.exec) else { return };
        let (began, looked, over) = (Instant::now(), Cell::new(Duration::ZERO), Cell::new(false));
        let inbox = RefCell::new(&mut self.inbox);
        // Most answers take no time. What arrives meanwhile is handled after this one.
        let is_over = || {
            let passed = began.elapsed();
            if passed - looked.get() >= LOOK_INTERVAL && !over.get() {
                looked.set(passed);
                let mut inbox = inbox.borrow_mut();
                let _ = inbox.fill(self.socket.as_fd(), RecvFlags::DONTWAIT);
                let ends = |request: &KeeperRequest| matches!(request, KeeperRequest::Kill { .. });
                over.set(inbox.any(ends));
            }
            over.get()
        };
        lock.answer_next(&is_over);
    }

    fn raise_cpu_weight(&self) {
        self.cgroup.as_ref().inspect(|cgroup| cgroup.raise_cpu_weight());
    }

    /// Sends the events that were not sent yet.
    fn report(&mut self, run: &mut Run, empty: bool) -> Result<(), Hangup> {
        let launched = run.unreported_start();
        let started = launched.as_ref().map(Launched::event);
        let mut ended = run.unreported_end(empty, self.cgroup.as_mut());
        if let (Some(KeeperEvent::Exited { exit, .. }), Some(lock)) =
            (&mut ended, &mut self.exec_lock)
        {
            exit.refused = lock.take_refused();
        }
        let events: Vec<_> = started.into_iter().chain(ended).collect();
        let pipes: Vec<_> = launched.iter().flat_map(Launched::fds).collect();
        self.send(&events, &pipes)
    }

    fn send(&self, events: &[KeeperEvent], fds: &[BorrowedFd<'_>]) -> Result<(), Hangup> {
        socket::send_all(self.socket.as_fd(), events, fds).map_err(|_| Hangup)
    }

    fn next_request(&mut self) -> Result<Option<KeeperRequest>, Hangup> {
        self.inbox.next().map_err(|_| Hangup)
    }

    /// Waits for the server, the end of a child, an alarm or the timer, and receives what the server sent. Kills a
    /// run that has reached a limit. The second result is whether the server hung up.
    fn wait(&mut self, run: &mut Run) -> (Woken, bool) {
        let alarms = match run.is_being_terminated() {
            false => self.cgroup.as_ref().map_or([None; 2], KeeperCgroup::alarms),
            true => [None; 2],
        };
        let socket = Some(self.socket.as_fd());
        let execs = self.exec_lock.as_ref().map(AsFd::as_fd);
        // A message may have come during a long decision.
        let has_message = self.inbox.any(|_: &KeeperRequest| true);
        let timer = if has_message { Some(Duration::ZERO) } else { run.timer() };
        let woken = signals::wait(&Waited { socket, alarms, execs, timer });
        if run.limits.check(woken.alarm, self.cgroup.as_mut(), self.keeper_count.get()) {
            run.kill_now(self.cgroup.as_mut());
        }
        (woken, woken.socket && self.receive(RecvFlags::DONTWAIT).is_err())
    }

    fn receive(&mut self, flags: RecvFlags) -> Result<(), Hangup> {
        match self.inbox.fill(self.socket.as_fd(), flags) {
            Ok(0) => Err(Hangup),
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(_) => Err(Hangup),
        }
    }
}

/// Opens the directory of a run, if that is to be beneath others.
fn open_directory(spawn: &mut Spawn) -> Result<(), Failure> {
    let Directory::Beneath { roots, path } = &spawn.directory else { return Ok(()) };
    let failed = |stage, errno| Failure { stage, errno };
    let opened = open_beneath(roots, path).map_err(|error| {
        let (BeneathError::NoOpenat2(source) | BeneathError::Failed(source)) = error;
        failed(Stage::Directory, source.raw_os_error().unwrap_or(libc::EIO))
    })?;
    let handle = opened.ok_or(failed(Stage::Outside, libc::EACCES))?;
    spawn.directory = Directory::Handle(handle);
    Ok(())
}
