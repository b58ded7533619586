//! What a command sees of the machine, and what it can change.
//!
//! A [`Layout`] applies a view to the files as they are: it has a cover for each path that differs from "readable, not
//! writable".
//!
//!     /                       readable
//!     /run                    private, as are /tmp and /var/tmp
//!     /home/ann/.ssh          hidden
//!     /home/ann/p             writable
//!     /home/ann/p/.git        pinned: writable, but cannot be renamed
//!     /home/ann/p/.git/hooks  protected: readable
//!
//! Without the pin, `mv .git old && mkdir .git` would create hooks that nothing is mounted on.

mod git;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::closed::closed_around;
use crate::guard::Guarded;
use crate::homes::Home;
use crate::restrictions::Permissions;
use crate::seccomp::Isolation;
use crate::view::{Network, View, ViewError, private, real};
use crate::{known_paths, sockets};

/// What programs need in `/run`: the resolver's configuration and, on some systems, all programs.
const KEPT_IN_RUN: &[&str] = &["/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"];

/// What programs need in `/dev`.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// How a path differs from "readable, not writable". If several apply, the strictest wins, which is the last in this
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// An empty folder of the sandbox's own.
    Private,
    /// The machine's own, inside a private folder.
    Shown,
    Pinned,
    Writable,
    Protected,
    Hidden,
}

/// A view, applied to the files as they are.
#[derive(Debug)]
pub struct Layout {
    pub directory: PathBuf,
    pub network: Network,
    pub tmp_bytes: u64,
    /// Parents come before their contents.
    covers: BTreeMap<PathBuf, Cover>,
    /// What was found at each path that must not change.
    found: Vec<(PathBuf, Option<Identity>)>,
    /// What was found at each path that may disappear, but must not be replaced.
    hidden: Vec<(PathBuf, Option<Identity>)>,
    /// The same for secrets in homes that can be made of mounts.
    hidden_in_homes: Vec<(PathBuf, Option<Identity>)>,
    /// Homes that can be made of mounts.
    pub homes: Vec<Home>,
    /// The folder for what commands write to caches.
    layer: Option<PathBuf>,
    /// What must not come into being.
    pub guarded: Guarded,
    /// Writable git folders of work trees that are not writable as a whole.
    outer_git: Vec<PathBuf>,
}

/// Tells a file from another that took its place. A new file may reuse an inode, but is younger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// Not every file system has it.
    created: Option<SystemTime>,
}

impl View {
    /// Applies the view to the files as they are now.
    pub fn survey(&self) -> Result<Layout, ViewError> {
        Layout::of(self)
    }
}

impl Layout {
    fn of(view: &View) -> Result<Self, ViewError> {
        let directory = real(&view.directory)?;
        let mut layout = Self {
            directory: directory.clone(),
            network: view.network,
            tmp_bytes: view.tmp_bytes,
            covers: BTreeMap::new(),
            found: Vec::new(),
            hidden: Vec::new(),
            hidden_in_homes: Vec::new(),
            homes: Vec::new(),
            layer: None,
            guarded: Guarded::default(),
            outer_git: Vec::new(),
        };
        private().into_iter().for_each(|path| layout.cover(path, Cover::Private));
        let kept = KEPT_IN_RUN.iter().filter_map(|path| real(path).ok());
        kept.chain([directory]).for_each(|path| layout.show(path));
        let roots = view.roots()?;
        for root in &roots {
            layout.cover(root.clone(), Cover::Writable);
            // The folders around it are writable too, and must not be replaced.
            if let Some(around) = roots.iter().find(|it| *it != root && root.starts_with(it)) {
                layout.pin(around, root.parent().unwrap_or(around))?;
            }
        }
        for root in &roots {
            layout.protect(root, &view.unprotected)?;
            layout.protect_program(root, view.program.as_deref())?;
            layout.open_outer_git(root, view)?;
        }
        layout.homes = view.homes.iter().filter_map(|home| layout.home(home, &roots)).collect();
        let secrets =
            view.homes.iter().flat_map(|home| known_paths::SECRETS.iter().map(|it| home.join(it)));
        let system = known_paths::SYSTEM_SECRETS.iter().map(PathBuf::from).chain(host_keys());
        let sockets = sockets::bound();
        for path in secrets.chain(system).chain(view.deny_read.iter().cloned()).chain(sockets) {
            layout.hide(path, &roots)?;
        }
        Ok(layout)
    }

    /// A path that has changed since. Its mount is gone, or something is visible that should be hidden, so the sandbox
    /// must be created again. This compares all paths, which takes about 70 µs.
    ///
    /// Linux removes a mount, in every namespace, when someone outside replaces or removes the file it is on, as `git
    /// config` and editors do when they save. A secret that is created later has no cover yet. A hidden file that
    /// disappears does not count: a new sandbox would cost commands their `/tmp` and their loopback network, and
    /// sockets disappear all the time. Nor do secrets in homes that are made of mounts.
    pub fn change(&self, has_homes: bool) -> Option<&Path> {
        let kept = self.found.iter().find(|(path, found)| identity(path) != *found);
        let shown = |now: Option<Identity>, found: Option<Identity>| match (now, found) {
            // A hidden file that is gone is harmless, as long as a replacement can be recognised.
            (None, Some(found)) => found.created.is_none(),
            (now, found) => now != found,
        };
        let in_homes: &[_] = if has_homes { &[] } else { &self.hidden_in_homes };
        let mut hidden = self.hidden.iter().chain(in_homes);
        let shown = hidden.find(|(path, found)| shown(identity(path), *found));
        kept.or(shown).map(|(path, _)| path.as_path())
    }

    /// Whether anything has changed, which may be why a sandbox could not be created.
    pub fn is_outdated(&self) -> bool {
        let mut all = self.found.iter().chain(&self.hidden).chain(&self.hidden_in_homes);
        all.any(|(path, found)| identity(path) != *found)
    }

    /// Removes the covers of hidden paths that are gone, and returns whether there were any. Sockets disappear all the
    /// time, and nothing can be mounted on them then. Trying again without them succeeds however many there are, while
    /// a new survey could find others that are about to disappear.
    pub fn uncover_gone(&mut self) -> bool {
        let mut uncovered = false;
        for (path, found) in self.hidden.iter_mut().chain(&mut self.hidden_in_homes) {
            if found.is_some() && identity(path).is_none() {
                *found = None;
                uncovered |= self.covers.remove(path).is_some();
            }
        }
        uncovered
    }

    /// The permissions of commands inside the namespaces.
    pub fn permissions(&self) -> Permissions {
        let own = |cover| matches!(cover, Cover::Writable | Cover::Private);
        let covers = self.covers.iter().filter(|(_, cover)| own(**cover));
        let writable = covers.map(|(path, _)| path.clone()).chain(["/dev".into()]).collect();
        let readable = vec!["/".into()];
        Permissions { readable, writable, isolation: Isolation::Namespaces }
    }

    /// The permissions of commands without namespaces. Landlock cannot refuse anything inside a folder that it allows,
    /// and there is no private `/tmp`; `tmp` is writable instead.
    pub fn permissions_without_mounts(&self, tmp: &Path) -> Result<Permissions, ViewError> {
        let of = |wanted: &[Cover]| -> Vec<PathBuf> {
            let is_outer = |path: &Path| self.outer_git.iter().any(|git| path.starts_with(git));
            let covers = self.covers.iter().filter(|(_, cover)| wanted.contains(cover));
            covers.filter(|(path, _)| !is_outer(path)).map(|(path, _)| path.clone()).collect()
        };
        let roots = of(&[Cover::Writable]);
        let inside = |path: &&PathBuf| roots.iter().any(|root| path.starts_with(root));
        let mut unprotected = of(&[Cover::Protected, Cover::Hidden]);
        unprotected.retain(|path| inside(&path));
        unprotected.extend(self.guarded.names());
        if let Some(path) = unprotected.into_iter().next() {
            return Err(ViewError::NeedsMounts(path));
        }
        let mut closed = of(&[Cover::Private, Cover::Hidden]);
        closed.push("/dev".into());
        let mut readable = Vec::new();
        let shown = of(&[Cover::Shown]);
        for folder in [PathBuf::from("/")].iter().chain(&shown) {
            open_up(folder, &closed, &mut readable);
        }
        let devices = DEVICES.iter().map(PathBuf::from).filter(|path| path.exists());
        let writable = roots.into_iter().chain([tmp.to_owned()]).chain(devices).collect();
        Ok(Permissions { readable, writable, isolation: Isolation::None })
    }

    /// Lets commands write to the caches in a home, if it can be made of mounts.
    pub fn add_layer(&mut self, home: &Path, layer: &Path) {
        if let Some(home) = self.homes.iter_mut().find(|it| it.path == home) {
            home.has_layer = true;
            self.layer = Some(layer.to_owned());
        }
    }

    pub(crate) fn layer(&self) -> Option<&Path> {
        self.layer.as_deref()
    }

    /// Each path and its cover, parents first.
    pub(crate) fn covers(&self) -> impl Iterator<Item = (&Path, Cover)> {
        self.covers.iter().map(|(path, cover)| (path.as_path(), *cover))
    }

    /// Sockets outside the writable folders that commands could see at the beginning, with their inodes.
    pub fn visible_sockets(&self) -> BTreeSet<(PathBuf, u64)> {
        let is_visible = |path: &PathBuf| {
            matches!(self.cover_of(path), None | Some(Cover::Shown | Cover::Protected))
                && !self.is_hidden(path)
        };
        let visible = sockets::bound().into_iter().filter(is_visible);
        visible.filter_map(|path| Some((path.clone(), identity(&path)?.inode))).collect()
    }

    /// Whether a path is hidden, whether it existed when the sandbox was made or not.
    pub fn is_hidden(&self, path: &Path) -> bool {
        let in_home = |home: &Home| {
            let below = path.strip_prefix(&home.path);
            below.is_ok_and(|below| below.ancestors().any(|part| home.is_secret(part)))
        };
        self.cover_of(path) == Some(Cover::Hidden) || self.homes.iter().any(in_home)
    }

    /// The cover of a path: its own, or that of the nearest folder around it.
    pub fn cover_of(&self, path: &Path) -> Option<Cover> {
        path.ancestors().find_map(|around| self.covers.get(around)).copied()
    }

    pub(crate) fn has_below(&self, path: &Path) -> bool {
        self.covers.keys().any(|other| other != path && other.starts_with(path))
    }

    /// Covers a path; the strictest cover wins.
    fn cover(&mut self, path: PathBuf, cover: Cover) {
        let entry = self.covers.entry(path).or_insert(cover);
        *entry = cover.max(*entry);
    }

    /// Shows a path of the machine inside a private folder.
    fn show(&mut self, path: PathBuf) {
        let is_private = |path| self.covers.get(path) == Some(&Cover::Private);
        if path.ancestors().skip(1).any(is_private) {
            self.cover(path, Cover::Shown);
        }
    }

    /// A home that can be made of mounts, without any secrets yet.
    fn home(&self, home: &Path, roots: &[PathBuf]) -> Option<Home> {
        let path = real(home).ok().filter(|path| path.ancestors().count() > 2)?;
        // What is covered as a whole, or cannot be entered, needs no mounts.
        if closed_around(&path.join("x")).is_some() || self.cover_of(&path).is_some() {
            return None;
        }
        let inside = roots.iter().chain([&self.directory]);
        let whole = inside.filter_map(|root| root.strip_prefix(&path).ok().map(Path::to_owned));
        let whole: BTreeSet<_> = whole.collect();
        let is_whole = whole.contains(Path::new(""));
        (!is_whole).then_some(Home { path, secrets: BTreeSet::new(), whole, has_layer: false })
    }

    /// Whether a secret is left out of a home that is made of mounts.
    fn leave_out(&mut self, name: &Path) -> bool {
        let existing = name.ancestors().find(|path| path.symlink_metadata().is_ok());
        // By way of a link, the secret could be reached by another name.
        let leads_elsewhere =
            existing.is_none_or(|it| it.canonicalize().ok().as_deref() != existing);
        for home in &mut self.homes {
            let Ok(below) = name.strip_prefix(&home.path) else { continue };
            let is_kept = home.whole.iter().any(|whole| below.starts_with(whole));
            if below.as_os_str().is_empty() || is_kept || leads_elsewhere {
                continue;
            }
            home.secrets.insert(below.to_owned());
            return true;
        }
        false
    }

    fn hide(&mut self, name: PathBuf, roots: &[PathBuf]) -> Result<(), ViewError> {
        let left_out = self.leave_out(&name);
        let before = self.hidden.len();
        self.hide_by_mount(name, roots)?;
        if left_out {
            self.hidden_in_homes.extend(self.hidden.drain(before..));
        }
        Ok(())
    }

    fn hide_by_mount(&mut self, name: PathBuf, roots: &[PathBuf]) -> Result<(), ViewError> {
        let path = name.canonicalize();
        if path.as_ref().ok() != Some(&name) {
            self.hidden.push((name.clone(), identity(&name)));
        }
        let Ok(path) = path else { return Ok(()) };
        if roots.contains(&path) {
            return Err(ViewError::Hidden(path));
        }
        let holds_work = |folder: &PathBuf| {
            [&self.directory].into_iter().chain(roots).any(|it| it.starts_with(folder))
        };
        let path = closed_around(&path).filter(|folder| !holds_work(folder)).unwrap_or(path);
        // Changes to what is invisible anyway do not matter: sockets come and go all the time.
        if matches!(self.cover_of(&path), Some(Cover::Private | Cover::Hidden)) {
            return Ok(());
        }
        let found = identity(&path);
        self.hidden.push((path.clone(), found));
        // Nothing can be mounted on a file that has just disappeared.
        if found.is_some() {
            self.cover(path, Cover::Hidden);
        }
        Ok(())
    }

    /// Protects what configures other programs, at the top of a folder.
    fn protect(&mut self, root: &Path, unprotected: &[PathBuf]) -> Result<(), ViewError> {
        let wanted = |name: &&&str| !unprotected.iter().any(|it| it == Path::new(name));
        for name in known_paths::CONFIGURATION.iter().filter(wanted) {
            let path = root.join(name);
            match kind(&path)? {
                Kind::Folder if *name == ".git" => {
                    self.pin(root, &path)?;
                    self.protect_git(&path, root)?;
                }
                Kind::Nothing if *name == ".git" => {
                    self.guarded.without_git.push(root.to_owned());
                }
                Kind::Nothing => {
                    self.guarded.reserved.insert((root.to_owned(), name));
                }
                Kind::Folder | Kind::File => self.protect_existing(path),
            }
        }
        for name in known_paths::EXISTING_CONFIGURATION.iter().filter(wanted) {
            let path = match root.join(name) {
                // Nothing can be mounted on the link itself, but commands may create such a name anyway.
                link if link.is_symlink() => match link.canonicalize() {
                    Ok(target) if target.starts_with(root) && target != root => target,
                    _ => continue,
                },
                path => path,
            };
            if kind(&path)? != Kind::Nothing {
                self.pin(root, path.parent().unwrap_or(root))?;
                self.protect_existing(path);
            }
        }
        match git::is_git(root) {
            _ if !wanted(&&".git") => {}
            true => self.protect_git(root, root)?,
            false => self.guarded.plain.push(root.to_owned()),
        }
        Ok(())
    }

    /// Protects the program that makes sandboxes, if it is in a writable folder.
    fn protect_program(&mut self, root: &Path, program: Option<&Path>) -> Result<(), ViewError> {
        let Some(program) = program.filter(|it| it.starts_with(root) && it.exists()) else {
            return Ok(());
        };
        self.pin(root, program.parent().unwrap_or(root))?;
        self.cover(program.to_owned(), Cover::Protected);
        Ok(())
    }

    /// Pins all folders below `root`, down to this one.
    fn pin(&mut self, root: &Path, folder: &Path) -> Result<(), ViewError> {
        for folder in folder.ancestors().take_while(|folder| *folder != root) {
            // Fails for a symbolic link: the path to something protected must not lead elsewhere.
            kind(folder)?;
            self.found.push((folder.to_owned(), identity(folder)));
            self.cover(folder.to_owned(), Cover::Pinned);
        }
        Ok(())
    }

    fn protect_existing(&mut self, path: PathBuf) {
        self.found.push((path.clone(), identity(&path)));
        self.cover(path, Cover::Protected);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    File,
    Folder,
}

fn kind(path: &Path) -> Result<Kind, ViewError> {
    match path.symlink_metadata() {
        Err(_) => Ok(Kind::Nothing),
        Ok(found) if found.is_symlink() => Err(ViewError::Link(path.to_owned())),
        Ok(found) if found.is_dir() => Ok(Kind::Folder),
        Ok(_) => Ok(Kind::File),
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|found| Identity {
        device: found.dev(),
        inode: found.ino(),
        created: found.created().ok(),
    })
}

/// The SSH host keys of this machine.
fn host_keys() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/etc/ssh").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ssh_host_") && name.ends_with("_key")
    })
}

/// Collects the largest parts of a folder that contain no closed path.
fn open_up(folder: &Path, closed: &[PathBuf], open: &mut Vec<PathBuf>) {
    if closed.iter().any(|path| path == folder) {
        return;
    }
    if !closed.iter().any(|path| path.starts_with(folder)) {
        open.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // A symbolic link's target is opened where it is.
        if entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()) {
            open_up(&entry.path(), closed, open);
        }
    }
}
