//! The processes below one process, as `/proc` shows them.
//!
//! A look at `/proc` is not a snapshot: processes come and go meanwhile. Whoever must end them all
//! looks again until nothing is left.

use std::collections::HashMap;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group, waitpid,
};

use crate::cgroup;

/// More than there is to read of a process in its `stat`: 50 numbers, and a name of 64 bytes at most.
const MAX_STAT: usize = 2048;

/// How long it is tried to kill all there is.
const SWEEP_TIME: Duration = Duration::from_secs(3);

/// How ready commands are to be killed when the machine has no memory left, of 1000.
pub const OFFERED: &str = "500";

/// Not at all, by the same measure.
pub const SPARED: &str = "-1000";

/// Every living descendant of `root`, parents before children. Those that have ended and wait to
/// be reaped are not living.
pub fn descendants(root: i32) -> Vec<i32> {
    living(root).into_iter().map(|entry| entry.pid).collect()
}

/// The same, found by walking down from each process to its children, so unrelated processes cost nothing.
/// It may miss a process that starts or ends meanwhile: good enough to report, not to end them all.
pub fn seen_below(root: i32) -> Vec<Entry> {
    let Some(mut next) = children_told(root) else { return living(root) };
    let most = threads_of_machine().unwrap_or(u64::MAX);
    let (mut found, mut looked) = (Vec::new(), 0);
    while let Some(pid) = next.pop()
        && looked < most
    {
        looked += 1;
        next.extend(children_told(pid).unwrap_or_default());
        found.extend(look(pid).map(|(entry, _)| entry).filter(|entry| entry.state != State::Ended));
    }
    found
}

/// The children of all threads of a process, where the kernel tells them.
fn children_told(parent: i32) -> Option<Vec<i32>> {
    let mut children = None;
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        // One that has ended meanwhile has none.
        let Ok(told) = std::fs::read_to_string(thread.path().join("children")) else { continue };
        let told = told.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        children.get_or_insert_with(Vec::new).extend(told);
    }
    children
}

/// Kills every descendant of `root` that is there now. One that is being forked meanwhile is met
/// by who looks again.
///
/// Process groups are killed whole: a program that forks and leaves again and again is somewhere
/// else by the time it was found, but still in its group.
pub fn kill_descendants(root: i32) {
    kill_those_below(root, |_| true);
}

/// The same for those of them that it is said to be for.
pub fn kill_those_below(root: i32, for_this_one: impl Fn(i32) -> bool) {
    let own_group = getpgrp();
    for entry in living(root).into_iter().filter(|entry| for_this_one(entry.pid)) {
        signal(&[entry.pid], Signal::KILL);
        if let Some(group) = Pid::from_raw(entry.group).filter(|group| *group != own_group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        // What the old freezer holds dies only when it is let go.
        if entry.state == State::Asleep {
            cgroup::thaw(entry.pid);
        }
    }
}

/// Kills the process group that the first process of a run has made, if a child of ours is in it: as
/// long as we do not reap that one, nobody else has a group of this number. A program that forks
/// cannot get away from this.
pub fn kill_group(first: i32) {
    let me = getpid().as_raw_nonzero().get();
    let ours = processes().any(|entry| entry.parent == me && entry.group == first);
    if ours {
        kill_own_group(first);
    }
}

/// The same for a first process that was not reaped yet, so that its number is nobody else's.
pub fn kill_own_group(first: i32) {
    if let Some(group) = Pid::from_raw(first) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Whether the session that the first process of a run has made has more threads than this. Looks at
/// no more processes than it has to.
pub fn has_more_than(most: u64, first: i32) -> bool {
    let me = getpid().as_raw_nonzero().get();
    let (mut ours, mut threads) = (false, 0);
    processes().filter(|entry| entry.session == first).any(|entry| {
        ours |= entry.parent == me;
        threads += entry.threads;
        ours && threads > most
    })
}

/// Kills a process with every descendant that is there now.
pub fn kill(root: i32) {
    signal(&[root], Signal::KILL);
    cgroup::thaw(root);
    kill_descendants(root);
}

/// Kills whatever is below this process, until there is nothing.
pub fn kill_all_below() {
    let me = getpid().as_raw_nonzero().get();
    let until = Instant::now() + SWEEP_TIME;
    while Instant::now() < until {
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        if descendants(me).is_empty() {
            return;
        }
        kill_descendants(me);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What all processes below one have, and have used, with children of theirs that have ended.
pub struct Load {
    /// Those that live.
    pub pids: Vec<i32>,
    pub threads: u64,
    pub cpu: Duration,
}

pub fn load(root: i32) -> Load {
    let all = below(root);
    let ticks: u64 = all.iter().map(|entry| entry.ticks).sum();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let living = all.iter().filter(|entry| entry.state != State::Ended);
    Load {
        pids: living.map(|entry| entry.pid).collect(),
        threads: all.iter().map(|entry| entry.threads).sum(),
        cpu: Duration::from_millis(ticks * 1000 / per_second),
    }
}

/// The most memory a living process has had so far.
pub fn peak_rss_bytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// What the children of this process used that have ended.
pub fn used_by_ended() -> Duration {
    // SAFETY: all zeroes is a valid `rusage`.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut used) };
    cpu_time(&used)
}

pub fn cpu_time(used: &libc::rusage) -> Duration {
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(used.ru_utime) + time(used.ru_stime)
}

/// Makes a process, and all it will start, the first to go when the machine has no memory left: not
/// whoever minds it. Only once it has executed its program may an ordinary user do so, and the kernel
/// takes a moment longer to let go of a process that was looked at.
pub fn offer_to_oom(pid: i32) -> bool {
    std::fs::write(format!("/proc/{pid}/oom_score_adj"), OFFERED).is_ok()
}

/// How many threads there are on the machine, told without looking at each.
pub fn threads_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// The lower 16 bits of that, which the kernel tells much faster.
pub fn thread_counter() -> u16 {
    rustix::system::sysinfo().procs
}

/// The same with what there is to see of each.
pub fn living(root: i32) -> Vec<Entry> {
    let mut all = below(root);
    all.retain(|entry| entry.state != State::Ended);
    all
}

fn below(root: i32) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in processes() {
        children.entry(entry.parent).or_default().push(entry);
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

/// The direct children of `parent`, those included that wait to be reaped.
pub fn children(parent: i32) -> Vec<i32> {
    processes().filter(|entry| entry.parent == parent).map(|entry| entry.pid).collect()
}

/// Signals each of `pids`. One that has gone meanwhile is no failure.
pub fn signal(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

pub struct Entry {
    pub pid: i32,
    pub parent: i32,
    group: i32,
    session: i32,
    pub state: State,
    threads: u64,
    /// CPU time, in the kernel's own unit.
    ticks: u64,
    /// When it was started, in the same unit.
    pub started: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum State {
    Alive,
    /// Where signals do not reach it now.
    Asleep,
    /// Waits to be reaped.
    Ended,
}

/// No more than there are when it begins: new ones can come faster than they are looked at, and the
/// look would never end.
fn processes() -> impl Iterator<Item = Entry> {
    let most = threads_of_machine().unwrap_or(u64::MAX);
    let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut line = [0; MAX_STAT];
    pids.take(most.try_into().unwrap_or(usize::MAX)).filter_map(move |pid: i32| {
        let length = read_stat(pid, &mut line)?;
        parse(pid, &line[..length])
    })
}

/// Reads the line that `/proc` has for a process. One read is enough for it, and is all it takes.
fn read_stat(pid: i32, line: &mut [u8; MAX_STAT]) -> Option<usize> {
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    file.read(line).ok()
}

/// What there is to see of one process, and its name.
pub fn look(pid: i32) -> Option<(Entry, String)> {
    let mut line = [0; MAX_STAT];
    let length = read_stat(pid, &mut line)?;
    let stat = &line[..length];
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    Some((parse(pid, stat)?, name))
}

/// Reads the state and the parent out of a `stat` line. The name before them is in parentheses and
/// may itself contain anything, parentheses and newlines included, so they are found from the end.
fn parse(pid: i32, stat: &[u8]) -> Option<Entry> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let letter = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
    let ticks = number(7)? + number(0)? + number(0)? + number(0)?;
    let threads = number(2)?;
    let started = number(1)?;
    let state = match letter {
        // While other threads live, one whose first thread has left is not ended.
        "Z" | "X" if threads <= 1 => State::Ended,
        "D" => State::Asleep,
        _ => State::Alive,
    };
    Some(Entry { pid, parent, group, session, state, threads, ticks, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields from the process group to the start time; one thread.
    const REST: &str = "7 7 0 -1 4194560 90 0 0 0 0 0 0 0 20 0 1 0 9876";

    #[test]
    fn a_name_full_of_parentheses_does_not_hide_the_parent() {
        let entry = parse(7, format!("7 (a) Z 1 (b\n) S 42 {REST}").as_bytes()).unwrap();
        assert_eq!((entry.pid, entry.parent, entry.state), (7, 42, State::Alive));
    }

    #[test]
    fn a_process_that_waits_to_be_reaped_has_ended() {
        let line = format!("7 (sh) Z 42 {REST}");
        assert_eq!(parse(7, line.as_bytes()).unwrap().state, State::Ended);
    }

    #[test]
    fn a_process_whose_first_thread_has_left_lives_on_in_the_others() {
        let line = format!("7 (sh) Z 42 {REST}").replace("20 0 1 0", "20 0 2 0");
        assert_eq!(parse(7, line.as_bytes()).unwrap().state, State::Alive);
    }

    #[test]
    fn the_time_of_children_that_have_ended_counts_as_well() {
        let line = format!("7 (sh) S 42 {REST}").replace("0 0 0 0 20", "1 20 300 4000 20");
        let entry = parse(7, line.as_bytes()).unwrap();
        assert_eq!((entry.ticks, entry.threads, entry.started), (4321, 1, 9876));
    }

    #[test]
    fn a_process_has_had_some_memory_and_one_that_is_gone_none() {
        assert!(peak_rss_bytes(std::process::id() as i32) > 0);
        assert_eq!(peak_rss_bytes(i32::MAX), 0);
    }

    #[test]
    fn this_process_is_a_descendant_of_its_parent() {
        let me = std::process::id() as i32;
        let parent = std::os::unix::process::parent_id() as i32;
        assert!(descendants(parent).contains(&me));
        assert!(children(parent).contains(&me));
    }
}
