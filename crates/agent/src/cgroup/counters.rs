//! What the kernel counts in a keeper's folders, and how it notifies us that a limit was reached.
//!
//! The counters grow for as long as a folder exists, so only the difference to the run's beginning counts. They are
//! read again once the end of a run was reported, so that nothing of it counts for the next.
//!
//! Where something is counted tells whose limit it was: a lack of memory in the run's own folder (in version 1, its
//! peak), and the number of processes in that folder and in those above it.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::folder::{CgroupLimits, Folder};
use super::hierarchy::{Hierarchy, field, put};
use crate::limits::Limit;

/// A descriptor that becomes ready when a limit is reached, and for what to poll it.
pub type Alarm<'a> = (BorrowedFd<'a>, PollFlags);

#[derive(Default)]
pub struct Counters {
    /// Counts forks that were refused.
    refusals: Option<File>,
    /// Whether the kernel makes that file ready when it changes. In version 1 it counts, but wakes nobody.
    notifies: bool,
    /// Counts processes.
    processes: Option<File>,
    parents: Vec<ParentLimit>,
    /// Whether a fork was refused because of other runs' processes.
    refused_by_parent: bool,
    kills: Option<OomKills>,
    /// Counts how often the folder itself ran out of memory. Version 1 has only the peak of its usage.
    shortages: Option<File>,
    peak: Option<File>,
    /// How much memory is used.
    usage: Option<File>,
    /// Signalled by version 1 when memory runs out. Version 2 kills the whole run by itself.
    oom_event: Option<OwnedFd>,
    /// Whether it was signalled since the run began.
    oom_seen: bool,
    /// The counts when the run began.
    before: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    refusals: u64,
    parent_refusals: u64,
    kills: u64,
    shortages: u64,
}

/// The limit on processes of a folder above the keeper's.
struct ParentLimit {
    /// Counts its processes.
    processes: File,
    most: u64,
    /// Counts its refusals. Before Linux 6.11, and in version 1, a refusal is only counted in the folder of the
    /// process that wanted to fork.
    refusals: Option<File>,
}

impl ParentLimit {
    fn open(folder: &Path) -> Option<Self> {
        let most = std::fs::read_to_string(folder.join("pids.max")).ok()?.trim().parse().ok()?;
        let open = |file| File::open(folder.join(file));
        let (processes, refusals) = (open("pids.current").ok()?, open("pids.events").ok());
        Some(Self { processes, most, refusals })
    }

    fn is_full(&self) -> bool {
        nearly(number(&self.processes, ""), self.most)
    }
}

/// Counts processes that the kernel killed for lack of memory.
pub struct OomKills(File);

impl OomKills {
    pub fn open(folder: &Folder) -> Option<Self> {
        let name = match folder.hierarchy {
            Hierarchy::Unified => "memory.events",
            Hierarchy::Memory => "memory.oom_control",
            Hierarchy::Pids | Hierarchy::Cpu => return None,
        };
        File::open(folder.path.join(name)).ok().map(Self)
    }

    pub fn count(&self) -> u64 {
        number(&self.0, "oom_kill")
    }
}

impl Counters {
    pub fn open(folders: &[Folder], enforced: &CgroupLimits) -> Self {
        let mut counters = Self::default();
        for folder @ Folder { hierarchy, path } in folders {
            let open = |file| File::open(path.join(file)).ok();
            if matches!(hierarchy, Hierarchy::Unified | Hierarchy::Pids) {
                counters.parents =
                    path.ancestors().skip(1).take(2).filter_map(ParentLimit::open).collect();
                counters.processes = open("pids.current");
                counters.refusals = open("pids.events");
                counters.notifies = *hierarchy == Hierarchy::Unified && counters.refusals.is_some();
            }
            match hierarchy {
                Hierarchy::Unified => {
                    counters.kills = OomKills::open(folder);
                    counters.shortages = open("memory.events");
                    counters.usage = open("memory.current");
                }
                Hierarchy::Memory => {
                    counters.kills = OomKills::open(folder);
                    let peak = path.join("memory.max_usage_in_bytes");
                    counters.peak = File::options().read(true).write(true).open(peak).ok();
                    counters.usage = open("memory.usage_in_bytes");
                    counters.oom_event =
                        counters.kills.as_ref().and_then(|kills| oom_event(path, &kills.0));
                }
                Hierarchy::Pids | Hierarchy::Cpu => {}
            }
        }
        counters.reset(enforced);
        counters
    }

    pub fn notifies(&self) -> bool {
        self.notifies
    }

    pub fn alarms(&self) -> [Option<Alarm<'_>>; 2] {
        [
            self.refusals
                .as_ref()
                .filter(|_| self.notifies)
                .map(|file| (file.as_fd(), PollFlags::PRI)),
            self.oom_event.as_ref().map(|event| (event.as_fd(), PollFlags::IN)),
        ]
    }

    /// The limit that this run has reached and that ends it. Version 1 signals all of an owner's runs when they
    /// run out of memory together, but only one of them is killed. A run that cannot fork because of other
    /// runs' processes continues.
    pub fn reached(&mut self, enforced: &CgroupLimits) -> Option<Limit> {
        self.check_oom_event();
        self.reached_since(enforced)
    }

    /// The same, but only if version 1 has signalled a lack of memory.
    pub fn reached_if_notified(&mut self, enforced: &CgroupLimits) -> Option<Limit> {
        if self.check_oom_event() { self.reached_since(enforced) } else { None }
    }

    /// The same, but only if a fork was refused, or a lack of memory was signalled or cannot be.
    pub fn reached_on_timer(&mut self, enforced: &CgroupLimits) -> Option<Limit> {
        let refused = self.refusals.as_ref().map_or(0, refusals) > self.before.refusals;
        if refused || self.oom_seen || self.needs_polling() {
            self.reached_since(enforced)
        } else {
            None
        }
    }

    /// Whether the kernel counts its kills without notifying us.
    fn needs_polling(&self) -> bool {
        self.kills.is_some() && self.shortages.is_none() && self.oom_event.is_none()
    }

    fn reached_since(&mut self, enforced: &CgroupLimits) -> Option<Limit> {
        let (now, before) = (self.count(), self.before);
        let killed = now.kills > before.kills;
        let own = |most: &u64| now.shortages > before.shortages || self.peak_is_near(*most);
        let memory =
            enforced.memory.filter(|_| killed || self.oom_seen).filter(own).map(Limit::Memory);
        let memory = memory.or(killed.then_some(Limit::SharedMemory));
        let refused = now.refusals > before.refusals;
        let full = |most: &u64| {
            self.processes.as_ref().is_some_and(|file| nearly(number(file, ""), *most))
        };
        let processes =
            enforced.processes.filter(|most| refused && full(most)).map(Limit::Processes);
        if processes.is_none() && refused && self.parents.iter().any(ParentLimit::is_full) {
            self.refused_by_parent = true;
            self.before.refusals = now.refusals;
        }
        memory.or(processes)
    }

    /// The same for a run that has failed: some of its processes may have ended meanwhile.
    pub fn reached_by_failed(&mut self, enforced: &CgroupLimits) -> Option<Limit> {
        let reached = self.reached(enforced);
        let (now, before) = (self.count(), self.before);
        let refused = now.refusals > before.refusals;
        let own = enforced.processes.filter(|_| refused).map(Limit::Processes);
        let shared = self.refused_by_parent || now.parent_refusals > before.parent_refusals;
        reached.or(own).or(shared.then_some(Limit::SharedProcesses))
    }

    /// Whether the peak of version 1 was near the limit.
    fn peak_is_near(&self, most: u64) -> bool {
        self.peak.as_ref().is_some_and(|file| number(file, "") >= most / 100 * 99)
    }

    /// Begins a new run.
    pub fn reset(&mut self, enforced: &CgroupLimits) {
        self.check_oom_event();
        self.oom_seen = false;
        if enforced.memory.is_some_and(|most| self.peak_is_near(most)) {
            let _ = self.peak.as_ref().map(|file| file.write_at(b"0", 0));
        }
        self.refused_by_parent = false;
        self.before = self.count();
    }

    pub fn used(&self) -> u64 {
        self.usage.as_ref().map_or(0, |file| number(file, ""))
    }

    /// Reading also makes the kernel notify us of the next change.
    fn count(&self) -> Counts {
        Counts {
            refusals: self.refusals.as_ref().map_or(0, refusals),
            parent_refusals: self
                .parents
                .iter()
                .filter_map(|it| it.refusals.as_ref())
                .map(refusals)
                .sum(),
            kills: self.kills.as_ref().map_or(0, OomKills::count),
            shortages: self.shortages.as_ref().map_or(0, |file| number(file, "oom")),
        }
    }

    /// Whether a lack of memory was signalled since the run began. Remembered, because reading the counters can
    /// fail while memory is short.
    fn check_oom_event(&mut self) -> bool {
        let oom_event = self.oom_event.as_ref();
        self.oom_seen |= oom_event.is_some_and(|it| rustix::io::read(it, &mut [0_u8; 8]).is_ok());
        self.oom_seen
    }
}

fn refusals(file: &File) -> u64 {
    number(file, "max")
}

/// Whether a number has nearly reached its limit.
fn nearly(number: u64, most: u64) -> bool {
    number.saturating_mul(10) >= most.saturating_mul(9)
}

/// The number with this name in a file, or the only number if the name is empty.
fn number(file: &File, name: &str) -> u64 {
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let found = if name.is_empty() { text.trim().parse().ok() } else { field(&text, name) };
    found.unwrap_or(0)
}

/// An eventfd that the kernel signals when a folder of version 1 runs out of memory.
fn oom_event(folder: &Path, oom_control: &File) -> Option<OwnedFd> {
    let oom_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
    let request = format!("{} {}", oom_event.as_raw_fd(), oom_control.as_raw_fd());
    put(&folder.join("cgroup.event_control"), &request).then_some(oom_event)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENFORCED: CgroupLimits = CgroupLimits { memory: Some(5000), processes: Some(7) };

    #[test]
    fn only_what_happened_in_this_run_counts() {
        let place = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(place.path().join(file), text).unwrap();
        write("pids.events", "max 3\n");
        write("pids.current", "2\n");
        write("memory.events", "oom 9\noom_kill 2\noom_group_kill 1\n");
        write("memory.current", "4096\n");
        let folder = Folder { hierarchy: Hierarchy::Unified, path: place.path().to_owned() };
        let mut counters = Counters::open(&[folder], &ENFORCED);
        assert_eq!((counters.reached(&ENFORCED), counters.used()), (None, 4096));
        write("pids.events", "max 4\n");
        assert_eq!(counters.reached(&ENFORCED), None, "there are few by now");
        assert_eq!(counters.reached_by_failed(&ENFORCED), Some(Limit::Processes(7)));
        write("pids.current", "7\n");
        assert_eq!(counters.reached(&ENFORCED), Some(Limit::Processes(7)));
        write("memory.events", "oom 9\noom_kill 3\noom_group_kill 1\n");
        assert_eq!(counters.reached(&ENFORCED), Some(Limit::SharedMemory));
        write("memory.events", "oom 10\noom_kill 3\noom_group_kill 1\n");
        assert_eq!(counters.reached(&ENFORCED), Some(Limit::Memory(5000)));
        counters.reset(&ENFORCED);
        assert_eq!(counters.reached(&ENFORCED), None);
    }

    #[test]
    fn who_is_refused_for_others_is_told_so_if_it_fails_and_not_ended() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("k0");
        std::fs::create_dir(&own).unwrap();
        let write = |file: &str, text: &str| std::fs::write(place.path().join(file), text).unwrap();
        write("pids.max", "20\n");
        write("pids.current", "20\n");
        write("k0/pids.events", "max 0\n");
        write("k0/pids.current", "3\n");
        let folder = Folder { hierarchy: Hierarchy::Pids, path: own };
        let mut counters = Counters::open(&[folder], &ENFORCED);
        write("k0/pids.events", "max 1\n");
        assert_eq!(counters.reached(&ENFORCED), None);
        write("pids.current", "4\n");
        assert_eq!(counters.reached(&ENFORCED), None, "the others have left");
        assert_eq!(counters.reached_by_failed(&ENFORCED), Some(Limit::SharedProcesses));
        counters.reset(&ENFORCED);
        assert_eq!(counters.reached_by_failed(&ENFORCED), None);
    }
}
