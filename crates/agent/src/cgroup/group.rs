//! The folders one run after the other is in, and what they hold it to.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use super::meters::{Alarm, Meters};
use super::place::{Kind, put, share_out};
use super::{Bounds, Levels, remove};
use crate::limits::{CpuShare, Limit};

/// What the kernel takes in version 2; version 1 takes more.
const MOST_WEIGHT: usize = 10_000;

/// One keeper's folders. They are empty between runs, but for the keeper.
pub struct Group {
    folders: Vec<Folder>,
    levels: Levels,
    held: Bounds,
    killed: bool,
    /// Whether the keeper has left where memory is counted.
    outside: bool,
    /// What the keeper has open.
    handle: Option<OwnedFd>,
    meters: Meters,
}

#[derive(Debug, Clone)]
pub struct Folder {
    pub kind: Kind,
    pub path: PathBuf,
}

impl Group {
    pub fn create(mut folders: Vec<Folder>, levels: Levels) -> Option<Self> {
        folders.retain(|folder| fs::create_dir(&folder.path).is_ok());
        let mut held = Bounds::default();
        folders.retain(|folder| {
            let Bounds { memory, processes } = folder.bind(levels.run);
            folder.bind_together();
            held.memory = held.memory.or(memory);
            held.processes = held.processes.or(processes);
            let useful = memory.or(processes).is_some() || levels.hold_above(folder.kind);
            useful || !remove(&folder.path)
        });
        let meters = Meters::default();
        let any = !folders.is_empty();
        let (killed, outside, handle) = (false, false, None);
        any.then_some(Self { folders, levels, held, killed, outside, handle, meters })
    }

    /// Goes inside where the keeper has to be, and opens what it needs. Only limits that hold are
    /// held after that.
    pub fn enter(&mut self) {
        for folder in &self.folders {
            match folder.kind {
                Kind::Unified => self.handle = File::open(&folder.path).ok().map(Into::into),
                Kind::Memory if !folder.take_in() => self.held.memory = None,
                Kind::Processes if !folder.take_in() => self.held.processes = None,
                Kind::Cpu => drop(folder.take_in()),
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

    /// The limit that was reached since the run began and is to end it, if there is one.
    pub fn reached(&mut self) -> Option<Limit> {
        self.meters.reached(&self.held)
    }

    /// The same, if the kernel has called: that costs nearly nothing to ask.
    pub fn reached_loudly(&mut self) -> Option<Limit> {
        self.meters.reached_loudly(&self.held)
    }

    /// The same for a periodic look, which reads one number.
    pub fn reached_silently(&mut self) -> Option<Limit> {
        self.meters.reached_silently(&self.held)
    }

    /// The limit that a run which failed may have failed of.
    pub fn behind(&mut self) -> Option<Limit> {
        self.meters.behind(&self.held)
    }

    /// Takes the keeper out of where the run's memory is counted. A process that was killed for having too
    /// much does not let go of it at once: if the keeper needed a page meanwhile, it would be next.
    pub fn step_out(&mut self) {
        if !self.outside {
            self.outside = true;
            self.leave(Kind::Memory);
        }
    }

    /// Takes the keeper back in, because what it starts is born where it is.
    pub fn step_in(&mut self) {
        if !self.outside {
            return;
        }
        self.outside = false;
        let mut memory = self.folders.iter().filter(|folder| folder.kind == Kind::Memory);
        if !memory.all(Folder::take_in) {
            self.held.memory = None;
        }
    }

    /// Goes to where the agent is, where nothing of ours has a limit; or else up.
    fn leave(&self, kind: Kind) {
        for folder in self.folders.iter().filter(|folder| folder.kind == kind) {
            let above = [3, 1].into_iter().filter_map(|levels| folder.path.ancestors().nth(levels));
            above.map(|above| above.join("tasks")).find(|tasks| put(tasks, "0"));
        }
    }

    /// Gives what is to end, and its keeper, the time they need for that: on a busy machine those
    /// that get what others leave would get none for many seconds.
    pub fn hurry(&self) {
        if self.levels.cpu != CpuShare::Least {
            return;
        }
        for Folder { kind, path } in &self.folders {
            // Above a keeper's folder is its owner's, and above that the one that has a weight.
            if let Some(all) = path.ancestors().nth(2) {
                Folder { kind: *kind, path: all.to_owned() }.weigh(CpuShare::Even);
            }
        }
    }

    /// The processes inside, but for this one. Those that have left for another folder, as root's can, are
    /// not among them.
    pub fn members(&self) -> Vec<i32> {
        let me = std::process::id() as i32;
        let inside = self
            .folders
            .iter()
            .find_map(|folder| fs::read_to_string(folder.path.join("cgroup.procs")).ok());
        let pids = inside.unwrap_or_default();
        pids.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid != me).collect()
    }

    /// Kills everything inside, where that can be done. The folders are not used again.
    pub fn kill(&mut self) {
        self.step_out();
        self.killed = true;
        self.hurry();
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
            self.meters.settle(&self.held);
            return Some(self);
        }
        self.step_out();
        [Kind::Processes, Kind::Cpu].into_iter().for_each(|kind| self.leave(kind));
        let (folders, levels) = (self.folders.clone(), self.levels);
        self.remove();
        let mut group = Self::create(folders, levels)?;
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
    pub fn below(&self, name: &str) -> Self {
        Self { kind: self.kind, path: self.path.join(name) }
    }

    /// Puts this thread inside. One that moves itself is the only one the kernel does not stop all others for.
    fn take_in(&self) -> bool {
        put(&self.path.join("tasks"), "0")
    }

    /// Has all inside be ended for want of memory if one is: a run without one of its processes is of
    /// no use.
    fn bind_together(&self) {
        put(&self.path.join("memory.oom.group"), "1");
    }

    /// Lets folders below hold what is inside them to less.
    pub fn share_out(&self, cpu: bool) {
        if self.kind == Kind::Unified {
            share_out(&self.path, cpu);
        }
    }

    /// Has all inside compete with what is beside this folder as if there were one process of them for
    /// each processor, or give way to it. Without, all of them would count for one.
    pub fn weigh(&self, share: CpuShare) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (file, usual, least) = match self.kind {
            Kind::Unified => ("cpu.weight", 100, 1),
            Kind::Cpu => ("cpu.shares", 1024, 2),
            Kind::Memory | Kind::Processes => return,
        };
        let weight = match share {
            CpuShare::Any => return,
            CpuShare::Even => (usual * processors).min(MOST_WEIGHT),
            CpuShare::Least => least,
        };
        put(&self.path.join(file), &weight.to_string());
    }

    /// Holds all inside to what is wanted, as far as this folder can. Says what it holds.
    pub fn bind(&self, wanted: Bounds) -> Bounds {
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
                }
                Bounds { memory, processes: processes() }
            }
            Kind::Memory => {
                let memory = memory("memory.limit_in_bytes");
                memory.map(|most| put("memory.memsw.limit_in_bytes", most));
                Bounds { memory, processes: None }
            }
            Kind::Processes => Bounds { memory: None, processes: processes() },
            Kind::Cpu => Bounds::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert_eq!(files.map(|file| said(place.path(), file)), ["5000", "0", "", "7"]);
        // Of what holds several runs, not all have to go.
        folder.bind_together();
        assert_eq!(said(place.path(), "memory.oom.group"), "1");
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

    #[test]
    fn what_is_beside_all_owners_gives_way() {
        let place = tempfile::tempdir().unwrap();
        for (kind, file, least) in
            [(Kind::Unified, "cpu.weight", "1"), (Kind::Cpu, "cpu.shares", "2")]
        {
            let folder = folder(kind, place.path(), &[file]);
            folder.weigh(CpuShare::Any);
            assert_eq!(said(place.path(), file), "");
            folder.weigh(CpuShare::Least);
            assert_eq!(said(place.path(), file), least);
        }
    }
    #[test]
    fn what_is_to_end_gives_way_no_longer() {
        let place = tempfile::tempdir().unwrap();
        let all = folder(Kind::Cpu, place.path(), &["cpu.shares"]);
        fs::create_dir(place.path().join("o0")).unwrap();
        let (run, owner) = (Bounds::default(), Bounds::default());
        let levels = Levels { run, owner, all: Bounds::default(), cpu: CpuShare::Least };
        let group = Group::create(vec![all.below("o0").below("k0")], levels).unwrap();
        all.weigh(CpuShare::Least);
        group.hurry();
        let (given, least) = (said(place.path(), "cpu.shares"), 1024);
        assert!(given.parse::<u32>().unwrap() >= least, "{given}");
    }
}
