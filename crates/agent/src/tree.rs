//! The processes below one process, as `/proc` shows them.
//!
//! A look at `/proc` is not a snapshot: processes come and go meanwhile. Whoever must end them all
//! looks again until nothing is left.

use std::collections::HashMap;

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use crate::cgroup;

/// Every living descendant of `root`, parents before children. Those that have ended and wait to
/// be reaped are not living.
pub fn descendants(root: i32) -> Vec<i32> {
    living(root).into_iter().map(|entry| entry.pid).collect()
}

/// The descendant of `root` that knows itself by this number: in a namespace of its own it is another
/// one than here.
pub fn known_inside_as(root: i32, number: i32) -> Option<i32> {
    descendants(root).into_iter().find(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|numbers| numbers.split_ascii_whitespace().last()?.parse().ok())
            == Some(number)
    })
}

/// Kills every descendant of `root` that is there now. One that is being forked meanwhile is met
/// by who looks again.
///
/// Process groups are killed whole: a program that forks and leaves again and again is somewhere
/// else by the time it was found, but still in its group.
pub fn kill_descendants(root: i32) {
    let own_group = getpgrp();
    for entry in living(root) {
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

/// Kills a process with every descendant that is there now.
pub fn kill(root: i32) {
    signal(&[root], Signal::KILL);
    cgroup::thaw(root);
    kill_descendants(root);
}

fn living(root: i32) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in processes() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            if child.state != State::Ended {
                found.push(child);
            }
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

struct Entry {
    pid: i32,
    parent: i32,
    group: i32,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Alive,
    /// Where signals do not reach it now.
    Asleep,
    /// Waits to be reaped.
    Ended,
}

fn processes() -> impl Iterator<Item = Entry> {
    let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folder.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &stat)
    })
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
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    let state = match letter {
        // While other threads live, one whose first thread has left is not ended.
        "Z" | "X" if threads <= 1 => State::Ended,
        "D" => State::Asleep,
        _ => State::Alive,
    };
    Some(Entry { pid, parent, group, state })
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
    fn this_process_is_a_descendant_of_its_parent() {
        let me = std::process::id() as i32;
        let parent = std::os::unix::process::parent_id() as i32;
        assert!(descendants(parent).contains(&me));
        assert!(children(parent).contains(&me));
    }
}
