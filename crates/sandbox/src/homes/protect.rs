//! Protects a folder that has come into being in a sandbox, and hides a socket that has come into being outside.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, openat, statvfs};

use super::mounts::{attach, clone_tree, make_read_only};

/// Folders that were made read-only, by their device and inode.
#[derive(Debug, Default)]
pub struct Protected(BTreeSet<(u64, u64)>);

impl Protected {
    /// Makes a folder read-only for commands. False if a process has it open, and could still write there.
    pub fn add(&mut self, folder: &Path) -> io::Result<bool> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = openat(CWD, "/", flags, Mode::empty())?;
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let before = identity(folder)?;
        if !is_read_only(folder) || !self.0.contains(&before) {
            let protected = clone_tree(&root, folder)?;
            make_read_only(&protected)?;
            attach(&protected, &root, folder)?;
            self.0.insert(before);
        }
        // Commands could have replaced it meanwhile.
        let is_same = identity(folder)? == before;
        Ok(is_same && !is_open(before))
    }
}

/// Puts something in place of a file that nobody can open.
pub fn hide(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, "/", flags, Mode::empty())?;
    let nothing = clone_tree(&root, Path::new("/dev/null"))?;
    make_read_only(&nothing)?;
    attach(&nothing, &root, path)
}

fn is_read_only(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether a process in the sandbox has a folder open, or works there.
fn is_open(folder: (u64, u64)) -> bool {
    let inside = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == folder);
    inside(Path::new("/proc")).any(|process| {
        let process = process.path();
        is_it(&process.join("cwd")) || inside(&process.join("fd")).any(|fd| is_it(&fd.path()))
    })
}
