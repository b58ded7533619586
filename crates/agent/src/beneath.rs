//! Opens a directory beneath an allowed one, wherever links lead.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Why a directory was not opened.
#[derive(Debug, thiserror::Error)]
pub enum BeneathError {
    /// An old kernel, or a container whose filter does not know the call.
    #[error("the kernel cannot open a directory beneath another one")]
    NoOpenat2(#[source] io::Error),
    #[error("the directory cannot be opened")]
    Failed(#[source] io::Error),
}

/// Opens a directory beneath one of the roots, or returns `None` if it is in none of them.
pub fn open_beneath(roots: &[PathBuf], path: &Path) -> Result<Option<OwnedFd>, BeneathError> {
    for (root, below) in matching_roots(roots, path) {
        if let Ok(handle) = open_below(root, below) {
            return Ok(Some(handle));
        }
    }
    // A link from anywhere may lead into a root. It only tells where to look: what opens decides.
    let real = path.canonicalize().map_err(BeneathError::Failed)?;
    // A magic link, such as a process's `cwd`, does not lead where its text says.
    if let Err(Errno::LOOP) = open(CWD, path, ResolveFlags::empty()) {
        return Ok(None);
    }
    for (root, below) in matching_roots(roots, &real) {
        match open_below(root, below) {
            Ok(handle) => return Ok(Some(handle)),
            // Someone has put a link there meanwhile.
            Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN) => {}
            // An old kernel, or a container whose filter does not know the call.
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return Err(BeneathError::NoOpenat2(errno.into()));
            }
            Err(errno) => return Err(BeneathError::Failed(errno.into())),
        }
    }
    Ok(None)
}

/// The roots that are a prefix of a path, each with the rest of the path.
pub fn matching_roots<'a, 'p>(
    roots: &'a [PathBuf],
    path: &'p Path,
) -> impl Iterator<Item = (&'a PathBuf, &'p Path)> {
    roots.iter().filter_map(move |root| Some((root, path.strip_prefix(root).ok()?)))
}

fn open_below(root: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    // A root had no links in its path when the engine started. Someone has added any link it has now.
    let root = open(CWD, root, ResolveFlags::NO_SYMLINKS)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    open(&root, below, ResolveFlags::BENEATH)
}

/// Opens a directory to enter it, not to read it. Does not follow magic links, which lead anywhere.
fn open(from: impl AsFd, path: &Path, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), how | ResolveFlags::NO_MAGICLINKS)
}
