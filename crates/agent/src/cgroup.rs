//! cgroup folders for an agent, its owners and each keeper's runs, where the system lets us make some.
//!
//!     <our own cgroup>/mcpz-<agent's pid>/       locked while the agent lives; limits all runs together
//!                                        o0/     limits the first owner's runs together
//!                                          k0/   limits keeper 0's run
//!                                          k1/
//!                      mcpz-<server's pid>-<n>/  limits one owner's whole sandbox
//!
//! They limit memory and the number of processes, and share out CPU time. Version 2 has one folder for all of
//! that, and runs start inside it (`clone3` with `CLONE_INTO_CGROUP`, so far only on x86_64). Version 1 has one
//! folder for each controller, and the keeper must be inside as well. If the cgroup above ours enables the memory
//! controller and ours does not, the agent's folder of version 2 is a sibling of our own cgroup. An agent in a
//! sandbox cannot make cgroups, so its server puts the whole sandbox into one. The recorder of a detached job makes
//! folders of its own, beside the agent's and so beside all owners.
//!
//! In version 2, writing to `cgroup.kill` ends all processes of a run at once, even of a program that forks
//! faster than anyone can signal it. Everything works without cgroups too, which ordinary users often cannot make:
//! keepers then scan and signal until nothing is left.

mod counters;
mod folder;
mod hierarchy;
mod keeper;
mod sandbox;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::limits::{CpuShare, Limits, Memory, OwnerLimits};
pub use counters::Alarm;
pub use folder::CgroupLimits;
use folder::{Folder, remove};
pub use hierarchy::thaw;
use hierarchy::{Hierarchy, put};
pub use keeper::KeeperCgroup;
pub use sandbox::SandboxCgroup;

const PREFIX: &str = "mcpz-";

/// How long to wait for processes that a killed agent has left in its cgroups.
const CLEAR_TIME: Duration = Duration::from_secs(5);
const CLEAR_INTERVAL: Duration = Duration::from_millis(10);

/// How many folders of living agents to look at, in search of those of others.
const MOST_IN_USE: usize = 32;

const HIERARCHIES: [Hierarchy; 4] =
    [Hierarchy::Unified, Hierarchy::Memory, Hierarchy::Pids, Hierarchy::Cpu];

/// Memory limits are rounded down to this.
const MIB: u64 = 1 << 20;

/// The limits of each level of folders. If runs are limited at all, all of them together get less than our own cgroup
/// has, even in a folder beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitLevels {
    run: CgroupLimits,
    owner: CgroupLimits,
    /// Leaves room for the server, the agent and the keepers.
    all: CgroupLimits,
    cpu: CpuShare,
}

impl LimitLevels {
    /// Whether a keeper must be in a folder of this hierarchy because a level above the run limits it.
    fn limit_above_run(&self, hierarchy: Hierarchy) -> bool {
        match hierarchy {
            Hierarchy::Unified => true,
            Hierarchy::Memory => self.owner.memory.or(self.all.memory).is_some(),
            Hierarchy::Pids => self.owner.processes.or(self.all.processes).is_some(),
            Hierarchy::Cpu => self.shares_cpu(),
        }
    }

    fn hierarchies(&self) -> impl Iterator<Item = Hierarchy> {
        HIERARCHIES.into_iter().filter(|it| self.shares_cpu() || *it != Hierarchy::Cpu)
    }

    fn shares_cpu(&self) -> bool {
        self.cpu != CpuShare::Any
    }

    fn new(limits: &Limits) -> Self {
        let (available, processes) = (hierarchy::memory(), hierarchy::processes());
        let memory = |wanted| match wanted {
            Memory::Most => available.map(|all| all / 10 * 8 / MIB * MIB),
            Memory::Bytes(bytes) => Some(bytes),
            Memory::Unlimited => None,
        };
        let OwnerLimits { memory: shared, processes: most, cpu } = limits.per_owner;
        let run = CgroupLimits { memory: memory(limits.memory), processes: limits.processes };
        let owner = CgroupLimits { memory: memory(shared), processes: most };
        let any = run.memory.or(owner.memory).and(available);
        let any_processes = run.processes.or(owner.processes).and(processes);
        let all = CgroupLimits {
            memory: any.map(|all| all / 10 * 9),
            processes: any_processes.map(|all| all / 2),
        };
        Self { run, owner, all, cpu }
    }
}

/// The agent's own folders, removed when this is dropped.
pub struct AgentCgroups {
    roots: Vec<LockedFolder>,
    levels: LimitLevels,
    created: u64,
}

impl AgentCgroups {
    /// Makes what folders it can, and removes what killed agents have left behind.
    pub fn create(limits: &Limits) -> Self {
        let (levels, name) = (LimitLevels::new(limits), format!("{PREFIX}{}", std::process::id()));
        // So far only x86_64 can start a process inside a cgroup of version 2.
        let hierarchies =
            levels.hierarchies().filter(|it| it.holds_keeper() || cfg!(target_arch = "x86_64"));
        let roots = LockedFolder::create_all(&name, levels.all, &levels, hierarchies);
        Self { roots, levels, created: 0 }
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.folder.path.clone()).collect()
    }

    /// Makes folders for a keeper of this owner.
    pub fn add(&mut self, owner: u64) -> Option<KeeperCgroup> {
        let name = format!("k{}", self.created);
        self.created += 1;
        let below = |root: &LockedFolder| Some(root.of_owner(owner, &self.levels)?.below(&name));
        KeeperCgroup::create(self.roots.iter().filter_map(below).collect(), self.levels)
    }

    /// Kills all runs, in version 2. Nothing can be started in these folders afterwards.
    pub fn kill(&self) {
        let unified = self.roots.iter().filter(|it| it.folder.hierarchy == Hierarchy::Unified);
        for root in unified {
            put(&root.folder.path.join("cgroup.kill"), "1");
        }
    }

    /// Removes the folders of an owner who has no keepers left: an owner's folders go with the last of them.
    pub fn forget(&self, owner: u64) {
        for root in &self.roots {
            remove(&root.folder.below(&owner_name(owner)).path);
        }
    }
}

/// A top-level folder of ours, removed when this is dropped. The lock says that it is in use.
struct LockedFolder {
    folder: Folder,
    _lock: File,
}

impl LockedFolder {
    /// Makes one folder in each hierarchy where that is possible.
    fn create_all(
        name: &str,
        limits: CgroupLimits,
        levels: &LimitLevels,
        hierarchies: impl Iterator<Item = Hierarchy>,
    ) -> Vec<Self> {
        let create = |hierarchy| {
            let parents = hierarchy::parents(hierarchy, levels.shares_cpu());
            let root = parents.iter().find_map(|parent| Self::create(hierarchy, parent, name))?;
            root.folder.set_limits(limits);
            root.folder.set_cpu_weight(levels.cpu);
            Some(root)
        };
        hierarchies.filter_map(create).collect()
    }

    fn create(hierarchy: Hierarchy, parent: &Path, name: &str) -> Option<Self> {
        clear_abandoned(parent);
        let folder = Folder { hierarchy, path: parent.join(name) };
        // Until the folder is locked, another agent may take it for an abandoned one and remove it.
        for _ in 0..3 {
            fs::create_dir(&folder.path).ok()?;
            let _lock = lock(&folder.path).filter(|_| folder.path.exists());
            if hierarchy == Hierarchy::Unified && !folder.path.join("cgroup.kill").exists() {
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

    /// The folder of an owner, made if it does not exist.
    fn of_owner(&self, owner: u64, levels: &LimitLevels) -> Option<Folder> {
        let folder = self.folder.below(&owner_name(owner));
        if !folder.path.exists() {
            self.folder.enable_controllers(levels.shares_cpu());
            fs::create_dir(&folder.path).ok()?;
            folder.set_limits(levels.owner);
            folder.enable_controllers(levels.shares_cpu());
        }
        Some(folder)
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // The kernel may still count a process that has just ended.
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

/// Kills what is in the folder of an agent that is gone, where that is possible, and removes it.
fn clear(path: &Path) -> bool {
    put(&path.join("cgroup.kill"), "1");
    remove(path) || !path.exists()
}

/// Clears the folders of an agent that was killed, and waits for the processes in them to end.
pub fn clear_all(paths: &[PathBuf]) {
    let until = Instant::now() + CLEAR_TIME;
    for path in paths {
        while !clear(path) && Instant::now() < until {
            std::thread::sleep(CLEAR_INTERVAL);
        }
    }
}

/// Clears the folders of agents that are gone: nobody holds their locks. Stops after so many that are in use, or the
/// thousandth agent would look at a thousand; which ones differs from agent to agent.
fn clear_abandoned(parent: &Path) {
    let names = fs::read_dir(parent).into_iter().flatten().flatten().map(|it| it.file_name());
    let is_ours = |name: &OsString| {
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        number.is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit() || it == b'-'))
    };
    let mut ours: Vec<_> = names.filter(is_ours).collect();
    let first = std::process::id() as usize % ours.len().max(1);
    ours.rotate_left(first);
    let mut in_use = 0;
    for path in ours.iter().map(|name| parent.join(name)) {
        // Held while clearing, because another agent may be making a folder of the same name.
        match lock(&path) {
            Some(_lock) => drop(clear(&path)),
            None => in_use += 1,
        }
        if in_use == MOST_IN_USE {
            break;
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

    #[test]
    fn abandoned_folders_are_cleared_and_not_all_that_are_in_use_are_looked_at() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let abandoned: Vec<_> = (0..100).map(|number| make(format!("mcpz-{number}"))).collect();
        let other = make("mcpz-x".to_owned());
        clear_abandoned(parent.path());
        assert!(abandoned.iter().all(|path| !path.exists()));
        let used: Vec<_> = (0..100).map(|number| make(format!("mcpz-{number}"))).collect();
        let locks: Vec<_> = used.iter().map(|path| lock(path).unwrap()).collect();
        clear_abandoned(parent.path());
        assert!(used.iter().all(|path| path.exists()));
        drop(locks);
        clear_abandoned(parent.path());
        assert!(used.iter().all(|path| !path.exists()));
        assert!(other.exists());
    }
}
