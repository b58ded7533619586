//! What a run may use at most, and how a limit that it reached is described.
//!
//! The server sends the limits once, in its greeting, and they hold for every run. What the kernel can enforce is left
//! to the kernel. The keeper checks the rest (`limit_watch.rs`), and ends the run as a whole. In namespaces made by
//! bubblewrap no run has a cgroup of its own, but one limits the whole sandbox (`cgroup/sandbox.rs`).
//!
//!     limit             with a cgroup (v1: version 1)                 without
//!     ────────────────  ────────────────────────────────────────────  ───────────────────────────────────────────
//!     memory            `memory.max`, `memory.oom.group`;             `RLIMIT_DATA`, if the user has set a limit
//!                       v1: `memory.limit_in_bytes`, an eventfd
//!     processes         `pids.max`; `pids.events` wakes the keeper;   the keeper counts them when the machine has
//!                       v1: the keeper reads it now and then          many more than before; `RLIMIT_NPROC` in a
//!                                                                     user namespace of our own
//!     CPU time          `RLIMIT_CPU` for each process; the keeper     the same
//!                       adds all up when the time could be over
//!     CPU of an owner   over HTTP, an equal share: `cpu.weight`;      what the scheduler gives
//!                       v1: `cpu.shares`
//!     files             `RLIMIT_FSIZE`, `RLIMIT_NOFILE`               the same
//!
//! Recorders of detached jobs may be older than the server that reads what they sent: add variants of [`Limit`] at
//! the end.

use std::fmt;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit};
use serde::{Deserialize, Serialize};

/// What a run may use. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory: Memory,
    /// Processes and threads at the same time.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// The soft limit of open files, which a process may raise; by default the keeper's own.
    pub open_files_soft: Option<u64>,
    /// The longest file, in bytes.
    pub file_size: Option<u64>,
    /// CPU time of all its processes together.
    pub cpu_time: Option<Duration>,
    /// The nice value of commands, from 0 to 19.
    pub nice: u8,
    pub per_owner: OwnerLimits,
    /// Whether the agent has a user namespace of its own. Only then does the kernel's count of a user's processes
    /// leave out everything else that the user runs.
    pub own_namespace: bool,
}

/// What all runs of one owner may use at the same time, where a cgroup can enforce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerLimits {
    pub memory: Memory,
    /// Processes and threads.
    pub processes: Option<u64>,
    pub cpu: CpuShare,
}

/// How CPU time is shared when there is not enough for all. There are no quotas: in a cgroup that has used up its
/// quota, a killed process must wait for more before it can exit, minutes if there are many, and so must its keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuShare {
    /// By the scheduler's default: an owner with more processes gets more. Used on stdio, where there is one owner.
    Any,
    /// Equally among owners and among their runs, however many processes each has.
    Even,
    /// Only what others leave.
    Least,
}

impl CpuShare {
    /// The share of a detached job, whose cgroup is a sibling of all owners together: it must not weigh as much as they
    /// do.
    pub fn for_detached(self) -> Self {
        match self {
            Self::Any => Self::Any,
            Self::Even | Self::Least => Self::Least,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// Most of the machine's memory, where a cgroup can enforce it. A limit for each process instead would break
    /// programs that reserve more than they use.
    Most,
    Bytes(u64),
    Unlimited,
}

/// A limit that a run reached, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    Memory(u64),
    CpuTime(Duration),
    Processes(u64),
    FileSize(u64),
    /// The limit of all runs of an owner, or of all owners.
    SharedMemory,
    SharedProcesses,
}

impl Limit {
    /// Its name in answers and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory(_) | Self::SharedMemory => "oom_killed",
            Self::CpuTime(_) => "cpu_limit",
            Self::Processes(_) | Self::SharedProcesses => "pids_limit",
            Self::FileSize(_) => "file_size_limit",
        }
    }
}

/// What happened, as the client is told.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(most) => write!(f, "out of memory: a command may use {}", Size(most)),
            Self::CpuTime(most) => {
                let seconds = most.as_secs_f64();
                let unit = if seconds == 1.0 { "second" } else { "seconds" };
                write!(f, "out of CPU time: a command may use {seconds} {unit}")
            }
            Self::Processes(most) => {
                write!(f, "too many processes: a command may have {most}, threads included")
            }
            Self::FileSize(most) => {
                write!(
                    f,
                    "a file grew too large: a command may write files of up to {}",
                    Size(most)
                )
            }
            Self::SharedMemory => {
                f.write_str("out of memory: all commands together reached their limit")
            }
            Self::SharedProcesses => {
                f.write_str("too many processes: all commands together reached their limit")
            }
        }
    }
}

/// A number of bytes, in the largest unit of which it is a multiple.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 6] = [
            ("GiB", 1 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
            ("KB", 1000),
        ];
        let unit = UNITS.into_iter().find(|(_, bytes)| self.0.is_multiple_of(*bytes));
        let (name, bytes) = unit.unwrap_or(("bytes", 1));
        write!(f, "{} {name}", self.0 / bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: Memory::Most,
            processes: Some(2048),
            open_files: None,
            open_files_soft: None,
            file_size: None,
            cpu_time: None,
            nice: 0,
            per_owner: OwnerLimits {
                memory: Memory::Most,
                processes: Some(8192),
                cpu: CpuShare::Any,
            },
            own_namespace: false,
        }
    }
}

impl Limits {
    /// The resource limits of every process of a run.
    pub fn per_process(&self) -> Vec<(Resource, Rlimit)> {
        let processes = self.processes.filter(|_| self.own_namespace);
        let same = |resource, most: Option<u64>| most.map(|most| capped(resource, most, most));
        let cpu = self.cpu_time.map(|time| {
            let seconds = time.as_secs().max(1);
            // SIGXCPU first, SIGKILL a second later.
            capped(Resource::Cpu, seconds, seconds + 1)
        });
        let at_first = |soft| capped(Resource::Nofile, soft, u64::MAX);
        let files = same(Resource::Nofile, self.open_files);
        let all = [
            files.or_else(|| self.open_files_soft.map(at_first)),
            same(Resource::Fsize, self.file_size),
            same(Resource::Nproc, processes),
            cpu,
        ];
        all.into_iter().flatten().collect()
    }

    /// The memory limit of every process, where no cgroup limits memory. Not of the address space (`RLIMIT_AS`): Java
    /// and Node reserve far more of that than they use. `RLIMIT_DATA` only breaks programs built with a sanitizer.
    pub fn memory_per_process(&self) -> Option<(Resource, Rlimit)> {
        match self.memory {
            Memory::Bytes(most) => Some(capped(Resource::Data, most, most)),
            Memory::Most | Memory::Unlimited => None,
        }
    }
}

/// The limit, but no more than our own hard limit, which only root can exceed.
fn capped(resource: Resource, soft: u64, hard: u64) -> (Resource, Rlimit) {
    let own = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    (resource, Rlimit { current: Some(soft.min(own)), maximum: Some(hard.min(own)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Limits = Limits {
        memory: Memory::Unlimited,
        processes: None,
        open_files: None,
        open_files_soft: None,
        file_size: None,
        cpu_time: None,
        nice: 0,
        per_owner: OwnerLimits { memory: Memory::Unlimited, processes: None, cpu: CpuShare::Any },
        own_namespace: false,
    };

    fn per_process(limits: &Limits) -> Vec<(Resource, u64, u64)> {
        let plain = |(resource, limit): (_, Rlimit)| {
            (resource, limit.current.unwrap(), limit.maximum.unwrap())
        };
        limits.per_process().into_iter().map(plain).collect()
    }

    #[test]
    fn the_processes_of_a_user_are_counted_only_where_they_are_all_ours() {
        let limits = Limits { processes: Some(7), ..NONE };
        assert_eq!(per_process(&limits), []);
        let limits = Limits { own_namespace: true, ..limits };
        assert_eq!(per_process(&limits), [(Resource::Nproc, 7, 7)]);
    }

    #[test]
    fn who_does_not_mind_the_end_of_their_time_is_killed_a_second_later() {
        let limits = Limits { cpu_time: Some(Duration::from_secs(3)), ..NONE };
        assert_eq!(per_process(&limits), [(Resource::Cpu, 3, 4)]);
    }

    #[test]
    fn a_limit_above_our_own_is_our_own() {
        let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let limits = Limits { open_files: Some(u64::MAX - 1), ..NONE };
        let most = own.min(u64::MAX - 1);
        assert_eq!(per_process(&limits), [(Resource::Nofile, most, most)]);
    }

    #[test]
    fn what_the_server_may_open_for_itself_is_not_for_commands() {
        let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let limits = Limits { open_files_soft: Some(10), ..NONE };
        assert_eq!(per_process(&limits), [(Resource::Nofile, 10, own)]);
        let limits = Limits { open_files: Some(7), ..limits };
        assert_eq!(per_process(&limits), [(Resource::Nofile, 7, 7)]);
    }

    #[test]
    fn a_limit_is_told_as_it_was_set() {
        for (limit, told) in [
            (Limit::Memory(256_000_000), "out of memory: a command may use 256 MB"),
            (Limit::Memory(3 << 29), "out of memory: a command may use 1536 MiB"),
            (
                Limit::FileSize(1001),
                "a file grew too large: a command may write files of up to 1001 bytes",
            ),
            (
                Limit::CpuTime(Duration::from_secs(2)),
                "out of CPU time: a command may use 2 seconds",
            ),
        ] {
            assert_eq!(limit.to_string(), told);
        }
    }

    #[test]
    fn only_a_limit_somebody_has_set_is_one_for_each_process() {
        assert!(Limits::default().memory_per_process().is_none());
        let limits = Limits { memory: Memory::Bytes(1 << 20), ..NONE };
        assert!(limits.memory_per_process().is_some());
    }
}
