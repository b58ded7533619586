//! What a tree of processes has, and who else is there.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// What is counted of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Census {
    /// The proportional set size, in bytes: pages that are shared count once.
    pub memory: u64,
    pub descriptors: usize,
    pub threads: usize,
    pub processes: usize,
    pub zombies: usize,
}

impl Census {
    /// Counts a process and all below it.
    pub fn of_tree(root: u32) -> Self {
        let mut census = Self::default();
        for pid in tree(root) {
            census.memory += memory(pid).unwrap_or(0);
            census.descriptors += entries(&format!("/proc/{pid}/fd"));
            census.threads += entries(&format!("/proc/{pid}/task"));
            census.processes += 1;
            census.zombies += usize::from(stat(pid).is_some_and(|(state, _)| state == "Z"));
        }
        census
    }
}

/// How much memory a process and all below it have, in bytes.
pub fn memory_of_tree(root: u32) -> u64 {
    tree(root).into_iter().filter_map(memory).sum()
}

/// The most memory that a process ever had, in bytes, with what it shares.
pub fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes * 1024)
}

/// The processor time of each thread of a process and of all below it, in nanoseconds.
#[derive(Default)]
pub struct Times(HashMap<PathBuf, u64>);

impl Times {
    pub fn of_tree(root: u32) -> Self {
        let threads = tree(root).into_iter().flat_map(|pid| {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            tasks.map(|task| task.path())
        });
        let timed = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.join("schedstat")).ok()?;
            Some((thread, text.split(' ').next()?.parse().ok()?))
        });
        Self(timed.collect())
    }

    /// How many seconds they have had since then. A thread that has ended takes its time with it, and must not
    /// take what it used before from what others have used since.
    pub fn since(&self, before: &Self) -> f64 {
        let used = |(thread, time): (&PathBuf, &u64)| {
            time.saturating_sub(before.0.get(thread).copied().unwrap_or(0))
        };
        self.0.iter().map(used).sum::<u64>() as f64 / 1e9
    }
}

/// How many processes have this in their environment.
pub fn marked(mark: &str) -> usize {
    let environment = |pid| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has_mark = |pid: &u32| {
        environment(*pid).split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    all().filter(has_mark).count()
}

fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<_> = all().filter_map(|pid| Some((pid, stat(pid)?.1))).collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        tree.extend(parents.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| pid));
        next += 1;
    }
    tree
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Its state and its parent.
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn memory(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ended_takes_nothing_from_what_others_used() {
        let times =
            |all: &[(&str, u64)]| Times(all.iter().map(|(it, time)| (it.into(), *time)).collect());
        let before = times(&[("one", 3_000_000_000), ("two", 5_000_000_000)]);
        let after = times(&[("one", 4_000_000_000), ("three", 500_000_000)]);
        assert_eq!(after.since(&before), 1.5);
    }

    #[test]
    fn a_child_is_counted_with_its_parent_and_found_by_its_mark() {
        let mark = format!("MCPZ_BENCH_TEST={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let before = Census::of_tree(std::process::id());
        let mut child =
            std::process::Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let now = Census::of_tree(std::process::id());
        let found = marked(&mark);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(now.processes, before.processes + 1);
        assert!(now.memory > 0 && now.descriptors > before.descriptors);
        assert_eq!((found, marked(&mark)), (1, 0));
    }
}
