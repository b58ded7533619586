//! The processes below one process, and how to kill them.
//!
//! A scan of `/proc` is not a snapshot: processes start and end meanwhile. To end all of them, scan again until
//! nothing is left.

mod hunt;
mod stat;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process,
    kill_process_group, waitid, waitpid,
};

use crate::cgroup;
pub use hunt::Hunt;
pub use stat::{Layout, ProcessStat, State, machine_threads_low_bits, peak_rss_bytes, read_stat};
use stat::{listed_children, machine_threads, processes};

/// How long `kill_and_reap_all` tries.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Every living descendant of `root`, parents before children. Zombies are not living.
pub fn descendants(root: i32) -> Vec<i32> {
    living(root).into_iter().map(|process| process.pid).collect()
}

/// The same, with the details of each.
pub fn living(root: i32) -> Vec<ProcessStat> {
    let mut all = below(root);
    all.retain(|process| process.state != State::Zombie);
    all
}

/// The living descendants of `root`, parents before children, found by walking from each process to its children, so
/// unrelated processes cost nothing. May miss a process while others start or end: good enough to report them or to
/// ask them to end, not to end them all.
pub fn scan_children(root: i32) -> Vec<ProcessStat> {
    let Some(mut next) = listed_children(root) else { return living(root) };
    let most = machine_threads().unwrap_or(u64::MAX);
    let (mut found, mut scanned) = (Vec::new(), 0);
    while let Some(pid) = next.pop()
        && scanned < most
    {
        scanned += 1;
        next.extend(listed_children(pid).unwrap_or_default());
        let process = read_stat(pid).map(|(process, _)| process);
        found.extend(process.filter(|process| process.state != State::Zombie));
    }
    found
}

/// All descendants of `root`, zombies included.
fn below(root: i32) -> Vec<ProcessStat> {
    let mut children: HashMap<i32, Vec<ProcessStat>> = HashMap::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// The direct children of `parent`, zombies included.
pub fn children(parent: i32) -> Vec<i32> {
    processes().filter(|process| process.parent == parent).map(|process| process.pid).collect()
}

/// Kills every descendant of `root` that exists now. The next scan meets those that are being forked meanwhile.
///
/// Kills whole process groups: a program that keeps forking and exiting has another process id by the time it is
/// found, but is still in its group.
pub fn kill_descendants(root: i32) {
    living(root).iter().for_each(kill_with_group);
}

fn kill_with_group(process: &ProcessStat) {
    signal(&[process.pid], Signal::KILL);
    if let Some(group) = Pid::from_raw(process.group).filter(|group| *group != getpgrp()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // The version 1 freezer holds processes in this state, and they die only once thawed.
    if process.state == State::Uninterruptible {
        cgroup::thaw(process.pid);
    }
}

/// Kills those children of this process that are targets, with everything below them, and reaps them until none is
/// left. Gives up after this time. Blocks.
pub fn end_children(time: Duration, is_target: impl Fn(i32) -> bool) {
    let me = getpid().as_raw_nonzero().get();
    let until = Instant::now() + time;
    while has_children() && Instant::now() < until {
        let mut ending = HashSet::new();
        for process in below(me) {
            let ends = match process.parent == me {
                true => is_target(process.pid),
                false => ending.contains(&process.parent),
            };
            if ends {
                ending.insert(process.pid);
                kill_with_group(&process);
                let child = Pid::from_raw(process.pid).filter(|_| process.parent == me);
                child.map(|child| waitpid(Some(child), WaitOptions::NOHANG));
            }
        }
        if ending.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this process has children, zombies included. Without any, nothing is below it.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Kills and reaps everything below this process until nothing is left. Blocks.
pub fn kill_and_reap_all() {
    let me = getpid().as_raw_nonzero().get();
    let until = Instant::now() + KILL_TIME;
    while Instant::now() < until {
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        if !has_children() {
            return;
        }
        kill_descendants(me);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills the process group that a run's first process has made, if a child of ours is in it: as long as that child is
/// not reaped, no other group can have this number. A program that forks cannot escape.
pub fn kill_group(first: i32) {
    let me = getpid().as_raw_nonzero().get();
    let ours = processes().any(|process| process.parent == me && process.group == first);
    if ours {
        kill_own_group(first);
    }
}

/// The same while the first process is not reaped, so that its number cannot be another's.
pub fn kill_own_group(first: i32) {
    if let Some(group) = Pid::from_raw(first) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Signals each process. One that has ended meanwhile is not an error.
pub fn signal(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether the session that a run's first process has made has more threads than this. Reads no more processes than
/// it must.
pub fn session_exceeds(most: u64, first: i32) -> bool {
    let me = getpid().as_raw_nonzero().get();
    let (mut ours, mut threads) = (false, 0);
    processes().filter(|process| process.session == first).any(|process| {
        ours |= process.parent == me;
        threads += process.threads;
        ours && threads > most
    })
}

/// What the descendants of one process have, and what they and their reaped children have used.
pub struct Load {
    /// The living ones.
    pub pids: Vec<i32>,
    pub threads: u64,
    pub cpu: Duration,
}

pub fn load(root: i32) -> Load {
    let all = below(root);
    let ticks: u64 = all.iter().map(|process| process.ticks).sum();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let living = all.iter().filter(|process| process.state != State::Zombie);
    Load {
        pids: living.map(|process| process.pid).collect(),
        threads: all.iter().map(|process| process.threads).sum(),
        cpu: Duration::from_millis(ticks * 1000 / per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_a_descendant_of_its_parent() {
        let me = std::process::id() as i32;
        let parent = std::os::unix::process::parent_id() as i32;
        assert!(descendants(parent).contains(&me));
        assert!(children(parent).contains(&me));
    }
}
