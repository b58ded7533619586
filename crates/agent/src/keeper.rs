//! The process that minds one run at a time.
//!
//! A keeper is a child subreaper: whatever its run starts, and however often that forks and starts
//! sessions of its own, comes back to the keeper as a child when its parent ends. So "no child left"
//! means "nothing of the run is left", and the keeper can be used for the next one.
//!
//!     idle ── Spawn ──▶ running ── first process ended ──▶ left-overs ── none left ──▶ idle
//!                          └── Kill ──▶ SIGTERM ── grace ──▶ SIGKILL …
//!
//! A stream that ends without a `Kill` means that the server is gone. The agent then ends all runs with
//! one look at the processes there are; if each keeper looked for its own, that would take a time that
//! grows with the square of their number. A keeper without an agent, or with one that does nothing, sees
//! to its run by itself.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mcpz_sandbox::Seal;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::cgroup::Group;
use crate::child::{Launched, Launcher, Place, resources};
use crate::frame::{Event, Exit, Request, Spawn, Status};
use crate::limits::Limits;
use crate::signals::{self, Woken};
use crate::tally::Tally;
use crate::tree;
use crate::watch::Watch;
use crate::wire::{self, Inbox};

/// How long processes that outlive the first one may take to end by themselves before they are
/// reported: the far end of `>(cat)` needs a moment.
const LINGER: Duration = Duration::from_millis(40);

/// How long a program may run before the server hears that it does: most have ended by then, and all
/// there is to say of them is said in one go.
const BRIEF: Duration = Duration::from_millis(1);

/// How long the agent may take to end all runs of a server that is gone: there may be thousands.
const AGENT_TIME: Duration = Duration::from_secs(20);

/// Between two looks whether the agent is still there to do so.
const LOOK_FOR_AGENT: Duration = Duration::from_millis(200);

/// What the tree is given when nobody is left to say how long.
pub const ORPHAN_GRACE: Duration = Duration::from_millis(200);

/// How long SIGKILL is tried before what is left is reported as surviving.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Between two looks while killing: a process that forks must be looked at often. What does not end for a
/// while is looked at less: a look at all processes there are takes its time.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOK_LATER: Duration = Duration::from_millis(40);

/// How often what is in a run's folder is killed before all processes are looked at, for those that have
/// left it or are held where signals do not reach them.
const IN_FOLDER: u32 = 4;

/// How often it is tried, a moment apart, to make a run the first to go. Of programs that change who
/// they are, only root can.
const OFFERS: u8 = 5;

/// How many children are collected before anything else is looked at.
const MOST_REAPED: usize = 1024;

/// Between two looks whether the agent is still there, with processes that do not end.
const LOOK_FOR_PARENT: Duration = Duration::from_secs(1);

pub struct Keeper {
    agent: Option<Pid>,
    socket: OwnedFd,
    inbox: Inbox,
    launcher: Launcher,
    limits: Limits,
    group: Option<Group>,
}

/// The server hung up, or spoke garbage: the keeper ends.
struct Hangup;

/// How far ending the tree has come.
enum Ending {
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked { until: Instant },
    /// SIGKILL is sent again and again until this time; so often it was.
    Killing { until: Instant, rounds: u32 },
    /// SIGKILL did not do it. What is left was reported.
    GivenUp,
}

impl Keeper {
    pub fn new(
        socket: OwnedFd,
        limits: Limits,
        group: Option<Group>,
        seal: Option<Seal>,
    ) -> std::io::Result<Self> {
        let (agent, inbox, mut group) = (getppid(), Inbox::default(), group);
        group.iter_mut().for_each(Group::enter);
        Ok(Self { agent, socket, inbox, launcher: Launcher::new(&limits, seal)?, limits, group })
    }

    fn is_orphan(&self) -> bool {
        getppid() != self.agent
    }

    /// Minds one run after the other until the server hangs up.
    pub fn serve(mut self) {
        while let Ok(spawn) = self.next_spawn() {
            if self.mind(spawn).is_err() {
                return;
            }
        }
    }

    fn next_spawn(&mut self) -> Result<Spawn, Hangup> {
        loop {
            match self.next_request()? {
                Some(Request::Spawn(spawn)) => {
                    let inbox = &mut self.inbox;
                    inbox.shrink();
                    match spawn.unpack(|| inbox.take_fds(1)?.pop()) {
                        Some(spawn) => return Ok(spawn),
                        // The kernel drops descriptors for which this process has no room.
                        None => self.tell(&[Event::Failed(resources(Errno::MFILE))], &[])?,
                    }
                }
                // About a run that has ended meanwhile.
                Some(_) => {}
                None => {
                    self.launcher.prepare();
                    self.receive(RecvFlags::empty())?;
                }
            }
        }
    }

    /// One run, from its start until nothing of it is left.
    fn mind(&mut self, spawn: Spawn) -> Result<(), Hangup> {
        let began = Instant::now();
        let group = self.group.as_ref();
        let place = Place {
            cgroup: group.and_then(Group::folder),
            counts_memory: group.is_some_and(|group| group.held().memory.is_some()),
        };
        let launched = self.launcher.launch(&spawn, place);
        // Its directory is not ours to hold on to.
        drop(spawn);
        let launched = match launched {
            Ok(launched) => launched,
            Err(failure) => return self.tell(&[Event::Failed(failure)], &[]),
        };
        let watch = Watch::new(launched.pid, self.limits, self.group.as_ref(), began);
        let mut minding = Minding::new(launched, began, watch);
        minding.offers = if self.launcher.exposes() { 0 } else { OFFERS };
        let mut hung_up = false;
        loop {
            if hung_up && (self.is_orphan() || minding.is_left_too_long()) {
                self.hurry();
                minding.end_within(ORPHAN_GRACE, self.group.as_ref());
            }
            minding.offer();
            let empty = minding.reap();
            if self.report(&mut minding, empty).is_err() {
                hung_up = true;
            }
            if hung_up {
                minding.left_since.get_or_insert_with(Instant::now);
            }
            if empty {
                self.group = self.group.take().and_then(Group::renew);
                return if hung_up { Err(Hangup) } else { Ok(()) };
            }
            if minding.advance(self.group.as_mut()) {
                // The server will not use us again: we stay with them until they end.
                let survivors = tree::children(std::process::id() as i32);
                let exited = minding.end_at_last(&survivors, self.group.as_mut());
                let gone = Event::Gone { survivors, limit: minding.watch.reached() };
                let _ = self.tell(&exited.into_iter().chain([gone]).collect::<Vec<_>>(), &[]);
                hung_up = true;
            }
            if hung_up {
                if matches!(minding.ending, Some(Ending::GivenUp)) && self.is_orphan() {
                    return Err(Hangup);
                }
                if let Some(agent) = self.agent.filter(|_| !self.is_orphan()) {
                    // Somebody may have stopped it.
                    let _ = kill_process(agent, Signal::CONT);
                }
                let again = minding.timer().map_or(LOOK_FOR_AGENT, |it| it.min(LOOK_FOR_AGENT));
                signals::wait(None, [None; 2], Some(again));
                continue;
            }
            hung_up = self.wait(&mut minding).is_err();
            while !hung_up {
                match self.next_request() {
                    Ok(Some(request)) => {
                        if matches!(request, Request::Kill { .. }) {
                            self.hurry();
                        }
                        hung_up = minding.obey(&request, self.group.as_ref()).is_err();
                    }
                    Ok(None) => break,
                    Err(Hangup) => hung_up = true,
                }
            }
        }
    }

    fn hurry(&self) {
        self.group.as_ref().inspect(|group| group.hurry());
    }

    /// Tells what there is to tell and was not told yet.
    fn report(&mut self, minding: &mut Minding, empty: bool) -> Result<(), Hangup> {
        let launched = minding.start_to_tell();
        let started = launched.as_ref().map(Launched::event);
        let events: Vec<_> =
            started.into_iter().chain(minding.end_to_tell(empty, self.group.as_mut())).collect();
        let pipes: Vec<_> = launched.iter().flat_map(Launched::all).collect();
        self.tell(&events, &pipes)
    }

    fn tell(&self, events: &[Event], fds: &[BorrowedFd<'_>]) -> Result<(), Hangup> {
        wire::tell(self.socket.as_fd(), events, fds).map_err(|_| Hangup)
    }

    fn next_request(&mut self) -> Result<Option<Request>, Hangup> {
        self.inbox.next().map_err(|_| Hangup)
    }

    /// Waits for the server's word, the end of a child, an alarm or the timer, whichever comes first,
    /// and takes in what the server said. A run that has come to a limit is ended.
    fn wait(&mut self, minding: &mut Minding) -> Result<(), Hangup> {
        let alarms = match minding.ending {
            None => self.group.as_ref().map_or([None; 2], Group::alarms),
            Some(_) => [None; 2],
        };
        let Woken { socket, alarm } =
            signals::wait(Some(self.socket.as_fd()), alarms, minding.timer());
        if minding.watch.look(alarm, self.group.as_mut()) {
            minding.end_now(self.group.as_mut());
        }
        match socket {
            true => self.receive(RecvFlags::DONTWAIT),
            false => Ok(()),
        }
    }

    fn receive(&mut self, flags: RecvFlags) -> Result<(), Hangup> {
        match self.inbox.fill(self.socket.as_fd(), flags) {
            Ok(0) => Err(Hangup),
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(_) => Err(Hangup),
        }
    }
}

/// What a keeper knows of its run.
struct Minding {
    pid: i32,
    /// Until the server knows that it runs.
    launched: Option<Launched>,
    began: Instant,
    exit: Option<Ended>,
    reported: bool,
    /// What those have used that have ended.
    used: Tally,
    ending: Option<Ending>,
    watch: Watch,
    /// Whether no child waited to be collected at the last look.
    reaped_all: bool,
    /// How often it is still tried to make it the first to go.
    offers: u8,
    /// Since when the server is gone.
    left_since: Option<Instant>,
}

/// How the first process ended, and when.
#[derive(Clone, Copy)]
struct Ended {
    status: Status,
    at: Instant,
}

impl Minding {
    fn new(launched: Launched, began: Instant, watch: Watch) -> Self {
        let (pid, launched) = (launched.pid, Some(launched));
        let (exit, ending) = (None, None);
        Self {
            pid,
            launched,
            began,
            exit,
            reported: false,
            used: Tally::default(),
            ending,
            watch,
            reaped_all: true,
            offers: 0,
            left_since: None,
        }
    }

    /// Whether it is for us to end it, as the agent has not.
    fn is_left_too_long(&self) -> bool {
        self.left_since.is_some_and(|since| since.elapsed() >= AGENT_TIME)
    }

    /// Whether all of it is to end, by us or by the agent.
    fn is_ending(&self) -> bool {
        self.ending.is_some() || self.left_since.is_some()
    }

    /// Makes a run that takes a while the first to go when there is no memory left, if it is not yet.
    fn offer(&mut self) {
        if self.offers > 0 && self.exit.is_none() && self.began.elapsed() >= BRIEF {
            self.offers = if tree::offer_to_oom(self.pid) { 0 } else { self.offers - 1 };
        }
    }

    /// What was started, if it is time to say so.
    fn start_to_tell(&mut self) -> Option<Launched> {
        let over = self.exit.is_some() || self.is_ending();
        self.launched.take_if(|it| over || it.is_awaited() || self.began.elapsed() >= BRIEF)
    }

    /// What of the end was not told yet. A run that is being ended has ended when all of it has: until
    /// then nobody knows what it used.
    fn end_to_tell(&mut self, empty: bool, mut group: Option<&mut Group>) -> Option<Event> {
        let Some(ended) = self.exit.filter(|_| !self.reported) else {
            let over = empty && !matches!(self.ending, Some(Ending::GivenUp));
            let limit = || self.watch.reached_by_rest(group);
            return over.then(|| Event::Gone { survivors: Vec::new(), limit: limit() });
        };
        if !empty && (self.is_ending() || ended.at.elapsed() < LINGER) {
            return None;
        }
        let (left, used) = match empty {
            true => (Vec::new(), self.used),
            false => self.used.with_living(),
        };
        let exit = self.exit(ended, left, used, group.as_deref_mut());
        if exit.limit.is_some() && !empty {
            self.end_now(group);
            return None;
        }
        self.reported = true;
        Some(Event::Exited { exit, gone: empty })
    }

    /// The same when some of it cannot be ended.
    fn end_at_last(&mut self, survivors: &[i32], group: Option<&mut Group>) -> Option<Event> {
        let ended = self.exit.filter(|_| !self.reported)?;
        let (_, used) = self.used.with_living();
        let exit = self.exit(ended, survivors.to_vec(), used, group);
        self.reported = true;
        Some(Event::Exited { exit, gone: false })
    }

    fn exit(
        &mut self,
        ended: Ended,
        left: Vec<i32>,
        used: Tally,
        group: Option<&mut Group>,
    ) -> Exit {
        let usage = used.usage(ended.at - self.began);
        let limit = self.watch.verdict(ended.status, &usage, left.len(), group);
        Exit { status: self.watch.status(ended.status), usage, left, limit }
    }

    fn obey(&mut self, request: &Request, group: Option<&Group>) -> Result<(), Hangup> {
        match request {
            Request::Kill { grace } => self.end_within(*grace, group),
            Request::Signal(signal) if self.exit.is_none() => {
                // SAFETY: a plain system call. The first process was not reaped yet, so its id
                // still names it.
                unsafe { libc::kill(self.pid, *signal) };
            }
            Request::Signal(_) => {}
            // Two runs at a time could not be told apart.
            Request::Spawn(_) => return Err(Hangup),
        }
        Ok(())
    }

    /// Asks the tree to end. A stopped process is woken, or it could not hear.
    fn end_within(&mut self, grace: Duration, group: Option<&Group>) {
        let until = Instant::now() + grace;
        match &mut self.ending {
            None => {
                let tree = below(group);
                tree::signal(&tree, Signal::TERM);
                tree::signal(&tree, Signal::CONT);
                self.ending = Some(Ending::Asked { until });
            }
            Some(Ending::Asked { until: before }) => *before = until.min(*before),
            Some(Ending::Killing { .. } | Ending::GivenUp) => {}
        }
    }

    /// Ends the tree without asking: it has come to a limit.
    fn end_now(&mut self, mut group: Option<&mut Group>) {
        group.iter_mut().for_each(|group| group.step_out());
        // While a program forks as fast as it can, looking at all of it takes long. Meanwhile a shell
        // could go on after what the kernel killed for want of memory.
        match self.exit {
            None => tree::kill_own_group(self.pid),
            Some(_) => tree::kill_group(self.pid),
        }
        kill_tree(group, 0);
        self.ending = Some(Ending::Killing { until: Instant::now() + KILL_TIME, rounds: 1 });
    }

    /// Goes on with ending the tree, if it is time. True when it is given up now.
    fn advance(&mut self, group: Option<&mut Group>) -> bool {
        let now = Instant::now();
        match self.ending {
            Some(Ending::Asked { until }) if now >= until => {
                self.ending = Some(Ending::Killing { until: now + KILL_TIME, rounds: 1 });
                kill_tree(group, 0);
                false
            }
            Some(Ending::Killing { until, .. }) if now >= until => {
                self.ending = Some(Ending::GivenUp);
                true
            }
            Some(Ending::Killing { until, rounds }) => {
                self.ending = Some(Ending::Killing { until, rounds: rounds + 1 });
                kill_tree(group, rounds);
                false
            }
            _ => false,
        }
    }

    /// When to look again although nothing happened.
    fn timer(&self) -> Option<Duration> {
        if !self.reaped_all {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let own = match (&self.ending, &self.exit) {
            (Some(Ending::Asked { until }), _) => Some(until.saturating_duration_since(now)),
            (Some(Ending::Killing { rounds, .. }), _) => {
                Some((LOOK_AGAIN * (rounds / IN_FOLDER).max(1)).min(LOOK_LATER))
            }
            (None, Some(ended)) if !self.reported && !self.is_ending() => {
                Some((ended.at + LINGER).saturating_duration_since(now))
            }
            (Some(Ending::GivenUp), _) => Some(LOOK_FOR_PARENT),
            (None, None) if self.launched.is_some() => {
                Some((self.began + BRIEF).saturating_duration_since(now))
            }
            _ => None,
        };
        let watched = self.watch.timer().filter(|_| !self.is_ending());
        let offering = (self.offers > 0 && self.exit.is_none()).then_some(BRIEF);
        own.into_iter().chain(watched).chain(offering).min()
    }

    /// Collects children that have ended, as many as there is time for: they can come faster than
    /// they are collected. True when none is left.
    fn reap(&mut self) -> bool {
        self.reaped_all = false;
        for _ in 0..MOST_REAPED {
            let mut status = 0;
            // SAFETY: all zeroes is a valid `rusage`.
            let mut used: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live values of the right type.
            let reaped = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut used) };
            match reaped {
                0 => {
                    self.reaped_all = true;
                    return false;
                }
                // No children: the only way this can fail.
                -1 => return true,
                pid if pid == self.pid && self.exit.is_none() => {
                    let (status, at) = (decode_status(status), Instant::now());
                    self.exit = Some(Ended { status, at });
                }
                // What the first process left behind.
                _ if self.exit.is_some() => self.watch.note(decode_status(status)),
                _ => {}
            }
            self.used.add(&used);
        }
        false
    }
}

/// Kills all there is now; what is being forked meanwhile is met at the next look.
fn kill_tree(group: Option<&mut Group>, rounds: u32) {
    let members = match group {
        Some(group) => {
            group.kill();
            group.members()
        }
        None => Vec::new(),
    };
    match !members.is_empty() && rounds % IN_FOLDER != IN_FOLDER - 1 {
        true => tree::signal(&members, Signal::KILL),
        false => tree::kill_descendants(std::process::id() as i32),
    }
}

/// What is to hear that it should end. Whoever has left the folder is met when it is killed.
fn below(group: Option<&Group>) -> Vec<i32> {
    let members = group.map(Group::members).filter(|members| !members.is_empty());
    members.unwrap_or_else(|| tree::descendants(std::process::id() as i32))
}

fn decode_status(status: i32) -> Status {
    match libc::WIFSIGNALED(status) {
        true => Status::Signal(libc::WTERMSIG(status)),
        false => Status::Code(libc::WEXITSTATUS(status)),
    }
}
