//! What a keeper knows of its run, and how it ends it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Hangup;
use crate::cgroup::Group;
use crate::child::Launched;
use crate::frame::{Event, Exit, Request, Status};
use crate::look::{Question, Seen, Subject};
use crate::tally::Tally;
use crate::tree;
use crate::watch::Watch;

/// How long processes that outlive the first one may take to end by themselves before they are
/// reported: the far end of `>(cat)` needs a moment.
const LINGER: Duration = Duration::from_millis(40);

/// How long a program may run before the server hears that it does: most have ended by then, and all
/// there is to say of them is said in one go.
const BRIEF: Duration = Duration::from_millis(1);

/// How long the agent may take to end all runs of a server that is gone: there may be thousands.
const AGENT_TIME: Duration = Duration::from_secs(20);

/// How long SIGKILL is tried before what is left is reported as surviving.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Between two looks while killing: a process that forks must be looked at often. What does not end for a
/// while is looked at less: a look at all processes there are takes its time.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOK_LATER: Duration = Duration::from_millis(40);

/// How often what is in a run's folder is killed before all processes are looked at, for those that have
/// left it or are held where signals do not reach them.
const IN_FOLDER: u32 = 4;

/// How many children are collected before anything else is looked at.
const MOST_REAPED: usize = 1024;

/// Between two looks whether the agent is still there, with processes that do not end.
const LOOK_FOR_PARENT: Duration = Duration::from_secs(1);

/// How far ending the tree has come.
enum Ending {
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked { until: Instant },
    /// SIGKILL is sent again and again until this time; so often it was.
    Killing { until: Instant, rounds: u32 },
    /// SIGKILL did not do it. What is left was reported.
    GivenUp,
}

/// What a keeper knows of its run.
pub struct Minding {
    pid: i32,
    /// Until the server knows that it runs.
    launched: Option<Launched>,
    /// Its terminal, if it has one.
    terminal: Option<OwnedFd>,
    began: Instant,
    exit: Option<Ended>,
    reported: bool,
    /// What those have used that have ended.
    used: Tally,
    ending: Option<Ending>,
    pub watch: Watch,
    /// Whether no child waited to be collected at the last look.
    reaped_all: bool,
    /// How often it is still tried to make it the first to go.
    pub offers: u8,
    /// Since when the server is gone.
    pub left_since: Option<Instant>,
}

/// How the first process ended, and when.
#[derive(Clone, Copy)]
struct Ended {
    status: Status,
    at: Instant,
}

impl Minding {
    pub fn new(launched: Launched, began: Instant, watch: Watch) -> Self {
        let terminal = launched.ends.terminal().and_then(|terminal| terminal.try_clone().ok());
        let (pid, launched) = (launched.pid, Some(launched));
        let (exit, ending) = (None, None);
        Self {
            pid,
            launched,
            terminal,
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

    /// Whether SIGKILL did not do it.
    pub fn is_given_up(&self) -> bool {
        matches!(self.ending, Some(Ending::GivenUp))
    }

    /// Whether it is being ended by its keeper.
    pub fn is_being_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether it is for us to end it, as the agent has not.
    pub fn is_left_too_long(&self) -> bool {
        self.left_since.is_some_and(|since| since.elapsed() >= AGENT_TIME)
    }

    /// Whether all of it is to end, by us or by the agent.
    fn is_ending(&self) -> bool {
        self.ending.is_some() || self.left_since.is_some()
    }

    /// Whether it takes longer than most runs do.
    pub fn lasts(&self) -> bool {
        self.began.elapsed() >= BRIEF
    }

    /// Offers a run to the OOM killer once it has lasted a moment, unless that has been done.
    pub fn offer(&mut self) {
        if self.offers > 0 && self.exit.is_none() && self.lasts() {
            self.offers = if tree::offer_to_oom(self.pid) { 0 } else { self.offers - 1 };
        }
    }

    /// What was started, if it is time to say so.
    pub fn start_to_tell(&mut self) -> Option<Launched> {
        let over = self.exit.is_some() || self.is_ending();
        self.launched.take_if(|it| over || it.is_awaited() || self.began.elapsed() >= BRIEF)
    }

    /// What of the end was not told yet. A run that is being ended has ended when all of it has: until
    /// then nobody knows what it used.
    pub fn end_to_tell(&mut self, empty: bool, mut group: Option<&mut Group>) -> Option<Event> {
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
    pub fn end_at_last(&mut self, survivors: &[i32], group: Option<&mut Group>) -> Option<Event> {
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

    pub fn obey(&mut self, request: &Request, group: Option<&Group>) -> Result<(), Hangup> {
        match request {
            Request::Kill { grace } => self.end_within(*grace, group),
            Request::Signal(signal) if self.exit.is_none() => {
                // SAFETY: a plain system call. The first process was not reaped yet, so its id
                // still names it.
                unsafe { libc::kill(self.pid, *signal) };
            }
            Request::Signal(_) => {}
            // It is answered, not obeyed.
            Request::Look(_) => {}
            // Two runs at a time could not be told apart.
            Request::Spawn(_) => return Err(Hangup),
        }
        Ok(())
    }

    /// The answer to a question.
    pub fn look(&self, question: &Question) -> Seen {
        // Once it was reaped, its number may be another's.
        let first = self.exit.is_none().then_some(self.pid);
        let terminal = self.terminal.as_ref().map(AsFd::as_fd);
        Subject { first, terminal }.look(question)
    }

    /// Asks the tree to end. A stopped process is woken, or it could not hear.
    pub fn end_within(&mut self, grace: Duration, group: Option<&Group>) {
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
    pub fn end_now(&mut self, mut group: Option<&mut Group>) {
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
    pub fn advance(&mut self, group: Option<&mut Group>) -> bool {
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
    pub fn timer(&self) -> Option<Duration> {
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
    pub fn reap(&mut self) -> bool {
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

/// The processes to send SIGTERM to. One that has left the folder is found later, when it is killed.
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
