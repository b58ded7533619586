//! A cgroup v2 folder for each keeper's runs, where the system lets us make one.
//!
//!     <our own cgroup>/mcpz-<agent's pid>/      locked while the agent lives
//!                                        k0/    the processes of keeper 0's run
//!                                        k1/
//!
//! Writing to `cgroup.kill` ends all of a run's processes at once, which no number of signals can do
//! to a program that forks faster than it is looked at. It is an addition: without it, keepers do
//! the same by looking and signalling until nothing is left.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};

const PREFIX: &str = "mcpz-";

/// The agent's own folder.
pub struct Groups {
    path: PathBuf,
    made: u64,
    _lock: File,
}

/// One keeper's folder. It is empty between runs.
pub struct Group {
    path: PathBuf,
    folder: OwnedFd,
}

impl Groups {
    /// Makes the folder, or says that there is no way to have one here. Clears away what a killed
    /// agent left behind.
    pub fn create() -> Option<Self> {
        let parent = own_folder()?;
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let lock = lock(&path);
        if lock.is_none() || !path.join("cgroup.kill").exists() {
            remove(&path);
            return None;
        }
        Some(Self { path, made: 0, _lock: lock? })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder below.
    pub fn add(&mut self) -> Option<Group> {
        let path = self.path.join(format!("k{}", self.made));
        self.made += 1;
        fs::create_dir(&path).ok()?;
        let folder = File::open(&path).ok()?.into();
        Some(Group { path, folder })
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Group {
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Kills everything inside.
    pub fn kill(&self) {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = openat(self.folder.as_fd(), "cgroup.kill", flags, Mode::empty()) {
            let _ = rustix::io::write(&file, b"1");
        }
    }

    /// Removes the folder, with folders the run made inside it.
    pub fn remove(self) {
        remove(&self.path);
    }
}

/// Kills everything in an agent's folder and removes it: for whoever outlives the agent.
pub fn clear(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    remove(path);
}

/// Removes a folder and those below it. One that still has processes stays.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Clears the folders of agents that are gone: nobody holds their lock.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours && lock(&entry.path()).is_some() {
            clear(&entry.path());
        }
    }
}

fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Where our own cgroup is in the file system. Only x86_64 has a way to start a process inside a
/// cgroup so far.
fn own_folder() -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| folder_at(line, own))
}

/// The folder of the cgroup `own`, if `mount` (a line of `mountinfo`) is a cgroup v2 mount that
/// shows it.
fn folder_at(mount: &str, own: &str) -> Option<PathBuf> {
    let (mount, kind) = mount.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = Path::new(own).strip_prefix(root).ok()?;
    kind.starts_with("cgroup2 ").then(|| Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_folder_is_found_below_the_mount() {
        let mount = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw";
        let folder = folder_at(mount, "/user.slice/a.scope");
        assert_eq!(folder, Some("/sys/fs/cgroup/user.slice/a.scope".into()));
    }

    #[test]
    fn a_mount_of_a_part_shows_only_that_part() {
        let mount = "30 24 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(folder_at(mount, "/box/run"), Some("/sys/fs/cgroup/run".into()));
        assert_eq!(folder_at(mount, "/other"), None);
    }

    #[test]
    fn a_mount_of_version_one_is_not_taken() {
        let mount = "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu";
        assert_eq!(folder_at(mount, "/"), None);
    }
}
