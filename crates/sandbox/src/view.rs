//! The sandbox that the user asked for: what commands may see and write.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use crate::known_paths::{CONFIGURATION, EXISTING_CONFIGURATION, SOCKET_FOLDERS, TEMPORARY};

/// Folders without real files. A sandbox has its own.
const VIRTUAL_FILE_SYSTEMS: &[&str] = &["/dev", "/proc", "/sys"];

/// Folders of a home that hold files of many programs.
const SHARED_FOLDERS: &[&str] = &[
    "",
    ".cache",
    ".config",
    ".local",
    ".local/share",
    ".local/state",
    ".local/lib",
    ".local/bin",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Commands write only to private folders.
    ReadOnly,
    /// Commands also write to the directory and the `write_dirs`, except to what configures other programs.
    Workspace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    Off,
    On,
}

/// What commands may see and write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub mode: Mode,
    pub network: Network,
    /// Where commands start.
    pub directory: PathBuf,
    pub write_dirs: Vec<PathBuf>,
    /// Home folders. Their secrets are hidden, and none can be writable as a whole.
    pub homes: Vec<PathBuf>,
    /// Other hidden paths: the user's list, and our own files.
    pub deny_read: Vec<PathBuf>,
    /// The program that makes sandboxes, which commands must not replace.
    pub program: Option<PathBuf>,
    /// Names at the top of a writable folder that need no protection, such as `.vscode`.
    pub unprotected: Vec<PathBuf>,
    /// The size of each private folder.
    pub tmp_bytes: u64,
}

impl View {
    pub fn new(mode: Mode, directory: PathBuf) -> Self {
        Self {
            mode,
            network: Network::Off,
            directory,
            write_dirs: Vec::new(),
            homes: Vec::new(),
            deny_read: Vec::new(),
            program: None,
            unprotected: Vec::new(),
            tmp_bytes: 1 << 30,
        }
    }

    /// The folder that a person would make writable to allow writing a path: the largest one around it that is about
    /// one thing, such as `~/.npm` or `~/.cache/pip`. `None` if there is none, or if that would not help.
    pub fn folder_to_allow(&self, path: &Path) -> Option<PathBuf> {
        let mut folders: Vec<_> = path.ancestors().skip(1).filter(|it| it.is_dir()).collect();
        folders.reverse();
        let holds_many = |folder: &Path| {
            let below = self.homes.iter().find_map(|home| folder.strip_prefix(home).ok());
            let many =
                below.is_some_and(|below| SHARED_FOLDERS.iter().any(|it| below == Path::new(it)));
            many || (below.is_none() && folder.components().count() < 3)
        };
        let is_writable = |folder: &Path| rustix::fs::access(folder, Access::WRITE_OK).is_ok();
        let starts = |folder: &Path| {
            let write_dirs = vec![folder.to_owned()];
            Self { mode: Mode::Workspace, write_dirs, ..self.clone() }.survey().is_ok()
        };
        let fits = |folder: &&Path| {
            !holds_many(folder) && !self.is_too_wide(folder) && is_writable(folder)
        };
        folders.into_iter().find(fits).filter(|folder| starts(folder)).map(Path::to_owned)
    }

    /// The protected name in a writable folder that a path is, or is below.
    pub fn protected_name(&self, path: &Path) -> Option<&'static str> {
        let roots = self.roots().unwrap_or_default();
        let below = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
        let names = || CONFIGURATION.iter().chain(EXISTING_CONFIGURATION);
        below.flat_map(|below| names().find(|name| below.starts_with(name))).copied().next()
    }

    fn is_too_wide(&self, root: &Path) -> bool {
        let homes = self.homes.iter().filter_map(|home| real(home).ok());
        VIRTUAL_FILE_SYSTEMS.iter().any(|system| root.starts_with(system))
            || root.parent().is_none()
            || homes.chain(private()).any(|whole| whole.starts_with(root))
    }

    /// The writable folders.
    pub(crate) fn roots(&self) -> Result<Vec<PathBuf>, ViewError> {
        if self.mode == Mode::ReadOnly {
            return Ok(Vec::new());
        }
        let roots = [&self.directory].into_iter().chain(&self.write_dirs);
        let roots = roots.map(real).collect::<Result<Vec<_>, _>>()?;
        match roots.iter().find(|root| self.is_too_wide(root)) {
            Some(root) => Err(ViewError::TooWide(root.clone())),
            None => Ok(roots),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("cannot find {}; create it, or remove it from the settings", .0.display())]
    Missing(PathBuf, #[source] io::Error),
    #[error("{} is too broad to be writable; choose a project folder", .0.display())]
    TooWide(PathBuf),
    #[error("{} cannot be both hidden and writable; remove it from one of the two lists", .0.display())]
    Hidden(PathBuf),
    #[error(
        "{} is a link and cannot be protected; replace it with its target, or add it to `unprotected`",
        .0.display()
    )]
    Link(PathBuf),
    #[error(
        "{} is in a writable folder, where only bubblewrap can protect it; add it to `unprotected`, or use \
         read-only",
        .0.display()
    )]
    NeedsMounts(PathBuf),
}

/// The path without symbolic links.
pub fn real(path: impl AsRef<Path>) -> Result<PathBuf, ViewError> {
    let path = path.as_ref();
    path.canonicalize().map_err(|error| ViewError::Missing(path.to_owned(), error))
}

/// The folders that a sandbox has private ones instead of.
pub fn private() -> Vec<PathBuf> {
    SOCKET_FOLDERS.iter().chain(TEMPORARY).filter_map(|path| real(path).ok()).collect()
}
