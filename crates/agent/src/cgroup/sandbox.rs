//! The folders around a whole sandbox, whose agent cannot make cgroups itself.
//!
//! The child that becomes `bwrap` enters them between fork and exec, and everything in the sandbox is below it. Keepers
//! inside cannot see these folders, so the server itself reads how many processes were killed for lack of memory.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::counters::OomKills;
use super::folder::CgroupLimits;
use super::hierarchy::Hierarchy;
use super::{LimitLevels, LockedFolder, PREFIX};
use crate::limits::Limits;

/// One owner's sandbox, with the limits of that owner's runs together. Dropping this removes the folders,
/// which may block for a moment.
pub struct SandboxCgroup {
    roots: Vec<LockedFolder>,
    oom_kills: Option<OomKills>,
}

impl SandboxCgroup {
    pub fn create(limits: &Limits) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos());
        let levels = LimitLevels::new(limits);
        let LimitLevels { owner, all, .. } = levels;
        let least = |one: Option<u64>, other| one.into_iter().chain(other).min();
        let limits = CgroupLimits {
            memory: least(owner.memory, all.memory),
            processes: least(owner.processes, all.processes),
        };
        let roots = LockedFolder::create_all(&name, limits, &levels, levels.hierarchies());
        let oom_kills = roots.iter().find_map(|root| OomKills::open(&root.folder));
        Self { roots, oom_kills }
    }

    /// Makes a command start inside, and thereby everything it starts.
    pub fn start_inside(&self, command: &mut Command) {
        let file = |root: &LockedFolder| {
            let name = match root.folder.hierarchy {
                Hierarchy::Unified => "cgroup.procs",
                Hierarchy::Memory | Hierarchy::Pids | Hierarchy::Cpu => "tasks",
            };
            File::options().write(true).open(root.folder.path.join(name)).ok()
        };
        let files: Vec<_> = self.roots.iter().filter_map(file).collect();
        let enter = move || {
            for file in &files {
                // A sandbox without this limit is better than none.
                let _ = rustix::io::write(file, b"0");
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure only makes system calls.
        unsafe { command.pre_exec(enter) };
    }

    /// How many processes inside the kernel has killed for lack of memory.
    pub fn oom_kills(&self) -> u64 {
        self.oom_kills.as_ref().map_or(0, OomKills::count)
    }
}
