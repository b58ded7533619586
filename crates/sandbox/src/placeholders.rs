//! Empty folders in place of protected names that do not exist, for as long as a sandbox lives.
//!
//! Nothing can be mounted on a name that does not exist, and neither Landlock nor seccomp can refuse a single name. So
//! an empty folder takes the name: git does not show it, and removing it can never remove a user's files.
//!
//! The alternatives are worse. An overlay does not show what happens to the files outside. Without Landlock's right to
//! make files, nothing could be created at the top of a folder. Emulated system calls would be a second kernel to get
//! wrong.
//!
//! If such a folder is removed, its mount disappears in every sandbox. So each sandbox holds a shared lock on its
//! placeholders, and the last one removes them. A placeholder that a killed process left behind is recognised by its
//! modification time, the oldest possible, and the next sandbox takes it over.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Timespec, Timestamps, flock, futimens};

/// How often to try a name that other sandboxes create and remove meanwhile.
const TRIES: usize = 100;

/// The placeholders of one sandbox, removed when this is dropped unless others use them.
#[derive(Debug, Default)]
pub struct Placeholders {
    held: Vec<(PathBuf, File)>,
}

impl Placeholders {
    pub fn make(paths: &[PathBuf]) -> io::Result<Self> {
        let mut placeholders = Self::default();
        for path in paths {
            placeholders.held.extend(take(path)?.map(|folder| (path.clone(), folder)));
        }
        Ok(placeholders)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, folder) in self.held.iter().rev() {
            // A folder that a user removed may have been replaced by another sandbox's placeholder; one that is not
            // empty any more belongs to the user.
            if is_at(folder, path)
                && flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                let _ = fs::remove_dir(path);
            }
        }
    }
}

/// Whether the path is a placeholder and nothing more.
pub fn is_placeholder(path: &Path) -> bool {
    let empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    path.symlink_metadata().is_ok_and(|it| it.is_dir() && it.mtime() == 0) && empty()
}

/// Creates or shares the placeholder at this path, and locks it. `None` if a user's file appeared there meanwhile.
fn take(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..TRIES {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let folder = match File::open(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        // Waits for a sandbox that is removing it, which holds the lock exclusively.
        flock(&folder, FlockOperation::LockShared)?;
        if made {
            let oldest = Timespec { tv_sec: 0, tv_nsec: 0 };
            futimens(&folder, &Timestamps { last_access: oldest, last_modification: oldest })?;
        }
        if is_at(&folder, path) {
            return Ok(is_placeholder(path).then_some(folder));
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Whether the path still leads to the open folder.
fn is_at(held: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let held = held.metadata().map(identity);
    held.is_ok_and(|held| path.symlink_metadata().is_ok_and(|there| identity(there) == held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_go_with_whoever_made_them_but_for_those_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, used, theirs] = [".a", ".b", ".c"].map(|name| folder.path().join(name));
        fs::create_dir(&theirs).unwrap();
        let placeholders = Placeholders::make(&[ours.clone(), used.clone(), theirs.clone()]);
        fs::write(used.join("settings.json"), "{}").unwrap();
        drop(placeholders.unwrap());
        assert!(!ours.exists());
        assert!(used.join("settings.json").exists() && theirs.exists());
    }

    #[test]
    fn the_last_of_several_sandboxes_removes_them() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join(".a")];
        let first = Placeholders::make(&paths).unwrap();
        let second = Placeholders::make(&paths).unwrap();
        drop(first);
        assert!(is_placeholder(&paths[0]));
        drop(second);
        assert!(!paths[0].exists());
    }

    #[test]
    fn one_that_somebody_removed_does_not_take_the_next_along() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join(".a")];
        let old = Placeholders::make(&paths).unwrap();
        fs::remove_dir(&paths[0]).unwrap();
        let _new = Placeholders::make(&paths).unwrap();
        drop(old);
        assert!(is_placeholder(&paths[0]));
    }

    #[test]
    fn what_a_killed_process_left_is_the_next_ones() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join(".a")];
        let mut killed = Placeholders::make(&paths).unwrap();
        killed.held.clear();
        assert!(is_placeholder(&paths[0]));
        drop(Placeholders::make(&paths).unwrap());
        assert!(!paths[0].exists());
    }
}
