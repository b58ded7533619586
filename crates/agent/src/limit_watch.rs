//! Checks a run's limits that the kernel does not enforce for all of its processes together, and finds out which limit
//! ended it.
//!
//! A full count scans `/proc`, so there are few: of CPU time when it could be used up, and of processes when the
//! machine has so many more than before that the run could have too many. Version 1 cgroups count processes but do not
//! notify us.

use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};

use crate::cgroup::{CgroupLimits, KeeperCgroup};
use crate::frame::{Status, Usage};
use crate::limits::{Limit, Limits, Memory};
use crate::tree::{self, Load};
use crate::usage::cpu_of_ended_children;

/// The least time between two checks of CPU time.
const CPU_INTERVAL: Duration = Duration::from_millis(50);

/// The pause between two checks of the number of processes: twice the run's age, within these bounds. Checks are rare
/// where the kernel enforces the limit.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
const LONGEST_ENFORCED: Duration = Duration::from_secs(20);

/// How many checks all keepers of an agent make in a second, not counting those of young runs: about half a percent of
/// a processor. With 1,000 keepers, each of them checks a run that is not young every 20 seconds.
const CHECKS_PER_SECOND: u32 = 50;
const YOUNG_RUN: Duration = Duration::from_secs(1);

/// The pause between two full counts, which are made even if the machine's total does not grow. It doubles each time
/// within these bounds. It is longer if there are many processes to scan and many keepers that do, so that all of them
/// together use half a percent of a processor.
const FIRST_COUNT_PAUSE: Duration = Duration::from_secs(1);
const LAST_COUNT_PAUSE: Duration = Duration::from_secs(30);
const MAX_COUNT_PAUSE: Duration = Duration::from_secs(3600);
const COST_SHARE: u32 = 200;

/// About how long it takes to scan one process.
const COST_PER_PROCESS: Duration = Duration::from_micros(10);

/// A shell exits with this number plus that of the signal that ended its command.
const SHELL_SIGNAL_BASE: i32 = 128;

/// The limits of one run, and the one it has reached.
pub struct LimitWatch {
    limits: Limits,
    enforced: CgroupLimits,
    began: Instant,
    cpu: Option<CpuClock>,
    checks: Option<ProcessChecks>,
    reached: Option<Limit>,
}

/// Checks of CPU time.
struct CpuClock {
    most: Duration,
    /// What this process's earlier children had used when the run began.
    before: Duration,
    next: Instant,
}

/// Checks of the number of processes.
struct ProcessChecks {
    count: Option<ProcessCount>,
    next: Instant,
}

/// Counts processes where no cgroup does.
struct ProcessCount {
    /// The first process of the run.
    first: i32,
    most: u64,
    baseline: Baseline,
    /// When they were last counted in any case, and how long to wait until the next count. The machine's total alone is
    /// not enough: processes of others that end hide our own that start.
    counted: Instant,
    pause: Duration,
}

/// How many threads the run and the machine had, and how many keepers the agent had, at the last full count.
struct Baseline {
    threads: u64,
    machine: u16,
    keepers: u32,
}

impl LimitWatch {
    /// For a run that has just begun, of an agent with that many keepers.
    pub fn new(
        first: i32,
        limits: Limits,
        cgroup: Option<&KeeperCgroup>,
        began: Instant,
        keepers: u32,
    ) -> Self {
        let enforced = cgroup.map_or(CgroupLimits::default(), KeeperCgroup::enforced);
        let cpu = limits.cpu_time.map(|most| CpuClock {
            most,
            before: cpu_of_ended_children(),
            next: began + most / processors(),
        });
        let unnotified = limits.processes.filter(|_| !cgroup.is_some_and(KeeperCgroup::notifies));
        let checks = unnotified.map(|most| ProcessChecks {
            count: enforced
                .processes
                .is_none()
                .then(|| ProcessCount::new(first, most, began, keepers)),
            next: began + SHORTEST,
        });
        Self { limits, enforced, began, cpu, checks, reached: None }
    }

    /// How long to wait until the next check.
    pub fn timer(&self) -> Option<Duration> {
        if self.reached.is_some() {
            return None;
        }
        let time = self.cpu.as_ref().map(|clock| clock.next);
        let checks = self.checks.as_ref().map(|checks| checks.next);
        let next = time.into_iter().chain(checks).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Checks what is due, or everything the cgroup counts if `alarmed`. True if the run has just reached a limit.
    pub fn check(
        &mut self,
        alarmed: bool,
        cgroup: Option<&mut KeeperCgroup>,
        keepers: u32,
    ) -> bool {
        if self.reached.is_some() {
            return false;
        }
        let now = Instant::now();
        let due = self.checks.as_mut().filter(|checks| now >= checks.next);
        let (is_due, count) = match due {
            Some(checks) => {
                checks.next = now + pause(now - self.began, checks.count.is_none(), keepers);
                (true, checks.count.as_mut())
            }
            None => (false, None),
        };
        let counted = cgroup.and_then(|cgroup| match (alarmed, is_due) {
            (true, _) => cgroup.reached(),
            (false, true) => cgroup.reached_on_timer(),
            (false, false) => None,
        });
        let time = || self.cpu.as_mut().and_then(|clock| clock.check(now));
        self.reached =
            counted.or_else(time).or_else(|| count.and_then(|count| count.check(now, keepers)));
        self.reached.is_some()
    }

    /// The limit that the run has reached, as far as is known.
    pub fn reached(&self) -> Option<Limit> {
        self.reached
    }

    /// The same once the processes that the first one left behind have ended, too.
    pub fn reached_by_rest(&mut self, cgroup: Option<&mut KeeperCgroup>) -> Option<Limit> {
        self.reached = self.reached.or_else(|| cgroup.and_then(KeeperCgroup::reached));
        self.reached
    }

    /// The status of a run whose first process ended with this one. In version 1 the kernel kills one process for lack
    /// of memory and notifies the keeper, which kills the rest; whether a shell exits by itself before that is a matter
    /// of timing. Such a run always counts as killed, as it is in version 2, where `memory.oom.group` kills all of it.
    pub fn status(&self, status: Status) -> Status {
        let killed = match self.reached {
            Some(Limit::Memory(_)) => self.enforced.memory.is_some(),
            Some(Limit::SharedMemory) => true,
            _ => false,
        };
        if killed { Status::Signal(Signal::KILL.as_raw()) } else { status }
    }

    /// Notes how a process ended that the first one had left behind.
    pub fn note(&mut self, status: Status) {
        if matches!(status, Status::Signal(_)) && self.reached.is_none() {
            self.reached = self.limit_from_status(status, &Usage::default());
        }
    }

    /// The limit that ended the first process, or that the processes it left behind have reached.
    pub fn limit_at_exit(
        &mut self,
        status: Status,
        usage: &Usage,
        left: usize,
        cgroup: Option<&mut KeeperCgroup>,
    ) -> Option<Limit> {
        if self.reached.is_none() {
            let left = left as u64;
            // In a sandbox the kernel also counts the agent and the keepers, so a run reaches its limit earlier.
            let refused = status != Status::Code(0)
                && self.limits.own_namespace
                && self.enforced.processes.is_none();
            let many = |most: &u64| left > *most || refused && left >= most / 10 * 8;
            let many = self.limits.processes.filter(many);
            let counted = cgroup.and_then(|cgroup| match status {
                // A run can succeed although one of its processes was killed for lack of memory. Asking is nearly free.
                Status::Code(0) if left == 0 => cgroup.reached_if_notified(),
                Status::Code(0) => cgroup.reached(),
                _ => cgroup.reached_by_failed(),
            });
            let counted = counted.or(many.map(Limit::Processes));
            self.reached = counted.or_else(|| self.limit_from_status(status, usage));
        }
        self.reached
    }

    /// The limit that ended a process, if its status says so.
    fn limit_from_status(&self, status: Status, usage: &Usage) -> Option<Limit> {
        if status == Status::Code(0) {
            return None;
        }
        let ended_by = |signal: Signal| match status {
            Status::Signal(number) => number == signal.as_raw(),
            Status::Code(code) => code == SHELL_SIGNAL_BASE + signal.as_raw(),
        };
        let Limits { memory, file_size, cpu_time, .. } = self.limits;
        let file = file_size.filter(|_| ended_by(Signal::XFSZ));
        let time = cpu_time.filter(|most| ended_by(Signal::XCPU) || usage.cpu >= *most);
        // Without a cgroup, only the program itself learns that it got no memory.
        let memory = match memory {
            Memory::Bytes(most) if self.enforced.memory.is_none() => Some(most),
            _ => None,
        };
        let killed = ended_by(Signal::KILL) || ended_by(Signal::TERM);
        let memory = memory.filter(|most| !killed && usage.max_rss_bytes >= most / 10 * 9);
        let file = file.map(Limit::FileSize);
        file.or(time.map(Limit::CpuTime)).or(memory.map(Limit::Memory))
    }
}

impl CpuClock {
    fn check(&mut self, now: Instant) -> Option<Limit> {
        if now < self.next {
            return None;
        }
        let living = tree::load(getpid().as_raw_nonzero().get()).cpu;
        let used = (living + cpu_of_ended_children()).saturating_sub(self.before);
        let left = self.most.saturating_sub(used);
        self.next = now + (left / processors()).max(CPU_INTERVAL);
        left.is_zero().then_some(Limit::CpuTime(self.most))
    }
}

impl ProcessCount {
    fn new(first: i32, most: u64, began: Instant, keepers: u32) -> Self {
        let baseline = Baseline { threads: 1, machine: tree::machine_threads_low_bits(), keepers };
        Self { first, most, baseline, counted: began, pause: FIRST_COUNT_PAUSE }
    }

    fn check(&mut self, now: Instant, keepers: u32) -> Option<Limit> {
        let machine = tree::machine_threads_low_bits();
        let there = self.baseline.max_now(machine, keepers);
        let cost = COST_PER_PROCESS * u32::from(machine);
        let affordable =
            cost.saturating_mul(keepers.saturating_mul(COST_SHARE)).min(MAX_COUNT_PAUSE);
        let due = now >= self.counted + self.pause.max(affordable);
        if there <= self.most && !due {
            return None;
        }
        let over = tree::session_exceeds(self.most, self.first) || {
            let Load { threads, .. } = tree::load(getpid().as_raw_nonzero().get());
            self.baseline = Baseline { threads, machine, keepers };
            threads > self.most
        };
        if due {
            self.pause = (2 * self.pause).min(LAST_COUNT_PAUSE);
            self.counted = now;
        }
        over.then_some(Limit::Processes(self.most))
    }
}

impl Baseline {
    /// How many threads the run can have by now: as many more as the machine has, minus at least two for each new
    /// keeper, which has started a program.
    fn max_now(&self, machine: u16, keepers: u32) -> u64 {
        // The kernel reports only 16 bits.
        let more = machine.wrapping_sub(self.machine).cast_signed().max(0);
        let others = 2 * u64::from(keepers.saturating_sub(self.keepers));
        self.threads + u64::from(more.cast_unsigned()).saturating_sub(others)
    }
}

/// The pause until the next check of a run of this age, for one of that many keepers.
fn pause(age: Duration, enforced: bool, keepers: u32) -> Duration {
    let pause = (2 * age).clamp(SHORTEST, if enforced { LONGEST_ENFORCED } else { LONGEST });
    match age < YOUNG_RUN {
        true => pause,
        false => pause.max(Duration::from_secs(1) * keepers / CHECKS_PER_SECOND),
    }
}

/// How many processors this process may use.
fn processors() -> u32 {
    let all = std::thread::available_parallelism();
    all.map_or(1, |all| u32::try_from(all.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(limits: Limits) -> LimitWatch {
        LimitWatch::new(0, limits, None, Instant::now(), 1)
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
            assert_eq!(
                watch(limits).limit_at_exit(status, &usage, 0, None),
                expected,
                "{status:?}"
            );
            let mut unlimited = watch(Limits::default());
            assert_eq!(unlimited.limit_at_exit(status, &usage, 0, None), None, "{status:?}");
        }
    }

    #[test]
    fn a_run_that_the_kernel_took_a_process_from_was_killed() {
        let killed = Status::Signal(Signal::KILL.as_raw());
        let enforced = CgroupLimits { memory: Some(1000), processes: None };
        for (reached, enforced, expected) in [
            (Some(Limit::Memory(1000)), enforced, killed),
            (Some(Limit::SharedMemory), CgroupLimits::default(), killed),
            // A program that was refused memory ends as it likes.
            (Some(Limit::Memory(1000)), CgroupLimits::default(), Status::Code(1)),
            (Some(Limit::FileSize(5)), enforced, Status::Code(1)),
            (None, enforced, Status::Code(1)),
        ] {
            let watch = LimitWatch { enforced, reached, ..watch(Limits::default()) };
            assert_eq!(watch.status(Status::Code(1)), expected, "{reached:?}");
        }
    }

    #[test]
    fn a_run_that_ends_well_may_have_left_too_much() {
        let limits = Limits { processes: Some(3), ..Limits::default() };
        let verdict = |left| watch(limits).limit_at_exit(Status::Code(0), &used(0, 0), left, None);
        assert_eq!((verdict(3), verdict(4)), (None, Some(Limit::Processes(3))));
    }

    #[test]
    fn a_run_that_failed_in_a_sandbox_has_come_to_its_limit_with_a_few_less() {
        let limits = Limits { processes: Some(60), own_namespace: true, ..Limits::default() };
        let verdict = |status, left| watch(limits).limit_at_exit(status, &used(0, 0), left, None);
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
        let pauses =
            |enforced| [1, 100, 1000, 5000].map(|all| pause(5 * second, enforced, all).as_secs());
        assert_eq!(pauses(false), [1, 2, 20, 100]);
        assert_eq!(pauses(true), [10, 10, 20, 100]);
        assert_eq!(pause(second / 4, false, 5000), second / 2, "a bomb goes off at once");
    }

    #[test]
    fn what_others_have_begun_is_not_taken_for_processes_of_a_run() {
        let baseline = Baseline { threads: 5, machine: 65_530, keepers: 10 };
        assert_eq!(baseline.max_now(65_530, 10), 5);
        assert_eq!(baseline.max_now(4, 10), 15, "counted with 16 bits");
        assert_eq!(baseline.max_now(4, 12), 11);
        assert_eq!(baseline.max_now(4, 100), 5);
        assert_eq!(baseline.max_now(65_000, 1), 5, "others have ended");
    }

    #[test]
    fn too_many_processes_are_seen_and_a_few_are_not() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let now = Instant::now();
        let mut few = ProcessCount::new(0, 1_000_000, now, 1);
        assert_eq!(few.check(now, 1), None);
        let mut none = ProcessCount::new(0, 0, now, 1);
        assert_eq!(none.check(now, 1), Some(Limit::Processes(0)));
        // As if many others had ended since.
        let machine = tree::machine_threads_low_bits().wrapping_add(10_000);
        let baseline = Baseline { threads: 0, machine, keepers: 1 };
        let mut hidden = ProcessCount { baseline, ..ProcessCount::new(0, 0, now, 1) };
        assert_eq!(hidden.check(now, 1), None);
        assert_eq!(hidden.check(now + FIRST_COUNT_PAUSE, 1_000_000), None, "too many would look");
        assert_eq!(hidden.check(now + MAX_COUNT_PAUSE, 1), Some(Limit::Processes(0)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
