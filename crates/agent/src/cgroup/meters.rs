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
    /// Says how many were killed for want of memory.
    kills: Option<File>,
    /// Says how much memory is used.
    usage: Option<File>,
    /// Rung by version 1 when there is no memory: version 2 ends all of a run by itself.
    bell: Option<OwnedFd>,
    /// As it was when the run began.
    before: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    refusals: u64,
    kills: u64,
}

impl Meters {
    pub fn open(folders: &[Folder], held: &Bounds) -> Self {
        let mut meters = Self::default();
        for Folder { kind, path } in folders {
            let open = |file| File::open(path.join(file)).ok();
            if held.processes.is_some() && *kind != Kind::Memory {
                meters.refusals = open("pids.events");
                meters.told = *kind == Kind::Unified && meters.refusals.is_some();
            }
            match kind {
                Kind::Unified if held.memory.is_some() => {
                    meters.kills = open("memory.events");
                    meters.usage = open("memory.current");
                }
                Kind::Memory if held.memory.is_some() => {
                    meters.kills = open("memory.oom_control");
                    meters.usage = open("memory.usage_in_bytes");
                    meters.bell = meters.kills.as_ref().and_then(|kills| bell(path, kills));
                }
                _ => {}
            }
        }
        meters.settle();
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

    /// The limit that was reached since the last run.
    pub fn reached(&mut self, held: &Bounds) -> Option<Limit> {
        let (rung, now, before) = (self.hear_bell(), self.count(), self.before);
        let memory = held.memory.filter(|_| rung || now.kills > before.kills);
        let processes = held.processes.filter(|_| now.refusals > before.refusals);
        memory.map(Limit::Memory).or(processes.map(Limit::Processes))
    }

    /// Forgets what happened so far.
    pub fn settle(&mut self) {
        self.hear_bell();
        self.before = self.count();
    }

    pub fn used(&self) -> u64 {
        let text = self.usage.as_ref().and_then(read);
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Reading is what makes the kernel tell us of the next change.
    fn count(&self) -> Counts {
        let count = |file: &Option<File>, name| {
            let text = file.as_ref().and_then(read);
            text.and_then(|text| field(&text, name)).unwrap_or(0)
        };
        Counts { refusals: count(&self.refusals, "max"), kills: count(&self.kills, "oom_kill") }
    }

    fn hear_bell(&self) -> bool {
        let bell = self.bell.as_ref();
        bell.is_some_and(|bell| rustix::io::read(bell, &mut [0_u8; 8]).is_ok())
    }
}

/// These files are short.
fn read(file: &File) -> Option<String> {
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
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
        write("memory.events", "oom 9\noom_kill 2\noom_group_kill 1\n");
        write("memory.current", "4096\n");
        let folder = Folder { kind: Kind::Unified, path: place.path().to_owned() };
        let mut meters = Meters::open(&[folder], &HELD);
        assert_eq!((meters.reached(&HELD), meters.used()), (None, 4096));
        write("pids.events", "max 4\n");
        assert_eq!(meters.reached(&HELD), Some(Limit::Processes(7)));
        write("memory.events", "oom 9\noom_kill 3\noom_group_kill 1\n");
        assert_eq!(meters.reached(&HELD), Some(Limit::Memory(5000)));
        meters.settle();
        assert_eq!(meters.reached(&HELD), None);
    }
}
