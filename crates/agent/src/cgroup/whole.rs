//! Folders for all of an agent that can make none itself, as it is in a sandbox.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::meters::Kills;
use super::place::Kind;
use super::{Bounds, Levels, PREFIX, Tree};
use crate::limits::Limits;

/// What an owner's runs may use together is what the whole sandbox may. Gone when this is dropped, which
/// may take a moment.
pub struct Whole {
    trees: Vec<Tree>,
    kills: Option<Kills>,
}

impl Whole {
    pub fn create(limits: &Limits) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos());
        let levels = Levels::of(limits);
        let Levels { owner, all, .. } = levels;
        let least = |one: Option<u64>, other| one.into_iter().chain(other).min();
        let bounds = Bounds {
            memory: least(owner.memory, all.memory),
            processes: least(owner.processes, all.processes),
        };
        let trees = Tree::plant(&name, bounds, &levels, levels.kinds());
        let kills = trees.iter().find_map(|tree| Kills::open(&tree.folder));
        Self { trees, kills }
    }

    /// Has a command be inside, with all it will start.
    pub fn enclose(&self, command: &mut Command) {
        let file = |tree: &Tree| {
            let name = if tree.folder.kind == Kind::Unified { "cgroup.procs" } else { "tasks" };
            File::options().write(true).open(tree.folder.path.join(name)).ok()
        };
        let files: Vec<_> = self.trees.iter().filter_map(file).collect();
        let enter = move || {
            for file in &files {
                // Who cannot go inside is held to less, which is no reason not to be there at all.
                let _ = rustix::io::write(file, b"0");
            }
            Ok(())
        };
        // SAFETY: between fork and exec it makes nothing but system calls.
        unsafe { command.pre_exec(enter) };
    }

    /// How many processes were killed in there for want of memory.
    pub fn kills(&self) -> u64 {
        self.kills.as_ref().map_or(0, Kills::count)
    }
}
