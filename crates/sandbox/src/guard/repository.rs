//! What commands may not make of a git folder.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::folder::{Folder, Identity};
use super::{Collector, GuardedGit, Watched};
use crate::git_config::{Place, harmful, without_harmful};

/// How deep to search for git's folders of submodules.
const MODULE_DEPTH: usize = 4;

#[derive(Debug)]
pub struct Repository {
    /// A folder that commands cannot replace.
    base: PathBuf,
    /// The git folder, relative to that.
    inner: PathBuf,
    /// Where its work tree must be.
    root: PathBuf,
    /// Names that have a mount, so that commands cannot change them, and what it is on. If somebody outside replaces
    /// that, Linux removes the mount.
    mounted: BTreeMap<&'static str, Identity>,
    /// The configuration, when it was last found to be harmless or accepted.
    config: Option<Config>,
    /// What else may stay as it is.
    accepted: BTreeMap<PathBuf, Stamp>,
}

#[derive(Debug)]
struct Config {
    stamp: Stamp,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<Stat> for Stamp {
    fn from(found: Stat) -> Self {
        Self {
            inode: found.st_ino,
            size: found.st_size,
            modified: (found.st_mtime, found.st_mtime_nsec as i64),
            changed: (found.st_ctime, found.st_ctime_nsec as i64),
        }
    }
}

impl Repository {
    /// One that commands have made in `base`, and can replace.
    pub fn new(base: &Path, inner: &Path, root: &Path) -> Self {
        let (base, inner, root) = (base.to_owned(), inner.to_owned(), root.to_owned());
        let (mounted, accepted) = (BTreeMap::new(), BTreeMap::new());
        Self { base, inner, root, mounted, config: None, accepted }
    }

    /// One that was there before, and is accepted as it is.
    pub fn existing(git: &GuardedGit) -> Self {
        let mut repository = Self::new(&git.folder, Path::new("."), &git.root);
        git.mounted.iter().for_each(|name| repository.note_mounted(name));
        repository.accept();
        repository
    }

    pub fn path(&self) -> PathBuf {
        self.base.join(&self.inner).components().collect()
    }

    /// The folder of its hooks, if it has one that is not mounted.
    pub fn free_hooks(&self) -> Option<PathBuf> {
        let git = self.open().ok().filter(|git| !self.is_mounted(git, "hooks"))?;
        let is_folder = git.kind("hooks") == Some(FileType::Directory);
        is_folder.then(|| self.path().join("hooks"))
    }

    /// Whether a path has a mount, or is in a folder that has one.
    pub fn has_mounted(&self, path: &Path) -> bool {
        self.mounted.keys().any(|name| path.starts_with(self.path().join(name)))
    }

    /// Commands cannot change this name any more.
    pub fn note_mounted(&mut self, name: &'static str) {
        let identity = self.open().ok().and_then(|git| git.identity(name));
        self.mounted.extend(identity.map(|identity| (name, identity)));
    }

    /// Whether commands cannot change something, because it has a mount.
    fn is_mounted(&self, git: &Folder, name: &str) -> bool {
        let mounted = self.mounted.get(name);
        mounted.is_some_and(|mounted| git.identity(name) == Some(*mounted))
    }

    /// The folders in which something may change that matters.
    pub fn folders(&self, folders: &mut Vec<Watched>) {
        let git = self.path();
        folders.push(Watched::Contents(git.clone()));
        folders.push(Watched::Contents(git.join("hooks")));
        folders.push(Watched::Names(git.join("worktrees")));
        let Ok(opened) = self.open() else { return };
        let names = |name| opened.inner(name).map(|it| it.names()).unwrap_or_default();
        let worktrees = names("worktrees").into_iter().map(|name| git.join("worktrees").join(name));
        folders.extend(worktrees.map(Watched::Contents));
        let mut add = |path: &Path, _: &Folder| folders.push(Watched::Names(git.join(path)));
        for_each_folder(&opened, Path::new("modules"), MODULE_DEPTH, &mut add);
    }

    /// Takes away what would make git run a program. Returns the git folders of submodules.
    pub fn check(&mut self, collector: &mut Collector<'_>) -> Vec<Self> {
        let Ok(git) = self.open() else { return Vec::new() };
        self.check_config(&git, collector);
        for name in self.suspects(&git) {
            let around = name.parent().filter(|it| !it.as_os_str().is_empty());
            let Ok(folder) = git.inner(around.unwrap_or(Path::new("."))) else { continue };
            let is_accepted = self.accepted.get(&name) == git.stat(&name).map(Stamp::from).as_ref();
            if let Some(last) = name.file_name().filter(|_| !is_accepted) {
                collector.take(&folder, &self.path().join(around.unwrap_or(Path::new(""))), last);
            }
        }
        let mut modules = Vec::new();
        for_each_folder(&git, Path::new("modules"), MODULE_DEPTH, &mut |module, folder| {
            if is_git(folder) {
                modules.push(Self::new(&self.base, &self.inner.join(module), &self.root));
            }
        });
        modules
    }

    /// Accepts what is there now: someone outside has put it there.
    pub fn accept(&mut self) {
        let Ok(git) = self.open() else { return };
        self.mounted.retain(|name, mounted| git.identity(name) == Some(*mounted));
        let stamp = |name: PathBuf| git.stat(&name).map(|found| (name, Stamp::from(found)));
        self.accepted = self.suspects(&git).into_iter().filter_map(stamp).collect();
        self.accept_config(&git);
    }

    fn accept_config(&mut self, git: &Folder) {
        let config = git.stat("config").map(Stamp::from).zip(git.read("config"));
        self.config = config.map(|(stamp, text)| Config { stamp, text });
    }

    fn open(&self) -> io::Result<Folder> {
        Folder::open(&self.base)?.inner(&self.inner)
    }

    fn is_harmless(&self, folder: &Folder, name: &str) -> bool {
        let text = folder.read(name).and_then(|text| String::from_utf8(text).ok());
        let git = self.path();
        text.is_some_and(|text| harmful(&text, Place { git: &git, root: &self.root }).is_empty())
    }

    /// Puts back the configuration that was there before, or what is harmless of a new one.
    fn check_config(&mut self, git: &Folder, collector: &mut Collector<'_>) {
        let stamp = git.stat("config").map(Stamp::from);
        let known = self.config.as_ref().map(|config| config.stamp);
        let is_free = !self.is_mounted(git, "config");
        let Some(stamp) = stamp.filter(|_| stamp != known && is_free) else { return };
        // Only somebody outside can have replaced what had a mount.
        if self.mounted.remove("config").is_some() {
            return self.accept_config(git);
        }
        let path = self.path();
        let harmful_in = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            harmful(&text, Place { git: &path, root: &self.root })
        };
        let before = self.config.as_ref().map(|it| harmful_in(&it.text)).unwrap_or_default();
        let found = git.read("config");
        if let Some(text) = found.clone().filter(|text| harmful_in(text) == before) {
            self.config = Some(Config { stamp, text });
            return;
        }
        let text = String::from_utf8_lossy(found.as_deref().unwrap_or_default());
        let harmless = without_harmful(&text, Place { git: &path, root: &self.root });
        let kept = self.config.take().map_or(harmless.into_bytes(), |config| config.text);
        if collector.take_changed(git, &path, "config") && git.create("config", &kept).is_ok() {
            let stamp = git.stat("config").map(Stamp::from);
            self.config = stamp.map(|stamp| Config { stamp, text: kept });
        }
    }

    /// What makes git run programs, or lead elsewhere, other than the configuration.
    fn suspects(&self, git: &Folder) -> Vec<PathBuf> {
        let mut suspects = Vec::new();
        let mut suspect = |name: PathBuf| suspects.push(name);
        let is_free = |name: &str| git.kind(name).is_some() && !self.is_mounted(git, name);
        if is_free("commondir") {
            suspect("commondir".into());
        }
        if is_free("config.worktree") && !self.is_harmless(git, "config.worktree") {
            suspect("config.worktree".into());
        }
        for name in ["hooks", "worktrees", "modules"].into_iter().filter(|name| is_free(name)) {
            if git.kind(name) != Some(FileType::Directory) {
                suspect(name.into());
            }
        }
        if is_free("hooks") {
            let hooks = git.inner("hooks").map(|hooks| hooks.names()).unwrap_or_default();
            let is_hook = |name: &PathBuf| name.extension() != Some(OsStr::new("sample"));
            let hooks = hooks.into_iter().map(|name| Path::new("hooks").join(name));
            hooks.filter(is_hook).for_each(&mut suspect);
        }
        let worktrees = git.inner("worktrees").map(|it| it.names()).unwrap_or_default();
        for worktree in worktrees.into_iter().map(|name| Path::new("worktrees").join(name)) {
            self.suspects_in_worktree(git, &worktree).into_iter().for_each(&mut suspect);
        }
        for_each_folder(git, Path::new("modules"), MODULE_DEPTH, &mut |path, folder| {
            let names = if is_git(folder) { Vec::new() } else { folder.names() };
            // Git itself makes links that lead nowhere, to see whether it can.
            let leads_to_folder = |name: &&OsString| {
                folder.kind(name) == Some(FileType::Symlink) && folder.path_of(name).is_dir()
            };
            names.iter().filter(leads_to_folder).map(|name| path.join(name)).for_each(&mut suspect);
        });
        suspects
    }

    /// A work tree must lead back to this repository.
    fn suspects_in_worktree(&self, git: &Folder, name: &Path) -> Vec<PathBuf> {
        let Ok(worktree) = git.inner(name) else { return vec![name.to_owned()] };
        let has = |name: &str| worktree.kind(name).is_some();
        let mut suspects = Vec::new();
        // It may be half written. Then git would look for a configuration on the way, where none belongs.
        let leads_back = |text: Vec<u8>| b"../..".starts_with(text.trim_ascii_end());
        if has("commondir") && !worktree.read("commondir").is_some_and(leads_back) {
            suspects.push(name.join("commondir"));
        }
        if has("config") {
            suspects.push(name.join("config"));
        }
        if has("config.worktree") && !self.is_harmless(&worktree, "config.worktree") {
            suspects.push(name.join("config.worktree"));
        }
        suspects
    }
}

/// Whether git takes a folder for one of its own.
pub fn is_git(folder: &Folder) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.kind(name).is_some())
}

/// Visits a folder and those in it, but not those in a git folder.
fn for_each_folder(
    around: &Folder,
    path: &Path,
    depth: usize,
    visit: &mut impl FnMut(&Path, &Folder),
) {
    let Ok(folder) = around.inner(path) else { return };
    visit(path, &folder);
    if depth == 0 || is_git(&folder) {
        return;
    }
    for name in folder.names() {
        for_each_folder(around, &path.join(name), depth - 1, visit);
    }
}
