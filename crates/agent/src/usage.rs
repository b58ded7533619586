//! What a run has used, added up as its processes end.
//!
//! When a parent reaps a process, the kernel reports what that process and the children it reaped have used. The
//! keeper reaps whatever nobody else does, so nothing is counted twice. Only the children of a process that ignores
//! SIGCHLD are missed, because the kernel reports them to nobody.

use std::time::Duration;

use crate::frame::Usage;
use crate::tree::{self, Load};

/// CPU time and peak memory of a run's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotal {
    cpu: Duration,
    max_rss_bytes: u64,
}

impl UsageTotal {
    /// Adds a child that was reaped.
    pub fn add(&mut self, used: &libc::rusage) {
        self.cpu += cpu_time(used);
        self.max_rss_bytes = self.max_rss_bytes.max(used.ru_maxrss as u64 * 1024);
    }

    /// The processes that still run, read from `/proc`, and what all have used so far.
    pub fn with_living(self) -> (Vec<i32>, Self) {
        let Load { pids, cpu, .. } = tree::load(std::process::id() as i32);
        let most = pids.iter().map(|pid| tree::peak_rss_bytes(*pid)).max().unwrap_or(0);
        let max_rss_bytes = self.max_rss_bytes.max(most);
        (pids, Self { cpu: self.cpu + cpu, max_rss_bytes })
    }

    pub fn usage(self, wall: Duration) -> Usage {
        Usage { wall, cpu: self.cpu, max_rss_bytes: self.max_rss_bytes }
    }
}

/// The CPU time of this process's children that were reaped.
pub fn cpu_of_ended_children() -> Duration {
    // SAFETY: all zeroes is a valid `rusage`.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut used) };
    cpu_time(&used)
}

fn cpu_time(used: &libc::rusage) -> Duration {
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(used.ru_utime) + time(used.ru_stime)
}
