//! Where commands may start.
//!
//!     path ─▶ root ─openat2▶ handle ─▶ agent ─▶ fchdir
//!
//! A directory checked by name can be another one when it is entered, because someone may put a link in its place. So
//! if only some directories are allowed, the engine opens the requested one beneath an allowed root, and the command
//! starts in the opened directory. Following a path by name only tells which root to try. The real paths of the roots
//! are fixed when the engine starts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use mcpz_agent::Directory;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::error::{Error, RefusedDirectory};
use crate::resolved::Resolved;
use crate::settings::Settings;

/// The directories commands must start in.
pub struct Bounds {
    /// The engine's working directory, as it was given.
    working_directory: PathBuf,
    /// The real paths of all allowed directories.
    allowed: Vec<PathBuf>,
    /// Whether the working directory is one of the roots.
    stays_within: bool,
}

impl Bounds {
    pub fn new(settings: &Settings) -> Self {
        // A missing directory may be created later, but not as a link.
        let real = |path: &PathBuf| path.canonicalize().or_else(|_| std::path::absolute(path));
        let real = |path| real(path).unwrap_or_else(|_| path.clone());
        let (working_directory, stays_within) =
            (settings.working_directory.clone(), settings.stays_within);
        let mut allowed: Vec<_> = settings.allowed_directories.iter().map(real).collect();
        if stays_within {
            allowed.insert(0, real(&working_directory));
        }
        Self { working_directory, allowed, stays_within }
    }

    /// The directory to start in: by name if every directory is allowed, opened otherwise.
    pub fn open(&self, request: &Resolved) -> Result<Directory, Error> {
        let path = &request.directory;
        if self.allowed.is_empty() {
            return Ok(Directory::Path(path.to_owned()));
        }
        match open_in_roots(&self.allowed, path) {
            // The request names no directory that could lead elsewhere.
            Err(Error::NoOpenat2(_)) if self.stays_within && !request.names_directory => {
                Ok(Directory::Path(path.to_owned()))
            }
            found => Ok(Directory::Handle(found?.ok_or_else(|| self.refusal(path))?)),
        }
    }

    fn refusal(&self, path: &Path) -> Error {
        let directory = RefusedDirectory { path: path.to_owned(), target: self.link_target(path) };
        match self.stays_within {
            true => Error::DirectoryOutside { directory, root: self.working_directory.clone() },
            false => Error::DirectoryNotAllowed(directory),
        }
    }

    /// Where a path really leads that looks as if it were within bounds. Only for the message: someone may have
    /// changed a link since the refusal.
    fn link_target(&self, path: &Path) -> Option<PathBuf> {
        let looks_inside = (self.stays_within && path.starts_with(&self.working_directory))
            || matching_roots(&self.allowed, path).next().is_some();
        if !looks_inside || path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let target = path.canonicalize().ok()?;
        // A magic link is refused wherever it leads.
        let is_inside = matching_roots(&self.allowed, &target).next().is_some();
        (!is_inside).then_some(target)
    }
}

/// Opens a directory beneath one of the roots, or returns `None` if it is in none of them.
fn open_in_roots<'a>(
    roots: impl IntoIterator<Item = &'a PathBuf> + Clone,
    path: &Path,
) -> Result<Option<OwnedFd>, Error> {
    for (root, below) in matching_roots(roots.clone(), path) {
        if let Ok(handle) = open_beneath(root, below) {
            return Ok(Some(handle));
        }
    }
    // A link from anywhere may lead into a root. It only tells where to look: what opens decides.
    let failed = |source: io::Error| Error::Directory { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(failed)?;
    // A magic link, such as a process's `cwd`, does not lead where its text says.
    if let Err(Errno::LOOP) = open(CWD, path, ResolveFlags::empty()) {
        return Ok(None);
    }
    for (root, below) in matching_roots(roots, &real) {
        match open_beneath(root, below) {
            Ok(handle) => return Ok(Some(handle)),
            // Someone has put a link there meanwhile.
            Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN) => {}
            // An old kernel, or a container whose filter does not know the call.
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return Err(Error::NoOpenat2(errno.into()));
            }
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Ok(None)
}

/// The roots that are a prefix of a path, each with the rest of the path.
fn matching_roots<'a, 'p>(
    roots: impl IntoIterator<Item = &'a PathBuf>,
    path: &'p Path,
) -> impl Iterator<Item = (&'a PathBuf, &'p Path)> {
    roots.into_iter().filter_map(move |root| Some((root, path.strip_prefix(root).ok()?)))
}

fn open_beneath(root: &Path, below: &Path) -> Result<OwnedFd, Errno> {
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
