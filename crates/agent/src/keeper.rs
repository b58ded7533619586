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

mod minding;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mcpz_sandbox::Restrictions;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::cgroup::Group;
use crate::child::{Launched, Launcher, Place, resources};
use crate::crowd::Crowd;
use crate::frame::{Event, Request, Spawn};
use crate::limits::Limits;
use crate::signals::{self, Woken};
use crate::tree;
use crate::watch::Watch;
use crate::wire::{self, Inbox};
use minding::Minding;

/// Between two looks whether the agent is still there to do so.
const LOOK_FOR_AGENT: Duration = Duration::from_millis(200);

/// What the tree is given when nobody is left to say how long.
pub const ORPHAN_GRACE: Duration = Duration::from_millis(200);

/// How often it is tried, a moment apart, to make a run the first to go. Of programs that change who
/// they are, only root can.
const OFFERS: u8 = 5;

pub struct Keeper {
    agent: Option<Pid>,
    socket: OwnedFd,
    inbox: Inbox,
    launcher: Launcher,
    limits: Limits,
    group: Option<Group>,
    crowd: Crowd,
}

/// The server hung up, or spoke garbage: the keeper ends.
pub struct Hangup;

impl Keeper {
    pub fn new(
        socket: OwnedFd,
        limits: Limits,
        group: Option<Group>,
        restrictions: Option<Restrictions>,
        crowd: Crowd,
    ) -> std::io::Result<Self> {
        signals::wake_when_parent_ends();
        let (agent, inbox, mut group) = (getppid(), Inbox::default(), group);
        group.iter_mut().for_each(Group::enter);
        let launcher = Launcher::new(&limits, restrictions)?;
        Ok(Self { agent, socket, inbox, launcher, limits, group, crowd })
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
        self.group.iter_mut().for_each(Group::step_in);
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
        let watch =
            Watch::new(launched.pid, self.limits, self.group.as_ref(), began, self.crowd.size());
        let mut minding = Minding::new(launched, began, watch);
        minding.offers = if self.launcher.exposes() { 0 } else { OFFERS };
        let mut hung_up = false;
        loop {
            if hung_up && (self.is_orphan() || minding.is_left_too_long()) {
                self.hurry();
                minding.end_within(ORPHAN_GRACE, self.group.as_ref());
            }
            minding.offer();
            if minding.lasts() {
                self.group.iter_mut().for_each(Group::step_out);
            }
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
                if minding.is_given_up() && self.is_orphan() {
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
                    Ok(Some(Request::Look(question))) => {
                        let seen = Event::Seen(minding.look(&question));
                        hung_up = self.tell(&[seen], &[]).is_err();
                    }
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
        let alarms = match minding.is_being_ended() {
            false => self.group.as_ref().map_or([None; 2], Group::alarms),
            true => [None; 2],
        };
        let Woken { socket, alarm } =
            signals::wait(Some(self.socket.as_fd()), alarms, minding.timer());
        if minding.watch.look(alarm, self.group.as_mut(), self.crowd.size()) {
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
