//! Homes as commands see them: everything but the secrets.
//!
//! A mount on a secret hides it only until somebody replaces the file: Linux then removes the mount, and the new file
//! would be visible. So a home is replaced as a whole by an empty file system, on which everything but the secrets is
//! mounted, one by one. What nobody mounts there cannot be seen, whatever happens outside.
//!
//!     /home/ann               ours, read-only
//!     /home/ann/p             mounted, with everything that is mounted below it
//!     /home/ann/.gitconfig    mounted
//!     /home/ann/.config       ours, because it contains secrets
//!     /home/ann/.config/htop  mounted
//!     /home/ann/.ssh          ours, and closed
//!     /home/ann/.npm          a layer on top of what is there (`caches.rs`)
//!
//! Only a process with rights in the sandbox's mount namespace can do that. It is a helper of the server (`helper.rs`),
//! which has none outside, and which commands cannot see. What is new or replaced outside is mounted before the next
//! command starts. Until then commands see what was there before.

mod caches;
mod helper;
mod mounts;
mod protect;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::caches::{LAYERED, OPENED};

pub use helper::{HIDE, Order as HomesOrder, PROTECT, serve as serve_homes};

/// A folder may change again within this time without another modification time.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// A home, and what commands must not see of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Without symbolic links.
    pub path: PathBuf,
    /// Relative to the home, as are the others.
    pub secrets: BTreeSet<PathBuf>,
    /// Folders that are mounted as they are: what they contain is protected in other ways.
    pub whole: BTreeSet<PathBuf>,
    /// Whether commands may write to the caches in it.
    pub has_layer: bool,
}

impl Home {
    /// Whether a path is a secret, or a copy of one beside it, as programs make before they change a file:
    /// `.claude.json.backup`, `.netrc~`.
    pub fn is_secret(&self, path: &Path) -> bool {
        let is_copy = |secret: &PathBuf| {
            let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
            let of = secret.file_name().map(OsStr::as_bytes).unwrap_or_default();
            let end = name.strip_prefix(of).and_then(<[u8]>::first);
            secret.parent() == path.parent() && end.is_some_and(|end| b".~".contains(end))
        };
        self.secrets.contains(path) || self.secrets.iter().any(is_copy)
    }

    /// Whether a folder contains secrets or caches, so that its entries are mounted one by one.
    pub fn is_split(&self, folder: &Path) -> bool {
        let is_below = |path: &Path| path != folder && path.starts_with(folder);
        let holds_secret = || self.secrets.iter().any(|secret| is_below(secret));
        !self.whole.iter().any(|whole| folder.starts_with(whole))
            && (holds_secret() || self.caches().any(|(path, _)| is_below(path)))
    }

    /// The caches that commands may write, and how. Folders come before what they contain.
    pub fn caches(&self) -> impl Iterator<Item = (&'static Path, Cache)> {
        let opened = OPENED.iter().map(|path| (Path::new(path), Cache::Opened));
        let layered = LAYERED.iter().map(|path| (Path::new(path), Cache::Layered));
        opened.chain(layered).filter(|(path, cache)| {
            let is_apart = |whole: &PathBuf| {
                !path.starts_with(whole) && (*cache == Cache::Opened || !whole.starts_with(path))
            };
            self.has_layer && self.whole.iter().all(is_apart)
        })
    }

    /// The folders that may be split, whether they exist or not.
    fn split_folders(&self) -> BTreeSet<PathBuf> {
        let secrets = self.secrets.iter().map(PathBuf::as_path);
        let inside = secrets.chain(self.caches().map(|(path, _)| path));
        let around = inside.flat_map(|path| path.ancestors().skip(1));
        around.filter(|folder| self.is_split(folder)).map(Path::to_owned).collect()
    }
}

/// How commands may write to a folder with caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// What they create is beside what is there.
    Opened,
    /// What they write is on top of what is there.
    Layered,
}

/// Notices from outside whether something has come to or gone from the homes.
#[derive(Debug)]
pub struct HomesLook {
    folders: Vec<(PathBuf, Option<Stamp>)>,
}

/// What changes when an entry of a folder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    modified: Option<SystemTime>,
}

impl HomesLook {
    pub fn new(homes: &[Home]) -> Self {
        let folders = homes
            .iter()
            .flat_map(|home| home.split_folders().into_iter().map(|folder| home.path.join(folder)));
        Self { folders: folders.map(|folder| (folder, None)).collect() }
    }

    /// Whether anything has changed since the last time, or may have without leaving a trace.
    pub fn has_changed(&mut self) -> bool {
        let mut changed = false;
        for (folder, before) in &mut self.folders {
            let found = folder.symlink_metadata().ok();
            let now = found.map(|it| Stamp { inode: it.ino(), modified: it.modified().ok() });
            let age = now.and_then(|it| it.modified?.elapsed().ok());
            let is_settled = now.is_none() || age.is_some_and(|age| age > CLOCK_TICK);
            changed |= now != *before;
            *before = now.filter(|_| is_settled);
        }
        changed
    }

    /// Looks at everything again the next time.
    pub fn forget(&mut self) {
        self.folders.iter_mut().for_each(|(_, stamp)| *stamp = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(path: &Path) -> Home {
        let set = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        let secrets = set(&[".ssh", ".config/gh", "p/.env"]);
        Home { path: path.to_owned(), secrets, whole: set(&["p"]), has_layer: false }
    }

    #[test]
    fn folders_with_secrets_are_split_unless_they_are_whole() {
        let home = home(Path::new("/home/ann"));
        for split in ["", ".config"] {
            assert!(home.is_split(Path::new(split)), "{split}");
        }
        for other in [".ssh", ".config/gh", ".config/htop", "p", "p/x", "other"] {
            assert!(!home.is_split(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn copies_of_secrets_are_secret() {
        let home = home(Path::new("/home/ann"));
        for secret in [".ssh", ".ssh.bak", ".ssh~", ".config/gh.old", "p/.env.local"] {
            assert!(home.is_secret(Path::new(secret)), "{secret}");
        }
        for other in [".sshrc", ".config/gh-dash", ".config/x/gh.old", "notes", ".ssh/id"] {
            assert!(!home.is_secret(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn what_comes_and_goes_is_noticed_and_what_is_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut look = HomesLook::new(&[home(folder.path())]);
        let mut settled = || {
            std::thread::sleep(CLOCK_TICK * 2);
            let changed = look.has_changed();
            std::thread::sleep(CLOCK_TICK * 2);
            (changed, look.has_changed())
        };
        settled();
        assert_eq!(settled(), (false, false));
        std::fs::write(folder.path().join("new"), "").unwrap();
        assert_eq!(settled(), (true, false));
        std::fs::write(folder.path().join("new"), "more").unwrap();
        assert_eq!(settled(), (false, false));
        std::fs::create_dir(folder.path().join(".config")).unwrap();
        assert_eq!(settled(), (true, false));
        std::fs::write(folder.path().join(".config/x"), "").unwrap();
        assert_eq!(settled(), (true, false));
    }
}
