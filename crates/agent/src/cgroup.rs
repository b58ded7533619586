//! cgroup folders for owners and each keeper's runs, where the system lets us make some.
//!
//!     <our own cgroup>/mcpz-<agent's pid>/       locked while the agent lives; what all may have
//!                                        o0/     what the first owner's runs may have together
//!                                          k0/   the processes of keeper 0's run
//!                                          k1/
//!                      mcpz-<server's pid>-<n>/  all of an owner's sandbox
//!
//! They hold runs to their memory and their number of processes, and share out CPU time. Version 2 has
//! one folder for all that, and runs start inside it; version 1 has one for each, and the keeper is
//! inside as well. Where the one above shares out memory and ours does not, the agent's folder of
//! version 2 is beside our own.
//! In a sandbox no agent can make any: its server puts all of it into one.
//!
//! In version 2, writing to `cgroup.kill` ends all of a run's processes at once, which no number of
//! signals can do to a program that forks faster than it is looked at. All of it is an addition:
//! without, keepers look and signal until nothing is left.

mod group;
mod meters;
mod place;
mod whole;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use group::Folder;
pub use group::Group;
pub use meters::Alarm;
pub use place::thaw;
use place::{Kind, put};
pub use whole::Whole;

use crate::limits::{CpuShare, Limits, Memory, Together};

const PREFIX: &str = "mcpz-";

/// How long what a killed agent has left may take to end.
const CLEAR_TIME: Duration = Duration::from_secs(5);
const CLEAR_AGAIN: Duration = Duration::from_millis(10);

const KINDS: [Kind; 4] = [Kind::Unified, Kind::Memory, Kind::Processes, Kind::Cpu];

/// What sizes are rounded to.
const MIB: u64 = 1 << 20;

/// What folders hold the processes inside them to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub memory: Option<u64>,
    pub processes: Option<u64>,
}

/// What each level is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    run: Bounds,
    owner: Bounds,
    /// All runs together leave room for whoever minds them.
    all: Bounds,
    cpu: CpuShare,
}

impl Levels {
    /// Whether a keeper must be in a folder of this kind for what is above it.
    fn hold_above(&self, kind: Kind) -> bool {
        match kind {
            Kind::Unified => true,
            Kind::Memory => self.owner.memory.or(self.all.memory).is_some(),
            Kind::Processes => self.owner.processes.or(self.all.processes).is_some(),
            Kind::Cpu => self.shares_cpu(),
        }
    }

    fn kinds(&self) -> impl Iterator<Item = Kind> {
        KINDS.into_iter().filter(|kind| self.shares_cpu() || *kind != Kind::Cpu)
    }

    fn shares_cpu(&self) -> bool {
        self.cpu != CpuShare::Any
    }

    fn of(limits: &Limits) -> Self {
        let (there, processes) = (place::memory(), place::processes());
        let memory = |wanted| match wanted {
            Memory::Most => there.map(|all| all / 10 * 8 / MIB * MIB),
            Memory::Bytes(bytes) => Some(bytes),
            Memory::Unlimited => None,
        };
        let Together { memory: shared, processes: most, cpu } = limits.together;
        let run = Bounds { memory: memory(limits.memory), processes: limits.processes };
        let owner = Bounds { memory: memory(shared), processes: most };
        let any = run.memory.or(owner.memory).and(there);
        let any_processes = run.processes.or(owner.processes).and(processes);
        let all = Bounds {
            memory: any.map(|all| all / 10 * 9),
            processes: any_processes.map(|all| all / 2),
        };
        Self { run, owner, all, cpu }
    }
}

/// The agent's own folders, gone when this is dropped.
pub struct Groups {
    trees: Vec<Tree>,
    levels: Levels,
    made: u64,
}

impl Groups {
    /// Makes what folders can be made here, and clears away what a killed agent left behind.
    pub fn create(limits: &Limits) -> Self {
        let (levels, name) = (Levels::of(limits), format!("{PREFIX}{}", std::process::id()));
        // Only x86_64 has a way to start a process inside a cgroup of version 2 so far.
        let kinds = levels.kinds().filter(|it| it.holds_keeper() || cfg!(target_arch = "x86_64"));
        let trees = Tree::plant(&name, levels.all, &levels, kinds);
        Self { trees, levels, made: 0 }
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.trees.iter().map(|tree| tree.folder.path.clone()).collect()
    }

    /// New folders for a keeper whose runs are this owner's.
    pub fn add(&mut self, owner: u64) -> Option<Group> {
        let name = format!("k{}", self.made);
        self.made += 1;
        let below = |tree: &Tree| Some(tree.of_owner(owner, &self.levels)?.below(&name));
        Group::create(self.trees.iter().filter_map(below).collect(), self.levels)
    }

    /// Kills all runs there are, where one word does that. Nothing is started in here any more.
    pub fn kill(&self) {
        let unified = self.trees.iter().filter(|tree| tree.folder.kind == Kind::Unified);
        for tree in unified {
            put(&tree.folder.path.join("cgroup.kill"), "1");
        }
    }

    /// Removes the folders of an owner who has no keepers.
    pub fn forget(&self, owner: u64) {
        for tree in &self.trees {
            remove(&tree.folder.below(&owner_name(owner)).path);
        }
    }
}

/// A folder of ours that is gone when this is dropped, and the lock that says that somebody uses it.
struct Tree {
    folder: Folder,
    _lock: File,
}

impl Tree {
    /// Makes those that can be made.
    fn plant(
        name: &str,
        bounds: Bounds,
        levels: &Levels,
        kinds: impl Iterator<Item = Kind>,
    ) -> Vec<Self> {
        let grow = |kind| {
            let parents = place::parents(kind, levels.shares_cpu());
            let tree = parents.iter().find_map(|parent| Self::grow(kind, parent, name))?;
            tree.folder.bind(bounds);
            tree.folder.weigh(levels.cpu);
            Some(tree)
        };
        kinds.filter_map(grow).collect()
    }

    fn grow(kind: Kind, parent: &Path, name: &str) -> Option<Self> {
        sweep(parent);
        let folder = Folder { kind, path: parent.join(name) };
        // Until it is locked, somebody else may take it for one that was left.
        for _ in 0..3 {
            fs::create_dir(&folder.path).ok()?;
            let _lock = lock(&folder.path).filter(|_| folder.path.exists());
            if kind == Kind::Unified && !folder.path.join("cgroup.kill").exists() {
                remove(&folder.path);
                return None;
            }
            if let Some(_lock) = _lock {
                return Some(Self { folder, _lock });
            }
            remove(&folder.path);
        }
        None
    }

    /// The folder of an owner, made if it is not there.
    fn of_owner(&self, owner: u64, levels: &Levels) -> Option<Folder> {
        let folder = self.folder.below(&owner_name(owner));
        if !folder.path.exists() {
            self.folder.share_out(levels.shares_cpu());
            fs::create_dir(&folder.path).ok()?;
            folder.bind(levels.owner);
            folder.share_out(levels.shares_cpu());
        }
        Some(folder)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A process that has just ended may still be counted.
        for _ in 0..20 {
            if remove(&self.folder.path) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn owner_name(owner: u64) -> String {
    format!("o{owner}")
}

/// Kills what can be killed in an agent's folder and removes it: for whoever outlives the agent.
fn clear(path: &Path) -> bool {
    put(&path.join("cgroup.kill"), "1");
    remove(path) || !path.exists()
}

/// Clears the folders of an agent that was killed. What it has left in there is being ended.
pub fn clear_all(paths: &[PathBuf]) {
    let until = Instant::now() + CLEAR_TIME;
    for path in paths {
        while !clear(path) && Instant::now() < until {
            std::thread::sleep(CLEAR_AGAIN);
        }
    }
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
            let number = name.strip_prefix(PREFIX);
            number.is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit() || it == b'-'))
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
