//! One keeper's folders, in which it starts one run after the other.
//!
//! In version 1 the keeper itself is inside, because its children start where it is. Once a run has lasted a
//! millisecond, the keeper waits outside of the memory cgroup, where it cannot be killed in the run's place. It moves
//! back in to start the next run.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::LimitLevels;
use super::counters::{Alarm, Counters};
use super::folder::{CgroupLimits, Folder, remove};
use super::hierarchy::{Hierarchy, put};
use crate::limits::{CpuShare, Limit};

/// One keeper's folders. Between runs they are empty, except for the keeper itself.
pub struct KeeperCgroup {
    folders: Vec<Folder>,
    levels: LimitLevels,
    enforced: CgroupLimits,
    killed: bool,
    /// Whether the keeper is outside of its memory cgroup.
    outside: bool,
    /// The unified folder, to start processes in.
    handle: Option<OwnedFd>,
    counters: Counters,
}

impl KeeperCgroup {
    pub fn create(mut folders: Vec<Folder>, levels: LimitLevels) -> Option<Self> {
        folders.retain(|folder| fs::create_dir(&folder.path).is_ok());
        let mut enforced = CgroupLimits::default();
        folders.retain(|folder| {
            let CgroupLimits { memory, processes } = folder.set_limits(levels.run);
            folder.kill_together_on_oom();
            enforced.memory = enforced.memory.or(memory);
            enforced.processes = enforced.processes.or(processes);
            let limited = memory.or(processes).is_some();
            let useful = limited || levels.limit_above_run(folder.hierarchy);
            useful || !remove(&folder.path)
        });
        let counters = Counters::default();
        let any = !folders.is_empty();
        let (killed, outside, handle) = (false, false, None);
        any.then_some(Self { folders, levels, enforced, killed, outside, handle, counters })
    }

    /// Moves the keeper into the folders that need it, and opens the files it reads. Afterwards `enforced` is
    /// exact.
    pub fn enter(&mut self) {
        for folder in &self.folders {
            match folder.hierarchy {
                Hierarchy::Unified => self.handle = File::open(&folder.path).ok().map(Into::into),
                Hierarchy::Memory if !folder.move_here() => self.enforced.memory = None,
                Hierarchy::Pids if !folder.move_here() => self.enforced.processes = None,
                Hierarchy::Cpu => drop(folder.move_here()),
                Hierarchy::Memory | Hierarchy::Pids => {}
            }
        }
        self.counters = Counters::open(&self.folders, &self.enforced);
    }

    /// The folder to start runs in, in version 2.
    pub fn folder(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// The limits that the kernel enforces on runs in here.
    pub fn enforced(&self) -> CgroupLimits {
        self.enforced
    }

    /// Whether the kernel notifies us when there are too many processes.
    pub fn notifies(&self) -> bool {
        self.enforced.processes.is_some() && self.counters.notifies()
    }

    /// The descriptors that become ready when a limit is reached.
    pub fn alarms(&self) -> [Option<Alarm<'_>>; 2] {
        self.counters.alarms()
    }

    /// The limit that the run has reached and that ends it, if any.
    pub fn reached(&mut self) -> Option<Limit> {
        self.counters.reached(&self.enforced)
    }

    /// The same, but only if the kernel has notified us: nearly free.
    pub fn reached_if_notified(&mut self) -> Option<Limit> {
        self.counters.reached_if_notified(&self.enforced)
    }

    /// The same for a periodic check, which usually reads one number.
    pub fn reached_on_timer(&mut self) -> Option<Limit> {
        self.counters.reached_on_timer(&self.enforced)
    }

    /// The limit that may have made a run fail.
    pub fn reached_by_failed(&mut self) -> Option<Limit> {
        self.counters.reached_by_failed(&self.enforced)
    }

    /// Moves the keeper out of the run's memory cgroup. A process killed for lack of memory frees it only
    /// after a while, and cannot be chosen again; if the keeper needed a page meanwhile, it would be killed next.
    pub fn leave_memory(&mut self) {
        if !self.outside {
            self.outside = true;
            self.leave(Hierarchy::Memory);
        }
    }

    /// Moves the keeper back in, because its children start in the cgroup it is in.
    pub fn rejoin_memory(&mut self) {
        if !self.outside {
            return;
        }
        self.outside = false;
        let mut memory = self.folders.iter().filter(|it| it.hierarchy == Hierarchy::Memory);
        if !memory.all(Folder::move_here) {
            self.enforced.memory = None;
        }
    }

    /// Moves the keeper to the agent's cgroup, which has no limit of ours, or else one level up.
    fn leave(&self, hierarchy: Hierarchy) {
        for folder in self.folders.iter().filter(|folder| folder.hierarchy == hierarchy) {
            let above = [3, 1].into_iter().filter_map(|levels| folder.path.ancestors().nth(levels));
            above.map(|above| above.join("tasks")).find(|tasks| put(tasks, "0"));
        }
    }

    /// Gives a run that is to end, and its keeper, a normal share of CPU time. With the least share they would
    /// get none for many seconds on a busy machine.
    pub fn raise_cpu_weight(&self) {
        if self.levels.cpu != CpuShare::Least {
            return;
        }
        for Folder { hierarchy, path } in &self.folders {
            // The owner's folder is above the keeper's, and the one with the weight above that.
            if let Some(all) = path.ancestors().nth(2) {
                let all = Folder { hierarchy: *hierarchy, path: all.to_owned() };
                all.set_cpu_weight(CpuShare::Even);
            }
        }
    }

    /// The processes inside, without the keeper. Processes of root can move to other cgroups and are then
    /// missing here.
    pub fn pids(&self) -> Vec<i32> {
        let me = std::process::id() as i32;
        let inside = self
            .folders
            .iter()
            .find_map(|folder| fs::read_to_string(folder.path.join("cgroup.procs")).ok());
        let pids = inside.unwrap_or_default();
        pids.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid != me).collect()
    }

    /// Kills everything inside, in version 2. The folders must be renewed afterwards.
    pub fn kill(&mut self) {
        self.leave_memory();
        self.killed = true;
        self.raise_cpu_weight();
        for folder in self.folders.iter().filter(|it| it.hierarchy == Hierarchy::Unified) {
            // By path: the agent calls this too, and the keeper may have renewed the folder since.
            put(&folder.path.join("cgroup.kill"), "1");
        }
    }

    /// The folders for the next run. They are made again after a kill, because Linux compares a folder's count
    /// of kills with that of the starting process's own folder and kills whatever is started in a folder that
    /// was ever killed. They are also made again when half full: files in memory that a run left behind count
    /// where they were made.
    pub fn renew(mut self) -> Option<Self> {
        let full = self.enforced.memory.is_some_and(|most| self.counters.used() > most / 2);
        if !self.killed && !full {
            self.counters.reset(&self.enforced);
            return Some(self);
        }
        self.leave_memory();
        [Hierarchy::Pids, Hierarchy::Cpu].into_iter().for_each(|hierarchy| self.leave(hierarchy));
        let (folders, levels) = (self.folders.clone(), self.levels);
        self.remove();
        let mut cgroup = Self::create(folders, levels)?;
        cgroup.enter();
        Some(cgroup)
    }

    /// Removes the folders, with those that the run made inside them.
    pub fn remove(self) {
        for folder in &self.folders {
            remove(&folder.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_end_gives_way_no_longer() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("cpu.shares"), "").unwrap();
        let all = Folder { hierarchy: Hierarchy::Cpu, path: place.path().to_owned() };
        fs::create_dir(place.path().join("o0")).unwrap();
        let (run, owner) = (CgroupLimits::default(), CgroupLimits::default());
        let levels = LimitLevels { run, owner, all: CgroupLimits::default(), cpu: CpuShare::Least };
        let cgroup = KeeperCgroup::create(vec![all.below("o0").below("k0")], levels).unwrap();
        all.set_cpu_weight(CpuShare::Least);
        cgroup.raise_cpu_weight();
        let given = fs::read_to_string(place.path().join("cpu.shares")).unwrap();
        assert!(given.parse::<u32>().unwrap() >= 1024, "{given}");
    }
}
