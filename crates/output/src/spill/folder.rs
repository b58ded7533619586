//! The private folder that spilled output is in, and what is done with those that were left.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use mcpz_runtime::random_name;

const PREFIX: &str = "mcpz-spill-";

/// The private folder, locked while we live: one that is not locked was left by a server that was
/// killed.
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
            // Until it is locked, somebody else's sweep can take it for one that was left.
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

/// Takes a folder for our own, unless somebody has it.
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

/// Whether this is a name only we give: others may begin like it, and must not be touched.
fn is_ours(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes the folders of servers that are gone, our own user's alone.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(is_ours);
        let own = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        });
        if !named || !own {
            continue;
        }
        // Locked while it is removed, so that nobody takes it for their own meanwhile.
        if let Ok(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
