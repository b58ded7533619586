//! Lets commands change a git configuration in harmless ways, although it is protected by a mount.
//!
//!     git ─ rename(config.lock, config) ─▶ kernel ─ question ─▶ keeper: harmless?
//!                                                               ├─ yes: writes the file itself, and says "done"
//!                                                               └─ no: the call goes on, and fails at the mount
//!
//! Git writes a new file and renames it, which no mount allows, be it for a branch that follows another one. So the
//! server gives the agent the open file. What is written there is what the keeper has read and judged, so nobody can
//! change it in between.

use std::ffi::OsStr;
use std::fs::{File, read_link};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use mcpz_sandbox::may_become;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};

use crate::descriptor::path_of;

/// The longest configuration that is accepted.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration that commands may change.
#[derive(Debug)]
pub struct SharedConfig {
    /// Where commands see it.
    pub path: PathBuf,
    /// Where the work tree of its repository must be.
    pub root: PathBuf,
    pub file: File,
}

/// A call that renames a file.
#[derive(Debug)]
pub struct Rename {
    pub from: Place,
    pub to: Place,
}

/// A path, relative to this descriptor of the process, or to its current directory.
#[derive(Debug)]
pub struct Place {
    pub directory: Option<i32>,
    pub path: Vec<u8>,
}

impl Place {
    fn name(&self) -> Option<&OsStr> {
        Path::new(OsStr::from_bytes(&self.path)).file_name()
    }

    /// Opens the folder around the file, as the process sees it.
    fn folder(&self, thread: i32) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = match self.directory {
            Some(directory) => format!("/proc/{thread}/fd/{directory}"),
            None => format!("/proc/{thread}/cwd"),
        };
        let base = open(base, flags, Mode::empty())?;
        let path = Path::new(OsStr::from_bytes(&self.path));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(openat(base, folder.unwrap_or(Path::new(".")), flags, Mode::empty())?)
    }
}

/// Renames a file to a configuration that is shared. False if that must fail, or is about another file.
pub fn rename(configs: &[SharedConfig], thread: i32, rename: &Rename) -> bool {
    // Most calls are about something else, and this is all they cost.
    let is_config = |config: &SharedConfig| config.path.file_name() == rename.to.name();
    configs.iter().any(is_config) && try_rename(configs, thread, rename).is_ok()
}

fn try_rename(configs: &[SharedConfig], thread: i32, rename: &Rename) -> io::Result<()> {
    let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
    let (Some(from), Some(to)) = (rename.from.name(), rename.to.name()) else {
        return Err(refused());
    };
    let around = rename.to.folder(thread)?;
    let target = read_link(path_of(&around))?.join(to);
    let config = configs.iter().find(|config| config.path == target).ok_or_else(refused)?;
    // If somebody outside has replaced it, it has no mount any more, and needs no help.
    let (ours, now) = (config.file.metadata()?, target.symlink_metadata()?);
    if (ours.dev(), ours.ino()) != (now.dev(), now.ino()) {
        return Err(refused());
    }
    let folder = rename.from.folder(thread)?;
    let new = read(folder.as_fd(), from)?;
    let mut old = vec![0; config.file.metadata()?.len().min(MAX_BYTES) as usize];
    config.file.read_exact_at(&mut old, 0)?;
    let old = String::from_utf8(old).map_err(io::Error::other)?;
    if !may_become(&old, &new, &config.path, &config.root) {
        return Err(refused());
    }
    config.file.write_all_at(new.as_bytes(), 0)?;
    config.file.set_len(new.len() as u64)?;
    Ok(unlinkat(folder, from, AtFlags::empty())?)
}

fn read(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
