//! Where commands may start.
//!
//!     path ─▶ root ─openat2▶ handle ─▶ agent ─▶ fchdir
//!
//! A directory checked by name can be another one when it is entered, because someone may put a link in its place. So
//! if only some directories are allowed, the engine opens the requested one beneath an allowed root, and the command
//! starts in the opened directory. Following a path by name only tells which root to try. The real paths of the roots
//! are fixed when the engine starts.

use std::path::{Component, Path, PathBuf};

use mcpz_agent::{BeneathError, Directory, matching_roots, open_beneath};

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
    /// Whether they are those of a place, where only a keeper can open them.
    there: bool,
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
        Self { working_directory, allowed, stays_within, there: false }
    }

    /// The same in a place with this working directory.
    pub fn there(settings: &Settings, working_directory: &Path) -> Self {
        let (working_directory, stays_within) =
            (working_directory.to_owned(), settings.stays_within);
        let own = stays_within.then(|| working_directory.clone());
        let allowed = own.into_iter().chain(settings.allowed_directories.iter().cloned()).collect();
        Self { working_directory, allowed, stays_within, there: true }
    }

    /// The directory that commands in a place must not leave.
    pub fn root_there(&self) -> Option<PathBuf> {
        (self.there && self.stays_within).then(|| self.working_directory.clone())
    }

    /// The directory to start in: by name if every directory is allowed, opened otherwise.
    pub fn open(&self, request: &Resolved) -> Result<Directory, Error> {
        let path = &request.directory;
        if self.allowed.is_empty() {
            return Ok(Directory::Path(path.to_owned()));
        }
        if self.there {
            let roots = self.allowed.clone();
            return Ok(Directory::Beneath { roots, path: path.to_owned() });
        }
        match open_beneath(&self.allowed, path) {
            // The request names no directory that could lead elsewhere.
            Err(BeneathError::NoOpenat2(_)) if self.stays_within && !request.names_directory => {
                Ok(Directory::Path(path.to_owned()))
            }
            Ok(Some(handle)) => Ok(Directory::Handle(handle)),
            Ok(None) => Err(self.refusal(path)),
            Err(BeneathError::NoOpenat2(source)) => Err(Error::NoOpenat2(source)),
            Err(BeneathError::Failed(source)) => {
                Err(Error::Directory { path: path.to_owned(), source })
            }
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
