//! What the kernel counts in a keeper's folders, and how it says that it had to step in.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::place::{Kind, field, put};
use super::{Bounds, Folder};
use crate::limits::Limit;

/// What becomes ready, and how, when a limit was reached.
pub type Alarm<'a> = (BorrowedFd<'a>, PollFlags);

#[derive(Default)]
pub struct Meters {
    /// Says how often no process could be made.
    refusals: Option<File>,
    /// Whether that file is made ready when it says more.
    told: bool,
    /// Says how many there are.
    processes: Option<File>,
    above: Vec<Crowd>,
    /// Whether it was others' processes for which none could be made.
    crowded: bool,
    kills: Option<Kills>,
    /// Says how often there was no memory left of the folder's own. Version 1 only tells the most that
    /// was ever used.
    shortages: Option<File>,
    peak: Option<File>,
    /// Says how much memory is used.
    usage: Option<File>,
    /// Protection by version 1 when there is no memory: version 2 ends all of a run by itself.
    bell: Option<OwnedFd>,
    /// Whether it has rung since the run began.
    rung: bool,
    /// As it was when the run began.
    before: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    refusals: u64,
    refusals_above: u64,
    kills: u64,
    shortages: u64,
}

/// A folder above that has a limit.
struct Crowd {
    /// Says how many processes there are.
    processes: File,
    most: u64,
    /// Says how often there were too many. Before Linux 6.11, and in version 1, only where the one was
    /// that wanted another.
    refusals: Option<File>,
}

impl Crowd {
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

/// Says how many were killed for want of memory.
pub struct Kills(File);

impl Kills {
    /// Of a folder that counts them.
    pub fn open(folder: &Folder) -> Option<Self> {
        let name = match folder.kind {
            Kind::Unified => "memory.events",
            Kind::Memory => "memory.oom_control",
            Kind::Processes | Kind::Cpu => return None,
        };
        File::open(folder.path.join(name)).ok().map(Self)
    }

    pub fn count(&self) -> u64 {
        number(&self.0, "oom_kill")
    }
}

impl Meters {
    pub fn open(folders: &[Folder], held: &Bounds) -> Self {
        let mut meters = Self::default();
        for folder @ Folder { kind, path } in folders {
            let open = |file| File::open(path.join(file)).ok();
            if matches!(kind, Kind::Unified | Kind::Processes) {
                meters.above = path.ancestors().skip(1).take(2).filter_map(Crowd::open).collect();
                meters.processes = open("pids.current");
                meters.refusals = open("pids.events");
                meters.told = *kind == Kind::Unified && meters.refusals.is_some();
            }
            match kind {
                Kind::Unified => {
                    meters.kills = Kills::open(folder);
                    meters.shortages = open("memory.events");
                    meters.usage = open("memory.current");
                }
                Kind::Memory => {
                    meters.kills = Kills::open(folder);
                    let peak = path.join("memory.max_usage_in_bytes");
                    meters.peak = File::options().read(true).write(true).open(peak).ok();
                    meters.usage = open("memory.usage_in_bytes");
                    meters.bell = meters.kills.as_ref().and_then(|kills| bell(path, &kills.0));
                }
                Kind::Processes | Kind::Cpu => {}
            }
        }
        meters.settle(held);
        meters
    }

    pub fn tells(&self) -> bool {
        self.told
    }

    pub fn alarms(&self) -> [Option<Alarm<'_>>; 2] {
        [
            self.refusals.as_ref().filter(|_| self.told).map(|file| (file.as_fd(), PollFlags::PRI)),
            self.bell.as_ref().map(|bell| (bell.as_fd(), PollFlags::IN)),
        ]
    }

    /// The limit that was reached since the last run, and ends this one. The bell of version 1 rings for
    /// all of an owner's runs when they have no memory left together; only one of them is ended. Who can
    /// make no more processes because others have so many goes on.
    pub fn reached(&mut self, held: &Bounds) -> Option<Limit> {
        self.hear_bell();
        self.reached_since(held)
    }

    /// The same, if the bell has rung.
    pub fn reached_loudly(&mut self, held: &Bounds) -> Option<Limit> {
        if self.hear_bell() { self.reached_since(held) } else { None }
    }

    /// The same, if some process could not be made, or the bell has rung before, or there is none.
    pub fn reached_silently(&mut self, held: &Bounds) -> Option<Limit> {
        let refused = self.refusals.as_ref().map_or(0, refusals) > self.before.refusals;
        if refused || self.rung || self.is_deaf() { self.reached_since(held) } else { None }
    }

    /// Whether the kernel counts its kills and tells nobody.
    fn is_deaf(&self) -> bool {
        self.kills.is_some() && self.shortages.is_none() && self.bell.is_none()
    }

    fn reached_since(&mut self, held: &Bounds) -> Option<Limit> {
        let (now, before) = (self.count(), self.before);
        let killed = now.kills > before.kills;
        let own = |most: &u64| now.shortages > before.shortages || self.came_near(*most);
        let memory = held.memory.filter(|_| killed || self.rung).filter(own).map(Limit::Memory);
        let memory = memory.or(killed.then_some(Limit::SharedMemory));
        let refused = now.refusals > before.refusals;
        let full = |most: &u64| {
            self.processes.as_ref().is_some_and(|file| nearly(number(file, ""), *most))
        };
        let processes = held.processes.filter(|most| refused && full(most)).map(Limit::Processes);
        if processes.is_none() && refused && self.above.iter().any(Crowd::is_full) {
            self.crowded = true;
            self.before.refusals = now.refusals;
        }
        memory.or(processes)
    }

    /// The same for a run that has failed, of which less may be left by now.
    pub fn behind(&mut self, held: &Bounds) -> Option<Limit> {
        let reached = self.reached(held);
        let (now, before) = (self.count(), self.before);
        let refused = now.refusals > before.refusals;
        let own = held.processes.filter(|_| refused).map(Limit::Processes);
        let shared = self.crowded || now.refusals_above > before.refusals_above;
        reached.or(own).or(shared.then_some(Limit::SharedProcesses))
    }

    /// Whether nearly that much memory was used, where nothing better is told.
    fn came_near(&self, most: u64) -> bool {
        self.peak.as_ref().is_some_and(|file| number(file, "") >= most / 100 * 99)
    }

    /// Forgets what happened so far.
    pub fn settle(&mut self, held: &Bounds) {
        self.hear_bell();
        self.rung = false;
        if held.memory.is_some_and(|most| self.came_near(most)) {
            let _ = self.peak.as_ref().map(|file| file.write_at(b"0", 0));
        }
        self.crowded = false;
        self.before = self.count();
    }

    pub fn used(&self) -> u64 {
        self.usage.as_ref().map_or(0, |file| number(file, ""))
    }

    /// Reading is what makes the kernel tell us of the next change.
    fn count(&self) -> Counts {
        Counts {
            refusals: self.refusals.as_ref().map_or(0, refusals),
            refusals_above: self
                .above
                .iter()
                .filter_map(|it| it.refusals.as_ref())
                .map(refusals)
                .sum(),
            kills: self.kills.as_ref().map_or(0, Kills::count),
            shortages: self.shortages.as_ref().map_or(0, |file| number(file, "oom")),
        }
    }

    /// Whether the bell has rung since the run began. It is remembered, because reading the counters can fail
    /// while memory is short.
    fn hear_bell(&mut self) -> bool {
        let bell = self.bell.as_ref();
        self.rung |= bell.is_some_and(|bell| rustix::io::read(bell, &mut [0_u8; 8]).is_ok());
        self.rung
    }
}

fn refusals(file: &File) -> u64 {
    number(file, "max")
}

/// Whether there are about as many as there may be.
fn nearly(number: u64, most: u64) -> bool {
    number.saturating_mul(10) >= most.saturating_mul(9)
}

/// The number that has this name in a file, or all that the file says.
fn number(file: &File, name: &str) -> u64 {
    // These files are short.
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let found = if name.is_empty() { text.trim().parse().ok() } else { field(&text, name) };
    found.unwrap_or(0)
}

/// What the kernel makes ready when there is no memory in a folder of version 1.
fn bell(folder: &Path, oom_control: &File) -> Option<OwnedFd> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
    let wish = format!("{} {}", bell.as_raw_fd(), oom_control.as_raw_fd());
    put(&folder.join("cgroup.event_control"), &wish).then_some(bell)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Bounds = Bounds { memory: Some(5000), processes: Some(7) };

    #[test]
    fn only_what_happened_in_this_run_counts() {
        let place = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(place.path().join(file), text).unwrap();
        write("pids.events", "max 3\n");
        write("pids.current", "2\n");
        write("memory.events", "oom 9\noom_kill 2\noom_group_kill 1\n");
        write("memory.current", "4096\n");
        let folder = Folder { kind: Kind::Unified, path: place.path().to_owned() };
        let mut meters = Meters::open(&[folder], &HELD);
        assert_eq!((meters.reached(&HELD), meters.used()), (None, 4096));
        write("pids.events", "max 4\n");
        assert_eq!(meters.reached(&HELD), None, "there are few by now");
        assert_eq!(meters.behind(&HELD), Some(Limit::Processes(7)));
        write("pids.current", "7\n");
        assert_eq!(meters.reached(&HELD), Some(Limit::Processes(7)));
        write("memory.events", "oom 9\noom_kill 3\noom_group_kill 1\n");
        assert_eq!(meters.reached(&HELD), Some(Limit::SharedMemory));
        write("memory.events", "oom 10\noom_kill 3\noom_group_kill 1\n");
        assert_eq!(meters.reached(&HELD), Some(Limit::Memory(5000)));
        meters.settle(&HELD);
        assert_eq!(meters.reached(&HELD), None);
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
        let folder = Folder { kind: Kind::Processes, path: own };
        let mut meters = Meters::open(&[folder], &HELD);
        write("k0/pids.events", "max 1\n");
        assert_eq!(meters.reached(&HELD), None);
        write("pids.current", "4\n");
        assert_eq!(meters.reached(&HELD), None, "the others have left");
        assert_eq!(meters.behind(&HELD), Some(Limit::SharedProcesses));
        meters.settle(&HELD);
        assert_eq!(meters.behind(&HELD), None);
    }
}
