//! One run, as its keeper sees it: what has been reported of it, and how it is ended.
//!
//!     running ── terminate ──▶ Asked ── grace ──▶ Killing ── KILL_TIME ──▶ GivenUp

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Hangup;
use crate::cgroup::KeeperCgroup;
use crate::exec_lock::ExecLock;
use crate::frame::{Exit, KeeperEvent, KeeperRequest, Status};
use crate::inspect::{Answer, Question, Subject};
use crate::launcher::Launched;
use crate::limit_watch::LimitWatch;
use crate::oom_score::raise_score_of;
use crate::tree;
use crate::usage::UsageTotal;

/// How long processes that outlive the first one may take to end by themselves before they are reported: the far
/// end of `>(cat)` needs a moment.
const LINGER: Duration = Duration::from_millis(40);

/// How long a program runs before the keeper reports that it started. Most have ended by then, and all their events
/// are sent at once.
const BRIEF: Duration = Duration::from_millis(1);

/// How long the agent may take to end all runs of a server that is gone. There may be thousands.
const AGENT_KILL_TIME: Duration = Duration::from_secs(20);

/// How long to send SIGKILL before the remaining processes are reported as survivors.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Between two scans while killing. A program that forks must be scanned often; one that does not end for a while
/// is scanned less often, because a scan of all processes is slow.
const SCAN_INTERVAL: Duration = Duration::from_millis(5);
const MAX_SCAN_INTERVAL: Duration = Duration::from_millis(40);

/// How many rounds kill what is in the run's cgroup before one scans all processes, for those that have left the
/// cgroup or are frozen. Scans are rare because a hundred keepers that scan at once slow each other down.
const CGROUP_ROUNDS: u32 = 4;

/// How many children to reap before doing anything else.
const MAX_REAPED: usize = 1024;

/// Between two checks whether the agent is still alive, while there are processes that do not end.
const PARENT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How far the termination of the process tree has come.
enum Termination {
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked { kill_at: Instant },
    /// SIGKILL is sent repeatedly until this time; `rounds` counts how often it was.
    Killing { until: Instant, rounds: u32 },
    /// SIGKILL did not end everything, and the survivors were reported.
    GivenUp,
}

/// A run and all processes it has started.
pub struct Run {
    pid: i32,
    /// Until the start is reported.
    launched: Option<Launched>,
    /// Its terminal, if it has one.
    terminal: Option<OwnedFd>,
    /// The inode of the pipe that is its stdin, if it is one.
    input_pipe: Option<u64>,
    began: Instant,
    exit: Option<FirstExit>,
    reported: bool,
    /// What its ended processes have used.
    used: UsageTotal,
    termination: Option<Termination>,
    pub limits: LimitWatch,
    /// Whether the last `reap` left no ended child behind.
    reaped_all: bool,
    /// How many more attempts to raise its OOM score.
    pub oom_score_tries: u8,
    /// When the server hung up.
    pub server_gone_since: Option<Instant>,
}

/// How the first process ended, and when.
#[derive(Clone, Copy)]
struct FirstExit {
    status: Status,
    at: Instant,
}

impl Run {
    pub fn new(launched: Launched, began: Instant, limits: LimitWatch) -> Self {
        let terminal = launched.stdio.terminal().and_then(|terminal| terminal.try_clone().ok());
        let input_pipe = launched.stdio.input_pipe();
        let (pid, launched) = (launched.pid, Some(launched));
        let (exit, termination) = (None, None);
        Self {
            pid,
            launched,
            terminal,
            input_pipe,
            began,
            exit,
            reported: false,
            used: UsageTotal::default(),
            termination,
            limits,
            reaped_all: true,
            oom_score_tries: 0,
            server_gone_since: None,
        }
    }

    /// Whether SIGKILL did not end everything.
    pub fn is_given_up(&self) -> bool {
        matches!(self.termination, Some(Termination::GivenUp))
    }

    /// Whether the keeper is ending it.
    pub fn is_being_terminated(&self) -> bool {
        self.termination.is_some()
    }

    /// Whether the keeper must end it, because the agent has not.
    pub fn agent_is_late(&self) -> bool {
        self.server_gone_since.is_some_and(|since| since.elapsed() >= AGENT_KILL_TIME)
    }

    /// Whether the whole tree is to end, by the keeper or by the agent.
    fn is_ending(&self) -> bool {
        self.termination.is_some() || self.server_gone_since.is_some()
    }

    /// Whether it lasts longer than most runs do.
    pub fn is_long(&self) -> bool {
        self.began.elapsed() >= BRIEF
    }

    /// Makes the run the OOM killer's first choice once it has lasted a moment, unless that is done.
    pub fn raise_oom_score(&mut self) {
        if self.oom_score_tries > 0 && self.exit.is_none() && self.is_long() {
            self.oom_score_tries =
                if raise_score_of(self.pid) { 0 } else { self.oom_score_tries - 1 };
        }
    }

    /// The start, if it is time to report it.
    pub fn unreported_start(&mut self) -> Option<Launched> {
        let over = self.exit.is_some() || self.is_ending();
        self.launched.take_if(|it| over || it.needs_input() || self.began.elapsed() >= BRIEF)
    }

    /// The end, if it is time to report it. A run that is being ended is reported when all of it has ended, because
    /// only then is its usage known.
    pub fn unreported_end(
        &mut self,
        empty: bool,
        mut cgroup: Option<&mut KeeperCgroup>,
    ) -> Option<KeeperEvent> {
        let Some(ended) = self.exit.filter(|_| !self.reported) else {
            let over = empty && !matches!(self.termination, Some(Termination::GivenUp));
            let limit = || self.limits.reached_by_rest(cgroup);
            return over.then(|| KeeperEvent::Gone { survivors: Vec::new(), limit: limit() });
        };
        if !empty && (self.is_ending() || ended.at.elapsed() < LINGER) {
            return None;
        }
        let (left, used) = match empty {
            true => (Vec::new(), self.used),
            false => self.used.with_living(),
        };
        let exit = self.exit(ended, left, used, cgroup.as_deref_mut());
        if exit.limit.is_some() && !empty {
            self.kill_now(cgroup);
            return None;
        }
        self.reported = true;
        Some(KeeperEvent::Exited { exit, gone: empty })
    }

    /// The end of a run of which some processes cannot be ended.
    pub fn end_with_survivors(
        &mut self,
        survivors: &[i32],
        cgroup: Option<&mut KeeperCgroup>,
    ) -> Option<KeeperEvent> {
        let ended = self.exit.filter(|_| !self.reported)?;
        let (_, used) = self.used.with_living();
        let exit = self.exit(ended, survivors.to_vec(), used, cgroup);
        self.reported = true;
        Some(KeeperEvent::Exited { exit, gone: false })
    }

    fn exit(
        &mut self,
        ended: FirstExit,
        left: Vec<i32>,
        used: UsageTotal,
        cgroup: Option<&mut KeeperCgroup>,
    ) -> Exit {
        let usage = used.usage(ended.at - self.began);
        let limit = self.limits.limit_at_exit(ended.status, &usage, left.len(), cgroup);
        let status = self.limits.status(ended.status);
        Exit { status, usage, left, limit, refused: Vec::new() }
    }

    pub fn handle(
        &mut self,
        request: &KeeperRequest,
        cgroup: Option<&KeeperCgroup>,
    ) -> Result<(), Hangup> {
        match request {
            KeeperRequest::Kill { grace } => self.terminate(*grace, cgroup),
            KeeperRequest::Signal(signal) if self.exit.is_none() => {
                // SAFETY: a plain system call. The first process was not reaped yet, so its id
                // still names it.
                unsafe { libc::kill(self.pid, *signal) };
            }
            KeeperRequest::Signal(_) => {}
            // The keeper answers it.
            KeeperRequest::Ask(_) => {}
            // Two runs at a time could not be told apart.
            KeeperRequest::Spawn(_) => return Err(Hangup),
        }
        Ok(())
    }

    /// The answer to a question.
    pub fn answer(&self, question: &Question, exec_lock: Option<&mut ExecLock>) -> Answer {
        // Once it was reaped, another process may have its id.
        let first = self.exit.is_none().then_some(self.pid);
        let terminal = self.terminal.as_ref().map(AsFd::as_fd);
        Subject { first, terminal, input_pipe: self.input_pipe, exec_lock }.answer(question)
    }

    /// Sends SIGTERM to the tree. Resumes stopped processes, which would not handle it otherwise.
    pub fn terminate(&mut self, grace: Duration, cgroup: Option<&KeeperCgroup>) {
        let kill_at = Instant::now() + grace;
        match &mut self.termination {
            None => {
                let tree = below(cgroup);
                tree::signal(&tree, Signal::TERM);
                tree::signal(&tree, Signal::CONT);
                self.termination = Some(Termination::Asked { kill_at });
            }
            Some(Termination::Asked { kill_at: before }) => *before = kill_at.min(*before),
            Some(Termination::Killing { .. } | Termination::GivenUp) => {}
        }
    }

    /// Kills the tree at once, because it has reached a limit.
    pub fn kill_now(&mut self, mut cgroup: Option<&mut KeeperCgroup>) {
        cgroup.iter_mut().for_each(|cgroup| cgroup.leave_memory());
        // The process group first: scanning a program that forks as fast as it can takes long, and meanwhile a
        // shell could continue after its child was killed for lack of memory.
        match self.exit {
            None => tree::kill_own_group(self.pid),
            Some(_) => tree::kill_group(self.pid),
        }
        kill_tree(cgroup, 0);
        self.termination =
            Some(Termination::Killing { until: Instant::now() + KILL_TIME, rounds: 1 });
    }

    /// Takes the next step of the termination, if it is time. True when it gives up now.
    pub fn advance_termination(&mut self, cgroup: Option<&mut KeeperCgroup>) -> bool {
        let now = Instant::now();
        match self.termination {
            Some(Termination::Asked { kill_at }) if now >= kill_at => {
                self.termination = Some(Termination::Killing { until: now + KILL_TIME, rounds: 1 });
                kill_tree(cgroup, 0);
                false
            }
            Some(Termination::Killing { until, .. }) if now >= until => {
                self.termination = Some(Termination::GivenUp);
                true
            }
            Some(Termination::Killing { until, rounds }) => {
                self.termination = Some(Termination::Killing { until, rounds: rounds + 1 });
                kill_tree(cgroup, rounds);
                false
            }
            _ => false,
        }
    }

    /// How long to wait if nothing happens.
    pub fn timer(&self) -> Option<Duration> {
        if !self.reaped_all {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let own = match (&self.termination, &self.exit) {
            (Some(Termination::Asked { kill_at }), _) => {
                Some(kill_at.saturating_duration_since(now))
            }
            (Some(Termination::Killing { rounds, .. }), _) => {
                Some((SCAN_INTERVAL * (rounds / CGROUP_ROUNDS).max(1)).min(MAX_SCAN_INTERVAL))
            }
            (None, Some(ended)) if !self.reported && !self.is_ending() => {
                Some((ended.at + LINGER).saturating_duration_since(now))
            }
            (Some(Termination::GivenUp), _) => Some(PARENT_CHECK_INTERVAL),
            (None, None) if self.launched.is_some() => {
                Some((self.began + BRIEF).saturating_duration_since(now))
            }
            _ => None,
        };
        let limits = self.limits.timer().filter(|_| !self.is_ending());
        let oom_score = (self.oom_score_tries > 0 && self.exit.is_none()).then_some(BRIEF);
        own.into_iter().chain(limits).chain(oom_score).min()
    }

    /// Reaps children that have ended, up to a limit, because they can end faster than they are reaped. True when no
    /// child is left.
    pub fn reap(&mut self) -> bool {
        self.reaped_all = false;
        for _ in 0..MAX_REAPED {
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
                // No children: this call cannot fail in another way.
                -1 => return true,
                pid if pid == self.pid && self.exit.is_none() => {
                    let (status, at) = (decode_status(status), Instant::now());
                    self.exit = Some(FirstExit { status, at });
                }
                // A process that the first one left behind.
                _ if self.exit.is_some() => self.limits.note(decode_status(status)),
                _ => {}
            }
            self.used.add(&used);
        }
        false
    }
}

/// Kills all processes that exist now. The next round meets those that are being forked meanwhile.
fn kill_tree(cgroup: Option<&mut KeeperCgroup>, rounds: u32) {
    let pids = match cgroup {
        Some(cgroup) => {
            cgroup.kill();
            cgroup.pids()
        }
        None => Vec::new(),
    };
    match !pids.is_empty() && rounds % CGROUP_ROUNDS != CGROUP_ROUNDS - 1 {
        true => tree::signal(&pids, Signal::KILL),
        false => tree::kill_descendants(std::process::id() as i32),
    }
}

/// The processes to send SIGTERM to. Those that have left the cgroup, or are missed because others start or end, are
/// found later, by the rounds of SIGKILL.
fn below(cgroup: Option<&KeeperCgroup>) -> Vec<i32> {
    let pids = cgroup.map(KeeperCgroup::pids).filter(|pids| !pids.is_empty());
    let walked = || tree::scan_children(std::process::id() as i32);
    pids.unwrap_or_else(|| walked().iter().map(|process| process.pid).collect())
}

fn decode_status(status: i32) -> Status {
    match libc::WIFSIGNALED(status) {
        true => Status::Signal(libc::WTERMSIG(status)),
        false => Status::Code(libc::WEXITSTATUS(status)),
    }
}
