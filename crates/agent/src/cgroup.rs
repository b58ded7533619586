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
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

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
    killed: bool,
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
        Group::create(path)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Group {
    fn create(path: PathBuf) -> Option<Self> {
        fs::create_dir(&path).ok()?;
        let folder = File::open(&path).ok()?.into();
        Some(Self { path, folder, killed: false })
    }

    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Kills everything inside.
    pub fn kill(&mut self) {
        self.killed = true;
        // By its path: the keeper may have renewed the folder since the agent opened it.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// The folder for the next run: a new one if this one was used to kill. Linux compares a
    /// folder's count of kills with that of the starting process's own folder, so what is started
    /// inside a folder that was ever killed is killed at once.
    pub fn renew(self) -> Option<Self> {
        if !self.killed {
            return Some(self);
        }
        let path = self.path.clone();
        self.remove();
        Self::create(path)
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

/// Lets go of a process that the freezer of cgroup version 1 holds, with the others it holds there:
/// not even SIGKILL ends it before.
pub fn thaw(pid: i32) {
    let frozen = folder_of(&format!("/proc/{pid}/cgroup"), |line| {
        line.split_once(":freezer:").map(|(_, path)| path)
    });
    let folder = frozen.and_then(|path| mounted_at(&path, "cgroup", Some("freezer")));
    if let Some(folder) = folder {
        let _ = fs::write(folder.join("freezer.state"), "THAWED");
    }
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

/// Where our own cgroup is in the file system. Only x86_64 has a way to start a process inside a
/// cgroup so far.
fn own_folder() -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let own = folder_of("/proc/self/cgroup", |line| line.strip_prefix("0::"))?;
    mounted_at(&own, "cgroup2", None)
}

/// What a line of a `cgroup` file says, the first that says anything.
fn folder_of(file: &str, says: impl Fn(&str) -> Option<&str>) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(says).map(str::to_owned)
}

/// Where a cgroup of this kind is in the file system.
fn mounted_at(cgroup: &str, kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|mount| folder_at(mount, cgroup, kind, controller))
}

/// The folder of a cgroup, if `mount` (a line of `mountinfo`) is of the right kind and shows it.
fn folder_at(mount: &str, cgroup: &str, kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let (mount, rest) = mount.split_once(" - ")?;
    let (mounted, options) = rest.split_once(' ')?;
    let controls = |name| options.split([',', ' ']).any(|option| option == name);
    if mounted != kind || !controller.is_none_or(controls) {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = Path::new(cgroup).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_folder_is_found_below_the_mount() {
        let mount = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw";
        let folder = folder_at(mount, "/user.slice/a.scope", "cgroup2", None);
        assert_eq!(folder, Some("/sys/fs/cgroup/user.slice/a.scope".into()));
    }

    #[test]
    fn a_mount_of_a_part_shows_only_that_part() {
        let mount = "30 24 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let folder = folder_at(mount, "/box/run", "cgroup2", None);
        assert_eq!(folder, Some("/sys/fs/cgroup/run".into()));
        assert_eq!(folder_at(mount, "/other", "cgroup2", None), None);
    }

    #[test]
    fn version_one_has_a_mount_for_each_controller() {
        let mount = "31 24 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer";
        assert_eq!(folder_at(mount, "/", "cgroup2", None), None);
        assert_eq!(folder_at(mount, "/x", "cgroup", Some("cpu")), None);
        let folder = folder_at(mount, "/x", "cgroup", Some("freezer"));
        assert_eq!(folder, Some("/sys/fs/cgroup/freezer/x".into()));
    }
}
