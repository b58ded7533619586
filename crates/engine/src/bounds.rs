//! Where commands may start, and the way there.
//!
//! A directory that was checked by its name can be another one when it is entered: somebody may put a
//! link in its place. So where not every directory may be, what is asked for is opened beneath one that
//! may, and the command starts in what was opened. What may be is found once, when the engine starts.
//!
//!     path ─▶ root ─openat2▶ handle ─▶ agent ─▶ fchdir

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use mcpz_agent::Directory;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::error::Error;
use crate::resolved::Resolved;
use crate::settings::Settings;

/// The directories commands are kept within.
pub struct Bounds {
    /// The engine's own, as it is called.
    home: PathBuf,
    /// The real paths of all that are allowed.
    allowed: Vec<PathBuf>,
    /// Whether the engine's own is what commands are kept within, with those that are allowed besides.
    stays_within: bool,
}

impl Bounds {
    pub fn new(settings: &Settings) -> Self {
        // One that is not there yet may come, if it is no link then.
        let real = |path: &PathBuf| path.canonicalize().or_else(|_| std::path::absolute(path));
        let real = |path| real(path).unwrap_or_else(|_| path.clone());
        let (home, stays_within) = (settings.working_directory.clone(), settings.stays_within);
        let mut allowed: Vec<_> = settings.allowed_directories.iter().map(real).collect();
        if stays_within {
            allowed.insert(0, real(&home));
        }
        Self { home, allowed, stays_within }
    }

    /// The directory to start in: by its name where every directory is allowed, and opened elsewhere.
    pub fn open(&self, request: &Resolved) -> Result<Directory, Error> {
        let path = &request.directory;
        if self.allowed.is_empty() {
            return Ok(Directory::Path(path.to_owned()));
        }
        match beneath(&self.allowed, path) {
            // The request names no directory that could lead elsewhere.
            Err(Error::Boundless(_)) if self.stays_within && !request.names_directory => {
                Ok(Directory::Path(path.to_owned()))
            }
            found => Ok(Directory::Handle(found?.ok_or_else(|| self.refusal(path))?)),
        }
    }

    fn refusal(&self, path: &Path) -> Error {
        let path = path.to_owned();
        match self.stays_within {
            true => Error::NotAllowedOutside { path, root: self.home.clone() },
            false => Error::NotAllowedThere(path),
        }
    }
}

/// Opens a directory beneath one of the roots, or nothing if it is in none of them.
fn beneath<'a>(
    roots: impl IntoIterator<Item = &'a PathBuf> + Clone,
    path: &Path,
) -> Result<Option<OwnedFd>, Error> {
    for (root, below) in ways(roots.clone(), path) {
        if let Ok(handle) = open_beneath(root, below) {
            return Ok(Some(handle));
        }
    }
    // Links may lead from anywhere into a root. They only tell where to look: what is opened decides.
    let failed = |source: io::Error| Error::Directory { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(failed)?;
    // It goes through a magic link, such as a process's `cwd`: its text says little about where it leads.
    if let Err(Errno::LOOP) = open(CWD, path, ResolveFlags::empty()) {
        return Ok(None);
    }
    for (root, below) in ways(roots, &real) {
        match open_beneath(root, below) {
            Ok(handle) => return Ok(Some(handle)),
            // Somebody put a link where there was none.
            Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN) => {}
            // An old kernel, or a container's filter that does not know the call.
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return Err(Error::Boundless(errno.into()));
            }
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Ok(None)
}

/// The roots a path is in as it is written, and what is written after each.
fn ways<'a, 'p>(
    roots: impl IntoIterator<Item = &'a PathBuf>,
    path: &'p Path,
) -> impl Iterator<Item = (&'a PathBuf, &'p Path)> {
    roots.into_iter().filter_map(move |root| Some((root, path.strip_prefix(root).ok()?)))
}

fn open_beneath(root: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    // A root had no links on its way when the engine started. One it has now was put there since.
    let root = open(CWD, root, ResolveFlags::NO_SYMLINKS)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    open(&root, below, ResolveFlags::BENEATH)
}

/// Opens a directory to enter it, not to read it. Magic links are not followed: they lead anywhere.
fn open(from: impl AsFd, path: &Path, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), how | ResolveFlags::NO_MAGICLINKS)
}
