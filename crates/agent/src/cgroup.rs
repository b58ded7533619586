//! cgroup folders for each keeper's runs, where the system lets us make some.
//!
//!     <our own cgroup>/mcpz-<agent's pid>/      locked while the agent lives
//!                                        k0/    the processes of keeper 0's run
//!                                        k1/
//!
//! They hold a run to its memory and its number of processes. Version 2 has one folder for all that,
//! and runs start inside it; version 1 has one for each, and the keeper is inside as well. Where the
//! one above shares out memory and ours does not, the agent's folder of version 2 is beside our own.
//!
//! In version 2, writing to `cgroup.kill` ends all of a run's processes at once, which no number of
//! signals can do to a program that forks faster than it is looked at. All of it is an addition:
//! without, keepers look and signal until nothing is left.

mod meters;
mod place;

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

pub use meters::Alarm;
use meters::Meters;
pub use place::thaw;
use place::{Kind, put};

use crate::limits::{Limit, Limits, Memory};

const PREFIX: &str = "mcpz-";

const KINDS: [Kind; 3] = [Kind::Unified, Kind::Memory, Kind::Processes];

/// What sizes are rounded to.
const MIB: u64 = 1 << 20;

/// What folders hold the processes inside them to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub memory: Option<u64>,
    pub processes: Option<u64>,
}

/// The agent's own folders, gone when this is dropped.
pub struct Groups {
    trees: Vec<Folder>,
    /// For each run.
    wanted: Bounds,
    made: u64,
    _locks: Vec<File>,
}

/// One keeper's folders. They are empty between runs, but for the keeper.
pub struct Group {
    folders: Vec<Folder>,
    wanted: Bounds,
    held: Bounds,
    killed: bool,
    /// What the keeper has open.
    handle: Option<OwnedFd>,
    meters: Meters,
}

#[derive(Debug, Clone)]
struct Folder {
    kind: Kind,
    path: PathBuf,
}

impl Groups {
    /// Makes what folders can be made here, and clears away what a killed agent left behind.
    pub fn create(limits: &Limits) -> Self {
        let (memory, processes) = (place::memory(), place::processes());
        let wanted = Bounds {
            memory: match limits.memory {
                Memory::Most => memory.map(|all| all / 10 * 8 / MIB * MIB),
                Memory::Bytes(bytes) => Some(bytes),
                Memory::Unlimited => None,
            },
            processes: limits.processes,
        };
        // All runs together leave room for whoever minds them.
        let total = Bounds {
            memory: wanted.memory.and(memory).map(|all| all / 10 * 9),
            processes: wanted.processes.and(processes).map(|all| all / 2),
        };
        let mut groups = Self { trees: Vec::new(), wanted, made: 0, _locks: Vec::new() };
        for kind in KINDS {
            let made = place::parents(kind).iter().find_map(|parent| tree(kind, parent));
            if let Some((folder, lock)) = made {
                folder.bind(total);
                groups.trees.push(folder);
                groups._locks.push(lock);
            }
        }
        groups
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.trees.iter().map(|tree| tree.path.clone()).collect()
    }

    /// New folders below.
    pub fn add(&mut self) -> Option<Group> {
        let name = format!("k{}", self.made);
        self.made += 1;
        let below = |tree: &Folder| Folder { kind: tree.kind, path: tree.path.join(&name) };
        Group::create(self.trees.iter().map(below).collect(), self.wanted)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for tree in &self.trees {
            // A process that has just ended may still be counted.
            for _ in 0..20 {
                if remove(&tree.path) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// An agent's folder, and the lock that says that somebody uses it.
fn tree(kind: Kind, parent: &Path) -> Option<(Folder, File)> {
    sweep(parent);
    let path = parent.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&path).ok()?;
    let lock = lock(&path);
    if lock.is_none() || (kind == Kind::Unified && !path.join("cgroup.kill").exists()) {
        remove(&path);
        return None;
    }
    for controller in ["+memory", "+pids"] {
        put(&path.join("cgroup.subtree_control"), controller);
    }
    Some((Folder { kind, path }, lock?))
}

impl Group {
    fn create(mut folders: Vec<Folder>, wanted: Bounds) -> Option<Self> {
        folders.retain(|folder| fs::create_dir(&folder.path).is_ok());
        let mut held = Bounds::default();
        folders.retain(|folder| {
            let Bounds { memory, processes } = folder.bind(wanted);
            held.memory = held.memory.or(memory);
            held.processes = held.processes.or(processes);
            let useful = !folder.kind.holds_keeper() || memory.or(processes).is_some();
            useful || !remove(&folder.path)
        });
        let meters = Meters::default();
        let any = !folders.is_empty();
        any.then_some(Self { folders, wanted, held, killed: false, handle: None, meters })
    }

    /// Goes inside where the keeper has to be, and opens what it needs. Only limits that hold are
    /// held after that.
    pub fn enter(&mut self) {
        for folder in &self.folders {
            match folder.kind {
                Kind::Unified => self.handle = File::open(&folder.path).ok().map(Into::into),
                // One thread that moves itself is the only one the kernel does not stop all others
                // for.
                Kind::Memory if !put(&folder.path.join("tasks"), "0") => self.held.memory = None,
                Kind::Processes if !put(&folder.path.join("tasks"), "0") => {
                    self.held.processes = None;
                }
                Kind::Memory | Kind::Processes => {}
            }
        }
        self.meters = Meters::open(&self.folders, &self.held);
    }

    /// Where runs can be started.
    pub fn folder(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// What runs are held to in here.
    pub fn held(&self) -> Bounds {
        self.held
    }

    /// Whether the kernel says by itself that there are too many processes.
    pub fn tells(&self) -> bool {
        self.held.processes.is_some() && self.meters.tells()
    }

    /// What says that a limit was reached.
    pub fn alarms(&self) -> [Option<Alarm<'_>>; 2] {
        self.meters.alarms()
    }

    /// The limit that was reached since the run began, if one was.
    pub fn reached(&mut self) -> Option<Limit> {
        self.meters.reached(&self.held)
    }

    /// Kills everything inside, where that can be done.
    pub fn kill(&mut self) {
        self.killed = true;
        for folder in self.folders.iter().filter(|folder| folder.kind == Kind::Unified) {
            // By its path: the keeper may have renewed the folder since the agent made it.
            put(&folder.path.join("cgroup.kill"), "1");
        }
    }

    /// The folders for the next run: new ones if these were used to kill. Linux compares a folder's
    /// count of kills with that of the starting process's own folder, so what is started inside a
    /// folder that was ever killed is killed at once. Files in memory that a run left behind count
    /// where they were made: a folder half full of them is not used again either.
    pub fn renew(mut self) -> Option<Self> {
        let full = self.held.memory.is_some_and(|most| self.meters.used() > most / 2);
        if !self.killed && !full {
            self.meters.settle();
            return Some(self);
        }
        for folder in self.folders.iter().filter(|folder| folder.kind.holds_keeper()) {
            folder.path.parent().map(|above| put(&above.join("tasks"), "0"));
        }
        let (folders, wanted) = (self.folders.clone(), self.wanted);
        self.remove();
        let mut group = Self::create(folders, wanted)?;
        group.enter();
        Some(group)
    }

    /// Removes the folders, with folders the run made inside them.
    pub fn remove(self) {
        for folder in &self.folders {
            remove(&folder.path);
        }
    }
}

impl Folder {
    /// Holds all inside to what is wanted, as far as this folder can. Says what it holds.
    fn bind(&self, wanted: Bounds) -> Bounds {
        let put = |file: &str, value: u64| put(&self.path.join(file), &value.to_string());
        let memory = |file| wanted.memory.filter(|most| put(file, *most));
        // In version 1 the keeper is one of them.
        let own = u64::from(self.kind.holds_keeper());
        let processes =
            || wanted.processes.filter(|most| put("pids.max", most.saturating_add(own)));
        match self.kind {
            Kind::Unified => {
                let memory = memory("memory.max");
                if memory.is_some() {
                    put("memory.swap.max", 0);
                    // A run without one of its processes is of no use.
                    put("memory.oom.group", 1);
                }
                Bounds { memory, processes: processes() }
            }
            Kind::Memory => {
                let memory = memory("memory.limit_in_bytes");
                memory.map(|most| put("memory.memsw.limit_in_bytes", most));
                Bounds { memory, processes: None }
            }
            Kind::Processes => Bounds { memory: None, processes: processes() },
        }
    }
}

/// Kills what can be killed in an agent's folder and removes it: for whoever outlives the agent.
pub fn clear(path: &Path) {
    put(&path.join("cgroup.kill"), "1");
    remove(path);
}

/// Removes a folder and those below it. One that still has processes stays.
fn remove(path: &Path) -> bool {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    fs::remove_dir(path).is_ok()
}

/// Clears the folders of agents that are gone: nobody holds their lock.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| {
            let pid = name.strip_prefix(PREFIX);
            pid.is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        });
        // Held while clearing: another agent may be making a folder of the same name.
        if ours && let Some(_lock) = lock(&entry.path()) {
            clear(&entry.path());
        }
    }
}

fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(kind: Kind, path: &Path, files: &[&str]) -> Folder {
        for file in files {
            fs::write(path.join(file), "").unwrap();
        }
        Folder { kind, path: path.to_owned() }
    }

    fn said(path: &Path, file: &str) -> String {
        fs::read_to_string(path.join(file)).unwrap()
    }

    const WANTED: Bounds = Bounds { memory: Some(5000), processes: Some(7) };

    #[test]
    fn version_two_holds_memory_and_processes_and_ends_a_run_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let files = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"];
        let folder = folder(Kind::Unified, place.path(), &files);
        assert_eq!(folder.bind(WANTED), WANTED);
        assert_eq!(files.map(|file| said(place.path(), file)), ["5000", "0", "1", "7"]);
    }

    #[test]
    fn what_a_folder_has_no_file_for_it_does_not_hold() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(Kind::Unified, place.path(), &["pids.max"]);
        assert_eq!(folder.bind(WANTED), Bounds { memory: None, ..WANTED });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no file is made");
    }

    #[test]
    fn version_one_counts_the_keeper_and_swap() {
        let place = tempfile::tempdir().unwrap();
        let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max"];
        let memory = folder(Kind::Memory, place.path(), &files);
        let processes = folder(Kind::Processes, place.path(), &files);
        assert_eq!(memory.bind(WANTED), Bounds { processes: None, ..WANTED });
        assert_eq!(processes.bind(WANTED), Bounds { memory: None, ..WANTED });
        assert_eq!(files.map(|file| said(place.path(), file)), ["5000", "5000", "8"]);
    }
}
