//! What earlier commands of a shell have left running.
//!
//! The shell of a session takes one command after the other. When the next one begins, every process of the run but the
//! shell itself is of earlier ones, and so is whatever that starts.

use std::collections::HashSet;

use crate::tree;

/// How many ancestors are looked at.
const MAX_DEPTH: usize = 64;

pub struct Left {
    shell: i32,
    /// With the times when they were started.
    processes: HashSet<(i32, u64)>,
}

impl Left {
    /// A shell begins.
    pub fn nothing_of(shell: i32) -> Self {
        Self { shell, processes: HashSet::new() }
    }

    /// The next command is about to begin.
    pub fn look(&mut self) {
        let below = tree::scan_children(std::process::id() as i32);
        let others = below.iter().filter(|process| process.pid != self.shell);
        self.processes = others.map(|process| (process.pid, process.started)).collect();
    }

    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Whether a process is one of them or was started by one. One whose parents have ended may have been.
    pub fn has(&self, process: i32) -> bool {
        if self.is_empty() || process == self.shell {
            return false;
        }
        let mut next = process;
        for _ in 0..MAX_DEPTH {
            let Some((stat, _)) = tree::read_stat(next) else { return true };
            if stat.parent == self.shell && !self.processes.contains(&(stat.pid, stat.started)) {
                return false;
            }
            if self.processes.contains(&(stat.pid, stat.started)) {
                return true;
            }
            next = stat.parent;
        }
        true
    }
}
