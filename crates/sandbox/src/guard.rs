//! Takes away what must not come into being in a writable folder, because other programs would run what it says.
//!
//!     command creates .mcp.json ─▶ Guard::check ─▶ quarantine, and a warning in the answer
//!
//! Nothing can be mounted on a name that does not exist, and neither Landlock nor seccomp can refuse a single name. An
//! empty folder in its place would be in the user's way, an overlay would not show what happens to the files outside,
//! and emulated system calls would be a second kernel to get wrong. So a check runs whenever something changes in one
//! of the [`Guard::folders`], and before each answer.
//!
//! A repository that git has just made is welcome. Of what makes git run programs, only that is taken away: hooks, and
//! settings that are not known to be harmless.

mod folder;
mod quarantine;
mod repository;
mod watch;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use folder::Folder;
use quarantine::Quarantine;
use repository::{Repository, is_git};
pub use watch::WatchedGuard;

/// What a guard knows about the writable folders of a sandbox.
#[derive(Debug, Default, Clone)]
pub struct Guarded {
    /// Each name that must not appear, and the folder that it would be in.
    pub reserved: BTreeSet<(PathBuf, &'static str)>,
    /// Folders that may become the work tree of a new repository.
    pub without_git: Vec<PathBuf>,
    /// Folders that must not become git folders themselves.
    pub plain: Vec<PathBuf>,
    pub repositories: Vec<GuardedGit>,
}

impl Guarded {
    /// Names that do not exist yet. If they did, they would have a mount.
    pub fn names(&self) -> impl Iterator<Item = PathBuf> {
        let reserved = self.reserved.iter().map(|(folder, name)| folder.join(name));
        reserved.chain(self.without_git.iter().map(|root| root.join(".git")))
    }
}

/// A git folder that was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedGit {
    pub folder: PathBuf,
    /// Where its work tree must be.
    pub root: PathBuf,
    /// Names in it that have a mount, so that commands cannot change them.
    pub mounted: BTreeSet<&'static str>,
}

#[derive(Debug)]
pub struct Guard {
    guarded: Guarded,
    repositories: Vec<Repository>,
    quarantine: Quarantine,
}

/// A folder to watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// For new names.
    Names(PathBuf),
    /// For changes to its files, too.
    Contents(PathBuf),
}

/// Something that was taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub path: PathBuf,
    pub fate: Fate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is here now.
    Moved(PathBuf),
    /// It is here now, and an earlier or harmless version in its place.
    Replaced(PathBuf),
    /// It could not be moved, for this reason.
    Left(String),
}

impl Guard {
    pub fn new(guarded: Guarded, quarantine: PathBuf) -> Self {
        let repositories = guarded.repositories.iter().map(Repository::existing).collect();
        Self { guarded, repositories, quarantine: Quarantine::new(quarantine) }
    }

    /// The folders to watch, which change as repositories are made.
    pub fn folders(&self) -> Vec<Watched> {
        let Guarded { reserved, without_git, plain, .. } = &self.guarded;
        let reserved = reserved.iter().map(|(folder, _)| folder);
        let roots: BTreeSet<_> = reserved.chain(without_git).chain(plain).collect();
        let mut folders: Vec<_> = roots.into_iter().cloned().map(Watched::Names).collect();
        folders.extend(without_git.iter().map(|root| Watched::Names(root.join(".git"))));
        self.repositories.iter().for_each(|repository| repository.folders(&mut folders));
        folders
    }

    /// Takes away what must not be there.
    pub fn check(&mut self) -> Vec<Taken> {
        self.find_new_repositories();
        let Self { guarded, repositories, quarantine } = self;
        let mut collector = Collector { quarantine, taken: Vec::new() };
        for (folder, name) in &guarded.reserved {
            collector.take_if(folder, name, |_| true);
        }
        for root in &guarded.without_git {
            collector.take_if(root, ".git", |root| root.kind(".git") != Some(FileType::Directory));
        }
        for root in &guarded.plain {
            collector.take_if(root, "HEAD", is_git);
        }
        let mut checked = 0;
        while let Some(repository) = repositories.get_mut(checked) {
            let modules = repository.check(&mut collector);
            modules.into_iter().for_each(|module| welcome(repositories, module));
            checked += 1;
        }
        collector.taken
    }

    /// Accepts what someone outside has made of git folders while no command ran. Returns a reserved name that exists
    /// now, and needs a mount.
    pub fn accept(&mut self) -> Option<PathBuf> {
        self.find_new_repositories();
        self.repositories.iter_mut().for_each(Repository::accept);
        let reserved = self.guarded.reserved.iter().map(|(folder, name)| folder.join(name));
        reserved.into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    /// Folders of hooks that have no mount yet.
    pub fn free_hooks(&self) -> Vec<PathBuf> {
        self.repositories.iter().filter_map(Repository::free_hooks).collect()
    }

    /// Whether a path in a git folder has a mount, or is in a folder that has one.
    pub fn has_mounted(&self, path: &Path) -> bool {
        self.repositories.iter().any(|repository| repository.has_mounted(path))
    }

    /// Commands cannot change these hooks any more. Only somebody outside can.
    pub fn note_mounted_hooks(&mut self, hooks: &Path) {
        let mut of_it = self.repositories.iter_mut().filter(|it| it.path().join("hooks") == hooks);
        of_it.by_ref().for_each(|repository| repository.note_mounted("hooks"));
    }

    fn find_new_repositories(&mut self) {
        for root in &self.guarded.without_git {
            let found = Folder::open(root).and_then(|root| root.inner(".git"));
            if found.is_ok_and(|git| is_git(&git)) {
                let new = Repository::new(root, Path::new(".git"), root);
                welcome(&mut self.repositories, new);
            }
        }
    }
}

/// Guards a git folder from now on.
fn welcome(repositories: &mut Vec<Repository>, new: Repository) {
    if !repositories.iter().any(|known| known.path() == new.path()) {
        repositories.push(new);
    }
}

/// Takes things away, and notes what.
struct Collector<'a> {
    quarantine: &'a mut Quarantine,
    taken: Vec<Taken>,
}

impl Collector<'_> {
    /// Takes an entry of a folder that is there and meets a condition.
    fn take_if(&mut self, folder: &Path, name: &str, is_wrong: impl FnOnce(&Folder) -> bool) {
        // Most names are not there, and this is all they cost.
        if folder.join(name).symlink_metadata().is_err() {
            return;
        }
        if let Ok(opened) = Folder::open(folder)
            && opened.kind(name).is_some()
            && is_wrong(&opened)
        {
            self.take(&opened, folder, name);
        }
    }

    /// Takes an entry of a folder with this path.
    fn take(&mut self, folder: &Folder, path: &Path, name: impl AsRef<OsStr>) {
        self.move_away(folder, path, name.as_ref(), Fate::Moved);
    }

    /// Takes an entry that will be replaced. False if it is still there.
    fn take_changed(&mut self, folder: &Folder, path: &Path, name: &str) -> bool {
        self.move_away(folder, path, name.as_ref(), Fate::Replaced)
    }

    fn move_away(
        &mut self,
        folder: &Folder,
        path: &Path,
        name: &OsStr,
        fate: fn(PathBuf) -> Fate,
    ) -> bool {
        let path = path.join(name);
        let (fate, is_gone) = match self.quarantine.take(folder, name) {
            Ok(None) => return true,
            Ok(Some(kept)) => (fate(kept), true),
            Err(error) => (Fate::Left(error.to_string()), false),
        };
        self.taken.push(Taken { path, fate });
        is_gone
    }
}

#[cfg(test)]
mod tests;
