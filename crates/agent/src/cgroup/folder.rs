//! One cgroup folder, and the limits it enforces on the processes inside.

use std::fs;
use std::path::{Path, PathBuf};

use super::hierarchy::{self, Hierarchy, put};
use crate::limits::CpuShare;

/// The largest weight that version 2 accepts; version 1 accepts more.
const MAX_WEIGHT: usize = 10_000;

/// What a folder limits its processes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    pub memory: Option<u64>,
    pub processes: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Folder {
    pub hierarchy: Hierarchy,
    pub path: PathBuf,
}

impl Folder {
    pub fn below(&self, name: &str) -> Self {
        Self { hierarchy: self.hierarchy, path: self.path.join(name) }
    }

    /// Moves this thread inside. A thread that moves itself, by `0` in `tasks`, is the only move for which the kernel
    /// does not wait for all processors. Through `cgroup.procs` it would take 16 ms.
    pub fn move_here(&self) -> bool {
        put(&self.path.join("tasks"), "0")
    }

    /// Makes the kernel kill all processes inside when it kills one for lack of memory: a run that lost one of
    /// its processes is useless. Only for a single run's folder: where several share the memory, one of them is enough.
    pub fn kill_together_on_oom(&self) {
        put(&self.path.join("memory.oom.group"), "1");
    }

    /// Lets the folders below have limits of their own.
    pub fn enable_controllers(&self, cpu: bool) {
        if self.hierarchy == Hierarchy::Unified {
            hierarchy::enable_controllers(&self.path, cpu);
        }
    }

    /// Weighs the processes inside against the folder's siblings: as one process for each processor, or as
    /// little as possible. By default, all of them together weigh as much as one.
    pub fn set_cpu_weight(&self, share: CpuShare) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (file, usual, least) = match self.hierarchy {
            Hierarchy::Unified => ("cpu.weight", 100, 1),
            Hierarchy::Cpu => ("cpu.shares", 1024, 2),
            Hierarchy::Memory | Hierarchy::Pids => return,
        };
        let weight = match share {
            CpuShare::Any => return,
            CpuShare::Even => (usual * processors).min(MAX_WEIGHT),
            CpuShare::Least => least,
        };
        put(&self.path.join(file), &weight.to_string());
    }

    /// Limits the processes inside as far as this hierarchy can. Returns the limits that are enforced.
    pub fn set_limits(&self, wanted: CgroupLimits) -> CgroupLimits {
        let put = |file: &str, value: u64| put(&self.path.join(file), &value.to_string());
        let memory = |file| wanted.memory.filter(|most| put(file, *most));
        // In version 1 the keeper is inside and counts.
        let own = u64::from(self.hierarchy.holds_keeper());
        let processes =
            || wanted.processes.filter(|most| put("pids.max", most.saturating_add(own)));
        match self.hierarchy {
            Hierarchy::Unified => {
                let memory = memory("memory.max");
                if memory.is_some() {
                    put("memory.swap.max", 0);
                }
                CgroupLimits { memory, processes: processes() }
            }
            Hierarchy::Memory => {
                let memory = memory("memory.limit_in_bytes");
                memory.map(|most| put("memory.memsw.limit_in_bytes", most));
                CgroupLimits { memory, processes: None }
            }
            Hierarchy::Pids => CgroupLimits { memory: None, processes: processes() },
            Hierarchy::Cpu => CgroupLimits::default(),
        }
    }
}

/// Removes a folder and the folders below it. One that still has processes stays.
pub fn remove(path: &Path) -> bool {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    fs::remove_dir(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(hierarchy: Hierarchy, path: &Path, files: &[&str]) -> Folder {
        for file in files {
            fs::write(path.join(file), "").unwrap();
        }
        Folder { hierarchy, path: path.to_owned() }
    }

    fn said(path: &Path, file: &str) -> String {
        fs::read_to_string(path.join(file)).unwrap()
    }

    const WANTED: CgroupLimits = CgroupLimits { memory: Some(5000), processes: Some(7) };

    #[test]
    fn version_two_holds_memory_and_processes_and_ends_a_run_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let files = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"];
        let folder = folder(Hierarchy::Unified, place.path(), &files);
        assert_eq!(folder.set_limits(WANTED), WANTED);
        assert_eq!(files.map(|file| said(place.path(), file)), ["5000", "0", "", "7"]);
        // Only for a single run: a folder of several must not lose all of them.
        folder.kill_together_on_oom();
        assert_eq!(said(place.path(), "memory.oom.group"), "1");
    }

    #[test]
    fn what_a_folder_has_no_file_for_it_does_not_hold() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(Hierarchy::Unified, place.path(), &["pids.max"]);
        assert_eq!(folder.set_limits(WANTED), CgroupLimits { memory: None, ..WANTED });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no file is made");
    }

    #[test]
    fn version_one_counts_the_keeper_and_swap() {
        let place = tempfile::tempdir().unwrap();
        let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max"];
        let memory = folder(Hierarchy::Memory, place.path(), &files);
        let processes = folder(Hierarchy::Pids, place.path(), &files);
        assert_eq!(memory.set_limits(WANTED), CgroupLimits { processes: None, ..WANTED });
        assert_eq!(processes.set_limits(WANTED), CgroupLimits { memory: None, ..WANTED });
        assert_eq!(files.map(|file| said(place.path(), file)), ["5000", "5000", "8"]);
    }

    #[test]
    fn what_is_beside_all_owners_gives_way() {
        let place = tempfile::tempdir().unwrap();
        for (hierarchy, file, least) in
            [(Hierarchy::Unified, "cpu.weight", "1"), (Hierarchy::Cpu, "cpu.shares", "2")]
        {
            let folder = folder(hierarchy, place.path(), &[file]);
            folder.set_cpu_weight(CpuShare::Any);
            assert_eq!(said(place.path(), file), "");
            folder.set_cpu_weight(CpuShare::Least);
            assert_eq!(said(place.path(), file), least);
        }
    }
}
