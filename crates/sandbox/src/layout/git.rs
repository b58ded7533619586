//! Git folders: writable wherever they are, but for what makes git run programs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Cover, Kind, Layout, kind};
use crate::guard::GuardedGit;
use crate::known_paths::GIT_CONFIGURATION;
use crate::view::{View, ViewError, real};

/// How deep to search for the git folders of submodules.
const SUBMODULE_DEPTH: usize = 4;

impl Layout {
    /// The protected configurations of git, each with the folder that the work tree must be in.
    pub fn git_configs(&self) -> impl Iterator<Item = (PathBuf, &Path)> {
        let protected = self.guarded.repositories.iter().filter(|it| it.mounted.contains("config"));
        protected.map(|it| (it.folder.join("config"), it.root.as_path()))
    }

    /// Protects what makes git run programs, in its folder and in those of submodules.
    pub(super) fn protect_git(&mut self, git: &Path, root: &Path) -> Result<(), ViewError> {
        let mut mounted = BTreeSet::new();
        for name in GIT_CONFIGURATION {
            let path = git.join(name);
            // Of one that is replaced outside, the guard takes notice, and no new sandbox is needed.
            if kind(&path)? != Kind::Nothing {
                self.cover(path, Cover::Protected);
                mounted.insert(*name);
            }
        }
        if let Some(hooks) = other_hooks(git, root) {
            self.pin(root, hooks.parent().unwrap_or(root))?;
            self.protect_existing(hooks);
        }
        let (folder, root) = (git.to_owned(), root.to_owned());
        let mut modules = Vec::new();
        find_modules(&git.join("modules"), SUBMODULE_DEPTH, &mut modules);
        for module in modules {
            self.pin(git, &module)?;
            self.protect_git(&module, &root)?;
        }
        self.guarded.repositories.push(GuardedGit { folder, root, mounted });
        Ok(())
    }

    /// Makes the git folder of a work tree writable that is not in it: of one that the folder is a part of, or that was
    /// made by `git worktree` or `git submodule`.
    pub(super) fn open_outer_git(&mut self, root: &Path, view: &View) -> Result<(), ViewError> {
        if view.unprotected.iter().any(|name| name == Path::new(".git")) {
            return Ok(());
        }
        let is_below_homes = |folder: &&Path| !view.homes.iter().any(|it| it.starts_with(folder));
        let mut around = root.ancestors().take_while(is_below_homes);
        let Some(tree) = around.find(|folder| folder.join(".git").exists()) else { return Ok(()) };
        let Some(git) = git_of(tree) else { return Ok(()) };
        let is_known = self.guarded.repositories.iter().any(|known| known.folder == git);
        let user = rustix::process::geteuid().as_raw();
        let is_ours = fs::metadata(&git).is_ok_and(|it| it.uid() == user);
        let is_inside = matches!(self.cover_of(&git), Some(Cover::Writable | Cover::Pinned));
        if is_known || !is_ours {
            return Ok(());
        }
        if !is_inside {
            self.cover(git.clone(), Cover::Writable);
            self.outer_git.push(git.clone());
        }
        self.protect_git(&git, tree)
    }
}

/// The folder of hooks in a work tree that its configuration names, if there is one.
fn other_hooks(git: &Path, root: &Path) -> Option<PathBuf> {
    let config = fs::read_to_string(git.join("config")).ok()?;
    let path = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("hookspath");
        is_it.then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let folder = root.join(path);
    // A link leads to another folder, which commands can write or not.
    let hooks = real(&folder).ok().filter(|hooks| *hooks == folder && hooks.is_dir())?;
    (hooks.starts_with(root) && hooks != root).then_some(hooks)
}

/// The git folder of a work tree. A command may have written the file that leads there, so it must lead back.
fn git_of(tree: &Path) -> Option<PathBuf> {
    let link = tree.join(".git");
    if link.is_dir() {
        return real(&link).ok().filter(|git| *git == link && is_git(git));
    }
    let text = fs::read_to_string(&link).ok()?;
    let git = real(tree.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
    let path_in = |name: &str| {
        let text = fs::read_to_string(git.join(name)).ok()?;
        real(git.join(text.trim())).ok()
    };
    if let Some(common) = path_in("commondir") {
        let leads_back = path_in("gitdir")? == real(&link).ok()?;
        let is_worktree = git.parent() == Some(&common.join("worktrees"));
        return (leads_back && is_worktree && is_git(&common)).then_some(common);
    }
    let config = fs::read_to_string(git.join("config")).ok()?;
    let lines = config.lines().filter_map(|line| line.trim().strip_prefix("worktree"));
    let worktree = lines.filter_map(|rest| rest.trim_start().strip_prefix('=')).next()?;
    let leads_back = real(git.join(worktree.trim())).ok()? == real(tree).ok()?;
    (leads_back && is_git(&git)).then_some(git)
}

pub(super) fn is_git(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists())
}

fn find_modules(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && is_git(&path) => found.push(path),
            Ok(kind) if kind.is_dir() && depth > 0 => find_modules(&path, depth - 1, found),
            _ => {}
        }
    }
}
