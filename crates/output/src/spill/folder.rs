//! The private folder of spilled files, and the removal of folders that killed servers left.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use mcpz_runtime::random_name;

const PREFIX: &str = "mcpz-spill-";

/// A private folder. We hold a lock on it while we live; one without a lock belonged to a server that was killed.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    _lock: File,
}

impl Folder {
    pub fn create(parent: &Path) -> io::Result<Self> {
        let mut attempts = 0;
        loop {
            let path = parent.join(format!("{PREFIX}{}", random_name()?));
            DirBuilder::new().mode(0o700).create(&path)?;
            // Before we hold the lock, another server's sweep may take the folder for an abandoned one.
            match lock(&path) {
                Ok(lock) if is_at(&lock, &path) => return Ok(Self { path, _lock: lock }),
                Ok(_) => {}
                Err(_) if attempts < 5 => {}
                Err(error) => return Err(error),
            }
            attempts += 1;
        }
    }
}

/// Locks a folder, unless another process has.
fn lock(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: io::Result<Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    number(file.metadata()) == number(fs::symlink_metadata(path))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether we gave this name. Others may start with the same prefix and must not be touched.
fn is_ours(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes the folders of servers that are gone, but only our own user's.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(is_ours);
        let own = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        });
        if !named || !own {
            continue;
        }
        // Lock it before removing it, so that no server starts to use it meanwhile.
        if let Ok(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
