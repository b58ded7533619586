//! What a run has used, added up as its processes end.
//!
//! The kernel says what a process used, with all it waited for, to its parent when that waits for it. What nobody
//! else waits for comes to the keeper in the end, so nothing is counted twice and hardly anything is
//! missed: only children of a process that ignores SIGCHLD, of which the kernel tells nobody.

use std::time::Duration;

use crate::frame::Usage;
use crate::tree::{self, Load};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    cpu: Duration,
    max_rss_bytes: u64,
}

impl Tally {
    /// Counts a child that was waited for.
    pub fn add(&mut self, used: &libc::rusage) {
        self.cpu += tree::cpu_time(used);
        self.max_rss_bytes = self.max_rss_bytes.max(used.ru_maxrss as u64 * 1024);
    }

    /// Those that still run, and what all have used so far.
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
