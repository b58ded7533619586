//! Sees whether a run keeps to its limits, where the kernel does not see to that for all of its
//! processes together.
//!
//! A full count is a walk through `/proc`, so there are few: of CPU time when it could be used up, of
//! processes when the machine has so many more that they could be too many. The folders of cgroup
//! version 1 count them, but tell nobody.

use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};

use crate::cgroup::{Bounds, Group};
use crate::frame::{Status, Usage};
use crate::limits::{Limit, Limits, Memory};
use crate::tree::{self, Load};

/// The least time between two looks at CPU time.
const CPU_LOOK: Duration = Duration::from_millis(50);

/// The pause between two looks at the number of processes: twice the run's age, within these bounds. Looks
/// are rare where the kernel enforces the limit.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
const LONGEST_HELD: Duration = Duration::from_secs(20);

/// How many looks all keepers of an agent take in a second, but for those at runs that have just begun:
/// about half a percent of a processor.
const LOOKS: u32 = 50;
const YOUNG: Duration = Duration::from_secs(1);

/// The pause between two full counts, which are made even if the machine's total does not grow. It doubles
/// each time within these bounds, and is longer where there are many processes to look at and many keepers
/// that do, so that all of them use half a percent of a processor for it.
const FIRST_COUNT: Duration = Duration::from_secs(1);
const LAST_COUNT: Duration = Duration::from_secs(30);
const LONGEST_COUNT: Duration = Duration::from_secs(3600);
const SHARE: u32 = 200;

/// About what it takes to look at a process.
const A_PROCESS: Duration = Duration::from_micros(10);

/// How a shell says that a signal ended what it ran.
const SHELL_SIGNAL: i32 = 128;

pub struct Watch {
    limits: Limits,
    held: Bounds,
    began: Instant,
    time: Option<Clock>,
    rounds: Option<Rounds>,
    reached: Option<Limit>,
}

/// A look at CPU time.
struct Clock {
    most: Duration,
    /// What the children of this process used that had ended before.
    before: Duration,
    next: Instant,
}

/// Looks at the number of processes.
struct Rounds {
    census: Option<Census>,
    next: Instant,
}

/// Where nobody else counts processes.
struct Census {
    /// The first process of the run.
    first: i32,
    most: u64,
    known: Known,
    /// When they were last counted in any case, as those of others that end hide our own that begin, and how
    /// long to wait until they are counted again.
    counted: Instant,
    pause: Duration,
}

/// How many threads a run had, and how many threads the machine and how many keepers the agent had then.
struct Known {
    threads: u64,
    machine: u16,
    keepers: u32,
}

impl Watch {
    /// Of a run that has begun beside that many keepers.
    pub fn new(
        first: i32,
        limits: Limits,
        group: Option<&Group>,
        began: Instant,
        keepers: u32,
    ) -> Self {
        let held = group.map_or(Bounds::default(), Group::held);
        let time = limits.cpu_time.map(|most| Clock {
            most,
            before: tree::used_by_ended(),
            next: began + most / processors(),
        });
        let untold = limits.processes.filter(|_| !group.is_some_and(Group::tells));
        let rounds = untold.map(|most| Rounds {
            census: held.processes.is_none().then(|| Census::new(first, most, began, keepers)),
            next: began + SHORTEST,
        });
        Self { limits, held, began, time, rounds, reached: None }
    }

    /// When to look again.
    pub fn timer(&self) -> Option<Duration> {
        if self.reached.is_some() {
            return None;
        }
        let time = self.time.as_ref().map(|clock| clock.next);
        let rounds = self.rounds.as_ref().map(|rounds| rounds.next);
        let next = time.into_iter().chain(rounds).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Looks, if it is time to or `alarmed`, as one of that many keepers. True when a limit turns out to be
    /// reached.
    pub fn look(&mut self, alarmed: bool, group: Option<&mut Group>, keepers: u32) -> bool {
        if self.reached.is_some() {
            return false;
        }
        let now = Instant::now();
        let due = self.rounds.as_mut().filter(|rounds| now >= rounds.next);
        let (round, census) = match due {
            Some(rounds) => {
                rounds.next = now + pause(now - self.began, rounds.census.is_none(), keepers);
                (true, rounds.census.as_mut())
            }
            None => (false, None),
        };
        let counted = group.and_then(|group| match (alarmed, round) {
            (true, _) => group.reached(),
            (false, true) => group.reached_silently(),
            (false, false) => None,
        });
        let time = || self.time.as_mut().and_then(|clock| clock.look(now));
        self.reached =
            counted.or_else(time).or_else(|| census.and_then(|census| census.look(now, keepers)));
        self.reached.is_some()
    }

    /// The limit that was reached, as far as that is known.
    pub fn reached(&self) -> Option<Limit> {
        self.reached
    }

    /// The same when those that the first process left have ended, too.
    pub fn reached_by_rest(&mut self, group: Option<&mut Group>) -> Option<Limit> {
        self.reached = self.reached.or_else(|| group.and_then(Group::reached));
        self.reached
    }

    /// How the run has ended whose first process ended like this. The kernel kills one process for want
    /// of memory; whether a shell still comes to say so, or goes on, is a matter of moments. A run that
    /// came to that limit was killed, each time.
    pub fn status(&self, status: Status) -> Status {
        let killed = match self.reached {
            Some(Limit::Memory(_)) => self.held.memory.is_some(),
            Some(Limit::SharedMemory) => true,
            _ => false,
        };
        if killed { Status::Signal(Signal::KILL.as_raw()) } else { status }
    }

    /// Notes how a process ended that was left alone.
    pub fn note(&mut self, status: Status) {
        if matches!(status, Status::Signal(_)) && self.reached.is_none() {
            self.reached = self.limit_behind(status, &Usage::default());
        }
    }

    /// The limit that ended the first process of a run, or that those it left have reached.
    pub fn verdict(
        &mut self,
        status: Status,
        usage: &Usage,
        left: usize,
        group: Option<&mut Group>,
    ) -> Option<Limit> {
        if self.reached.is_none() {
            let left = left as u64;
            // In a ring the kernel counts those that mind a run with it, and lets it make fewer.
            let refused = status != Status::Code(0)
                && self.limits.own_namespace
                && self.held.processes.is_none();
            let many = |most: &u64| left > *most || refused && left >= most / 10 * 8;
            let many = self.limits.processes.filter(many);
            let counted = group.and_then(|group| match status {
                // The one for which there was no memory may be one that nobody missed.
                Status::Code(0) if left == 0 => group.reached_loudly(),
                Status::Code(0) => group.reached(),
                _ => group.behind(),
            });
            let counted = counted.or(many.map(Limit::Processes));
            self.reached = counted.or_else(|| self.limit_behind(status, usage));
        }
        self.reached
    }

    /// The limit that a first process has ended at, if its status says so.
    fn limit_behind(&self, status: Status, usage: &Usage) -> Option<Limit> {
        if status == Status::Code(0) {
            return None;
        }
        let ended_by = |signal: Signal| match status {
            Status::Signal(number) => number == signal.as_raw(),
            Status::Code(code) => code == SHELL_SIGNAL + signal.as_raw(),
        };
        let Limits { memory, file_size, cpu_time, .. } = self.limits;
        let file = file_size.filter(|_| ended_by(Signal::XFSZ));
        let time = cpu_time.filter(|most| ended_by(Signal::XCPU) || usage.cpu >= *most);
        // Nobody but the program itself hears that there is no memory for it.
        let memory = match memory {
            Memory::Bytes(most) if self.held.memory.is_none() => Some(most),
            _ => None,
        };
        let killed = ended_by(Signal::KILL) || ended_by(Signal::TERM);
        let memory = memory.filter(|most| !killed && usage.max_rss_bytes >= most / 10 * 9);
        let file = file.map(Limit::FileSize);
        file.or(time.map(Limit::CpuTime)).or(memory.map(Limit::Memory))
    }
}

impl Clock {
    fn look(&mut self, now: Instant) -> Option<Limit> {
        if now < self.next {
            return None;
        }
        let living = tree::load(getpid().as_raw_nonzero().get()).cpu;
        let used = (living + tree::used_by_ended()).saturating_sub(self.before);
        let left = self.most.saturating_sub(used);
        self.next = now + (left / processors()).max(CPU_LOOK);
        left.is_zero().then_some(Limit::CpuTime(self.most))
    }
}

impl Census {
    fn new(first: i32, most: u64, began: Instant, keepers: u32) -> Self {
        let known = Known { threads: 1, machine: tree::thread_counter(), keepers };
        Self { first, most, known, counted: began, pause: FIRST_COUNT }
    }

    fn look(&mut self, now: Instant, keepers: u32) -> Option<Limit> {
        let machine = tree::thread_counter();
        let there = self.known.most_by_now(machine, keepers);
        let cost = A_PROCESS * u32::from(machine);
        let affordable = cost.saturating_mul(keepers.saturating_mul(SHARE)).min(LONGEST_COUNT);
        let due = now >= self.counted + self.pause.max(affordable);
        if there <= self.most && !due {
            return None;
        }
        let over = tree::has_more_than(self.most, self.first) || {
            let Load { threads, .. } = tree::load(getpid().as_raw_nonzero().get());
            self.known = Known { threads, machine, keepers };
            threads > self.most
        };
        if due {
            self.pause = (2 * self.pause).min(LAST_COUNT);
            self.counted = now;
        }
        over.then_some(Limit::Processes(self.most))
    }
}

impl Known {
    /// How many threads the run can have by now: as many more as the machine has, but for other keepers and
    /// what they have started at least.
    fn most_by_now(&self, machine: u16, keepers: u32) -> u64 {
        // The kernel tells no more than 16 bits.
        let more = machine.wrapping_sub(self.machine).cast_signed().max(0);
        let others = 2 * u64::from(keepers.saturating_sub(self.keepers));
        self.threads + u64::from(more.cast_unsigned()).saturating_sub(others)
    }
}

/// How long one of that many keepers leaves a run alone.
fn pause(age: Duration, held: bool, keepers: u32) -> Duration {
    let pause = (2 * age).clamp(SHORTEST, if held { LONGEST_HELD } else { LONGEST });
    match age < YOUNG {
        true => pause,
        false => pause.max(Duration::from_secs(1) * keepers / LOOKS),
    }
}

/// How many processors can be busy at a time.
fn processors() -> u32 {
    let all = std::thread::available_parallelism();
    all.map_or(1, |all| u32::try_from(all.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(limits: Limits) -> Watch {
        Watch::new(0, limits, None, Instant::now(), 1)
    }

    fn used(cpu: u64, max_rss_bytes: u64) -> Usage {
        Usage { cpu: Duration::from_secs(cpu), max_rss_bytes, ..Usage::default() }
    }

    #[test]
    fn how_a_run_ended_says_which_limit_it_came_to() {
        let second = Duration::from_secs(1);
        let limits = Limits {
            memory: Memory::Bytes(1000),
            file_size: Some(5),
            cpu_time: Some(second),
            ..Limits::default()
        };
        let (xcpu, xfsz) = (Signal::XCPU.as_raw(), Signal::XFSZ.as_raw());
        for (status, usage, expected) in [
            (Status::Signal(xcpu), used(0, 0), Some(Limit::CpuTime(second))),
            (Status::Code(128 + xcpu), used(0, 0), Some(Limit::CpuTime(second))),
            (Status::Signal(9), used(1, 0), Some(Limit::CpuTime(second))),
            (Status::Signal(xfsz), used(0, 0), Some(Limit::FileSize(5))),
            (Status::Code(128 + xfsz), used(0, 0), Some(Limit::FileSize(5))),
            (Status::Code(1), used(0, 950), Some(Limit::Memory(1000))),
            (Status::Code(1), used(0, 800), None),
            (Status::Signal(9), used(0, 999), None),
            (Status::Code(0), used(9, 999), None),
        ] {
            assert_eq!(watch(limits).verdict(status, &usage, 0, None), expected, "{status:?}");
            let mut unlimited = watch(Limits::default());
            assert_eq!(unlimited.verdict(status, &usage, 0, None), None, "{status:?}");
        }
    }

    #[test]
    fn a_run_that_the_kernel_took_a_process_from_was_killed() {
        let killed = Status::Signal(Signal::KILL.as_raw());
        let held = Bounds { memory: Some(1000), processes: None };
        for (reached, held, expected) in [
            (Some(Limit::Memory(1000)), held, killed),
            (Some(Limit::SharedMemory), Bounds::default(), killed),
            // A program that was refused memory ends as it likes.
            (Some(Limit::Memory(1000)), Bounds::default(), Status::Code(1)),
            (Some(Limit::FileSize(5)), held, Status::Code(1)),
            (None, held, Status::Code(1)),
        ] {
            let watch = Watch { held, reached, ..watch(Limits::default()) };
            assert_eq!(watch.status(Status::Code(1)), expected, "{reached:?}");
        }
    }

    #[test]
    fn a_run_that_ends_well_may_have_left_too_much() {
        let limits = Limits { processes: Some(3), ..Limits::default() };
        let verdict = |left| watch(limits).verdict(Status::Code(0), &used(0, 0), left, None);
        assert_eq!((verdict(3), verdict(4)), (None, Some(Limit::Processes(3))));
    }

    #[test]
    fn a_run_that_failed_in_a_ring_has_come_to_its_limit_with_a_few_less() {
        let limits = Limits { processes: Some(60), own_namespace: true, ..Limits::default() };
        let verdict = |status, left| watch(limits).verdict(status, &used(0, 0), left, None);
        let limit = Some(Limit::Processes(60));
        assert_eq!((verdict(Status::Code(1), 54), verdict(Status::Code(1), 40)), (limit, None));
        assert_eq!(verdict(Status::Code(0), 54), None);
    }

    #[test]
    fn nothing_is_looked_at_where_there_is_no_limit() {
        assert!(watch(Limits::default()).timer().is_some());
        let limits = Limits { processes: None, ..Limits::default() };
        assert!(watch(limits).timer().is_none());
    }

    #[test]
    fn the_more_keepers_there_are_the_more_rarely_each_looks() {
        let second = Duration::from_secs(1);
        let pauses = |held| [1, 100, 1000, 5000].map(|all| pause(5 * second, held, all).as_secs());
        assert_eq!(pauses(false), [1, 2, 20, 100]);
        assert_eq!(pauses(true), [10, 10, 20, 100]);
        assert_eq!(pause(second / 4, false, 5000), second / 2, "a bomb goes off at once");
    }

    #[test]
    fn what_others_have_begun_is_not_taken_for_processes_of_a_run() {
        let known = Known { threads: 5, machine: 65_530, keepers: 10 };
        assert_eq!(known.most_by_now(65_530, 10), 5);
        assert_eq!(known.most_by_now(4, 10), 15, "counted with 16 bits");
        assert_eq!(known.most_by_now(4, 12), 11);
        assert_eq!(known.most_by_now(4, 100), 5);
        assert_eq!(known.most_by_now(65_000, 1), 5, "others have ended");
    }

    #[test]
    fn too_many_processes_are_seen_and_a_few_are_not() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let now = Instant::now();
        let mut few = Census::new(0, 1_000_000, now, 1);
        assert_eq!(few.look(now, 1), None);
        let mut none = Census::new(0, 0, now, 1);
        assert_eq!(none.look(now, 1), Some(Limit::Processes(0)));
        // As if many others had ended since.
        let machine = tree::thread_counter().wrapping_add(10_000);
        let known = Known { threads: 0, machine, keepers: 1 };
        let mut hidden = Census { known, ..Census::new(0, 0, now, 1) };
        assert_eq!(hidden.look(now, 1), None);
        assert_eq!(hidden.look(now + FIRST_COUNT, 1_000_000), None, "too many would look");
        assert_eq!(hidden.look(now + LONGEST_COUNT, 1), Some(Limit::Processes(0)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
