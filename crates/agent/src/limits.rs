//! What a run may use at most, and how it is told which of that it ran into.
//!
//!     memory, processes   a cgroup, where there is one; else a limit for each process, and a look at
//!                         how many there are
//!     CPU time            a limit for each process, and a look at what all of them used
//!     files               a limit for each process

use std::fmt;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit};
use serde::{Deserialize, Serialize};

/// What a run may use. What has no limit may use all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory: Memory,
    /// Processes and threads at a time.
    pub processes: Option<u64>,
    /// Of each process.
    pub open_files: Option<u64>,
    /// The soft limit of each process, which it may raise; unset means the keeper's own.
    pub open_files_at_first: Option<u64>,
    /// The longest file, in bytes.
    pub file_size: Option<u64>,
    /// Of all its processes together.
    pub cpu_time: Option<Duration>,
    /// How much commands stand back for others, from 0 to 19.
    pub nice: u8,
    pub together: Together,
    /// Whether the agent is in a user namespace of its own: the kernel then counts no processes of
    /// anybody else when it counts a user's.
    pub own_namespace: bool,
}

/// What all runs of one owner may use at a time, where a cgroup counts that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    pub memory: Memory,
    /// Processes and threads.
    pub processes: Option<u64>,
    pub cpu: CpuShare,
}

/// How much CPU time owners have when there is not enough for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuShare {
    /// As the scheduler has it: who starts many processes has more.
    Any,
    /// Owners, and their runs, have the same each, however many processes there are.
    Even,
    /// What others leave.
    Least,
}

impl CpuShare {
    /// For what is counted beside all owners: it must not weigh as much as all of them.
    pub fn of_detached(self) -> Self {
        match self {
            Self::Any => Self::Any,
            Self::Even | Self::Least => Self::Least,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// Most of what there is, where a cgroup can hold a run to it. A limit for each process would
    /// be in the way of programs that ask for more than they use.
    Most,
    Bytes(u64),
    Unlimited,
}

/// A limit that a run came to, and how much it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    Memory(u64),
    CpuTime(Duration),
    Processes(u64),
    FileSize(u64),
    /// What all runs of an owner, or of everybody, have together was used up.
    SharedMemory,
    SharedProcesses,
}

impl Limit {
    /// What answers and records call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory(_) | Self::SharedMemory => "oom_killed",
            Self::CpuTime(_) => "cpu_limit",
            Self::Processes(_) | Self::SharedProcesses => "pids_limit",
            Self::FileSize(_) => "file_size_limit",
        }
    }
}

/// What happened, for whoever asked for the run.
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
                write!(f, "a file grew too long: a command may write {}", Size(most))
            }
            Self::SharedMemory => {
                f.write_str("out of memory: commands took all they may use together")
            }
            Self::SharedProcesses => {
                f.write_str("too many processes: commands had all they may have together")
            }
        }
    }
}

/// A number of bytes in the largest unit that it is a multiple of.
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
            open_files_at_first: None,
            file_size: None,
            cpu_time: None,
            nice: 0,
            together: Together { memory: Memory::Most, processes: Some(8192), cpu: CpuShare::Any },
            own_namespace: false,
        }
    }
}

impl Limits {
    /// What every process of a run is held to.
    pub fn of_each(&self) -> Vec<(Resource, Rlimit)> {
        let processes = self.processes.filter(|_| self.own_namespace);
        let same = |resource, most: Option<u64>| most.map(|most| lowered(resource, most, most));
        let cpu = self.cpu_time.map(|time| {
            let seconds = time.as_secs().max(1);
            // SIGXCPU first, SIGKILL for whoever does not mind that.
            lowered(Resource::Cpu, seconds, seconds + 1)
        });
        let at_first = |soft| lowered(Resource::Nofile, soft, u64::MAX);
        let files = same(Resource::Nofile, self.open_files);
        let all = [
            files.or_else(|| self.open_files_at_first.map(at_first)),
            same(Resource::Fsize, self.file_size),
            same(Resource::Nproc, processes),
            cpu,
        ];
        all.into_iter().flatten().collect()
    }

    /// What is added where no cgroup counts memory. Not the address space: Java and Node ask for
    /// much more of that than they ever use.
    pub fn of_memory(&self) -> Option<(Resource, Rlimit)> {
        match self.memory {
            Memory::Bytes(most) => Some(lowered(Resource::Data, most, most)),
            Memory::Most | Memory::Unlimited => None,
        }
    }
}

/// No more than what we are held to ourselves: only root can go above that.
fn lowered(resource: Resource, soft: u64, hard: u64) -> (Resource, Rlimit) {
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
        open_files_at_first: None,
        file_size: None,
        cpu_time: None,
        nice: 0,
        together: Together { memory: Memory::Unlimited, processes: None, cpu: CpuShare::Any },
        own_namespace: false,
    };

    fn of_each(limits: &Limits) -> Vec<(Resource, u64, u64)> {
        let plain = |(resource, limit): (_, Rlimit)| {
            (resource, limit.current.unwrap(), limit.maximum.unwrap())
        };
        limits.of_each().into_iter().map(plain).collect()
    }

    #[test]
    fn the_processes_of_a_user_are_counted_only_where_they_are_all_ours() {
        let limits = Limits { processes: Some(7), ..NONE };
        assert_eq!(of_each(&limits), []);
        let limits = Limits { own_namespace: true, ..limits };
        assert_eq!(of_each(&limits), [(Resource::Nproc, 7, 7)]);
    }

    #[test]
    fn who_does_not_mind_the_end_of_their_time_is_killed_a_second_later() {
        let limits = Limits { cpu_time: Some(Duration::from_secs(3)), ..NONE };
        assert_eq!(of_each(&limits), [(Resource::Cpu, 3, 4)]);
    }

    #[test]
    fn a_limit_above_our_own_is_our_own() {
        let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let limits = Limits { open_files: Some(u64::MAX - 1), ..NONE };
        let most = own.min(u64::MAX - 1);
        assert_eq!(of_each(&limits), [(Resource::Nofile, most, most)]);
    }

    #[test]
    fn what_the_server_may_open_for_itself_is_not_for_commands() {
        let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let limits = Limits { open_files_at_first: Some(10), ..NONE };
        assert_eq!(of_each(&limits), [(Resource::Nofile, 10, own)]);
        let limits = Limits { open_files: Some(7), ..limits };
        assert_eq!(of_each(&limits), [(Resource::Nofile, 7, 7)]);
    }

    #[test]
    fn a_limit_is_told_as_it_was_set() {
        for (limit, told) in [
            (Limit::Memory(256_000_000), "out of memory: a command may use 256 MB"),
            (Limit::Memory(3 << 29), "out of memory: a command may use 1536 MiB"),
            (Limit::FileSize(1001), "a file grew too long: a command may write 1001 bytes"),
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
        assert!(Limits::default().of_memory().is_none());
        let limits = Limits { memory: Memory::Bytes(1 << 20), ..NONE };
        assert!(limits.of_memory().is_some());
    }
}
