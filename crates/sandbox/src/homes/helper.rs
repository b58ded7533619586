//! The helper that mounts homes: a process with one thread, in the user and mount namespaces of a sandbox.
//!
//!     server ── Order ──▶ helper ── "ok", and writable paths ─▶ server ── "renew" ──▶ helper ── "ok", "later" ─▶ …
//!
//! It also protects folders that have come into being since ("protect PATH"), and hides sockets ("hide PATH").
//!
//! It ends when the server closes its input, or with the thread that started it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, unmount,
};
use rustix::process::{DumpableBehavior, Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use super::Home;
use super::mounts::{attach, clone_tree, make_read_only};
use super::protect::{Protected, hide};
use crate::caches::OWN;

/// How old a new file must be to be mounted. Programs that replace a secret write a file with another name first, and
/// rename it soon after.
const LEAST_AGE: Duration = Duration::from_secs(1);

/// How many entries are mounted at most. The kernel allows 100,000 mounts in a namespace.
const MOST_ENTRIES: usize = 20_000;

/// Returns the user namespace that a namespace belongs to. Not in `libc`.
const NS_GET_USERNS: libc::c_ulong = 0xb701;

/// The beginning of an order to protect a folder, whose path follows.
pub const PROTECT: &str = "protect ";

/// The beginning of an order to hide a file, whose path follows.
pub const HIDE: &str = "hide ";

/// What the helper is told first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// A process in the sandbox.
    pub process: i32,
    pub homes: Vec<Home>,
}

/// Serves the server until it closes its input. Must be called while there is one thread.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::thread::set_name(c"mcpz-homes");
    let mut lines = input.lines();
    let Some(order) = lines.next() else { return Ok(()) };
    let order: Order = serde_json::from_str(&order?)?;
    enter(order.process)?;
    // Even if it is stopped. Only now: the kernel forgets this when rights change.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut homes: Vec<MountedHome> = Vec::new();
    for home in order.homes {
        match MountedHome::create(home) {
            Ok(home) => homes.push(home),
            // The sandbox is as it was before, or it would show less than it says.
            Err(error) => {
                homes.iter().for_each(MountedHome::undo);
                return Err(error);
            }
        }
    }
    let writable: Vec<_> = homes.iter().flat_map(MountedHome::writable_paths).collect();
    writeln!(output, "ok {}", serde_json::to_string(&writable)?)?;
    let mut protected = Protected::default();
    for line in lines {
        let line = line?;
        if let Some(folder) = line.strip_prefix(PROTECT) {
            let folder: PathBuf = serde_json::from_str(folder)?;
            let is_safe = protected.add(&folder).unwrap_or(false);
            writeln!(output, "{}", if is_safe { "ok" } else { "later" })?;
            continue;
        }
        if let Some(path) = line.strip_prefix(HIDE) {
            let path: PathBuf = serde_json::from_str(path)?;
            writeln!(output, "{}", if hide(&path).is_ok() { "ok" } else { "later" })?;
            continue;
        }
        let all = homes.iter_mut().map(MountedHome::renew).collect::<Vec<_>>();
        let is_done = all.into_iter().all(|is_done| is_done);
        writeln!(output, "{}", if is_done { "ok" } else { "later" })?;
    }
    Ok(())
}

/// Enters the mount namespace of a process, with all rights there.
fn enter(process: i32) -> io::Result<()> {
    let mounts = File::open(format!("/proc/{process}/ns/mnt"))?;
    // SAFETY: the descriptor is open, and the call has no argument.
    let owner = unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) };
    if owner < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created the descriptor for us, and nothing else owns it.
    let owner = unsafe { OwnedFd::from_raw_fd(owner) };
    move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    Ok(())
}

/// A home that is made of mounts.
pub(super) struct MountedHome {
    pub(super) home: Home,
    /// The real one, below ours.
    pub(super) real: OwnedFd,
    /// Ours: what commands see, and the same for writing.
    pub(super) shown: OwnedFd,
    writable: OwnedFd,
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    /// Folders in it that commands can write, too.
    pub(super) opened: BTreeMap<PathBuf, OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    inode: u64,
    pub(super) kind: Kind,
}

impl Entry {
    pub(super) const CACHE: Self = Self { inode: 0, kind: Kind::Cache };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Link,
    /// A folder of ours.
    Split,
    Folder,
    File,
    /// Stands for a secret.
    Closed,
    /// A cache that commands write to a layer, or a folder with some. It stays, whatever happens outside.
    Cache,
}

impl MountedHome {
    /// Replaces the home by one of ours.
    fn create(home: Home) -> io::Result<Self> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let real = openat(CWD, &home.path, folder, Mode::empty())?;
        let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&system, "size", "65536")?;
        fsconfig_set_string(&system, "mode", "0755")?;
        fsconfig_create(&system)?;
        let careful = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let writable = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, careful)?;
        let shown = clone_tree(&writable, Path::new(""))?;
        make_read_only(&shown)?;
        attach(&shown, &real, &home.path)?;
        let shown = openat(CWD, &home.path, folder, Mode::empty())?;
        let (entries, opened) = (BTreeMap::new(), BTreeMap::new());
        let mut created = Self { home, real, shown, writable, entries, opened };
        created.add_caches();
        let filled = created.renew_folder(Path::new(""), Duration::ZERO).and_then(|_| {
            let fits = created.entries.len() < MOST_ENTRIES;
            if fits { Ok(()) } else { Err(io::Error::other("a home has too many entries")) }
        });
        match filled {
            Ok(()) => Ok(created),
            Err(error) => {
                created.undo();
                Err(error)
            }
        }
    }

    /// Shows the real home again.
    fn undo(&self) {
        let _ = unmount(&self.home.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }

    /// Mounts what is new or replaced, and removes what is gone. False if something is too new.
    fn renew(&mut self) -> bool {
        self.renew_folder(Path::new(""), LEAST_AGE).unwrap_or(false)
    }

    fn renew_folder(&mut self, folder: &Path, least_age: Duration) -> io::Result<bool> {
        let name = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.real, name, flags, Mode::empty())?;
        let (mut is_done, mut found) = (true, BTreeMap::new());
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let path = folder.join(OsStr::from_bytes(entry.file_name().to_bytes()));
            if path.file_name().is_some() && path != folder {
                found.insert(path, (entry.ino(), entry.file_type()));
            }
        }
        let is_gone = |path: &Path, entry: &Entry| {
            let is_inside = path.parent() == Some(folder) && entry.kind != Kind::Cache;
            is_inside && !found.contains_key(path)
        };
        let gone = self.entries.iter().filter(|(path, entry)| is_gone(path, entry));
        for path in gone.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            self.remove(&path);
        }
        for (path, (inode, kind)) in found {
            // An entry that cannot be mounted is not visible, which is safe.
            is_done &= self.renew_entry(&path, inode, kind, least_age).unwrap_or(true);
        }
        Ok(is_done)
    }

    fn renew_entry(
        &mut self,
        path: &Path,
        inode: u64,
        kind: FileType,
        least_age: Duration,
    ) -> io::Result<bool> {
        let is_cache = self.entries.get(path).is_some_and(|entry| entry.kind == Kind::Cache);
        if is_cache {
            // Of one that is split, the rest is shown as it is.
            let is_folder = kind == FileType::Directory && self.home.is_split(path);
            return if is_folder { self.renew_folder(path, least_age) } else { Ok(true) };
        }
        if self.home.has_layer && OWN.iter().any(|own| Path::new(own) == path) {
            return Ok(true);
        }
        let kind = match kind {
            _ if self.home.is_secret(path) => Kind::Closed,
            FileType::Symlink => Kind::Link,
            FileType::Directory if self.home.is_split(path) => Kind::Split,
            FileType::Directory => Kind::Folder,
            // A process outside the sandbox listens there.
            FileType::Socket => return Ok(true),
            _ => Kind::File,
        };
        let (entry, before) = (Entry { inode, kind }, self.entries.get(path).copied());
        match before {
            Some(before) if before.kind == Kind::Closed && kind == Kind::Closed => return Ok(true),
            Some(before) if before == entry && kind != Kind::Split => return Ok(true),
            Some(before) if before.kind == kind && kind == Kind::Split => {}
            Some(_) => self.remove(path),
            None if self.entries.len() >= MOST_ENTRIES => return Ok(true),
            None if kind != Kind::Closed && self.is_younger(path, least_age)? => return Ok(false),
            None => {}
        }
        match kind {
            Kind::Closed => self.close(path)?,
            Kind::Link => {
                let (folder, name) = self.stub(path);
                symlinkat(readlinkat(&self.real, path, [])?, folder, name)?;
            }
            Kind::Folder => {
                self.make_folder(path, 0o755)?;
                self.mount(path)?;
            }
            Kind::File => {
                self.touch(path, 0o644)?;
                self.mount(path)?;
            }
            Kind::Split => self.make_folder(path, 0o755)?,
            Kind::Cache => {}
        }
        self.entries.insert(path.to_owned(), entry);
        match kind {
            Kind::Split => self.renew_folder(path, least_age),
            _ => Ok(true),
        }
    }

    /// Whether the file was changed or renamed within this time.
    fn is_younger(&self, path: &Path, age: Duration) -> io::Result<bool> {
        if age.is_zero() {
            return Ok(false);
        }
        let found = statat(&self.real, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let seconds = found.st_ctime.try_into().unwrap_or_default();
        let nanoseconds = found.st_ctime_nsec.try_into().unwrap_or_default();
        let since = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        // A time in the future says nothing.
        Ok(since.elapsed().is_ok_and(|elapsed| elapsed < age))
    }

    /// Puts something there that nobody can open.
    fn close(&self, path: &Path) -> io::Result<()> {
        let found = statat(&self.real, path, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => self.make_folder(path, 0),
            _ => self.touch(path, 0),
        }
    }

    /// Where to create something that stands for an entry: a folder, and the path from there.
    pub(super) fn stub<'a>(&'a self, path: &'a Path) -> (&'a OwnedFd, &'a Path) {
        let opened = path
            .ancestors()
            .skip(1)
            .find_map(|around| Some((self.opened.get(around)?, path.strip_prefix(around).ok()?)));
        opened.unwrap_or((&self.writable, path))
    }

    pub(super) fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        let (folder, name) = self.stub(path);
        match mkdirat(folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) => self.mark(path),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn touch(&self, path: &Path, mode: u32) -> io::Result<()> {
        let (folder, name) = self.stub(path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(folder, name, flags, Mode::from_raw_mode(mode)) {
            Ok(_) => self.mark(path),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn mount(&self, path: &Path) -> io::Result<()> {
        attach(&clone_tree(&self.real, path)?, &self.shown, path)
    }

    /// Removes an entry of ours, with everything below it.
    fn remove(&mut self, path: &Path) {
        let below = |other: &&PathBuf| other.starts_with(path);
        // What is below a folder comes after it.
        for path in self.entries.keys().filter(below).rev().cloned().collect::<Vec<_>>() {
            let Some(entry) = self.entries.remove(&path) else { continue };
            if matches!(entry.kind, Kind::Folder | Kind::File) {
                let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                let _ = unmount(self.home.path.join(&path), flags);
            }
            let (folder, name) = self.stub(&path);
            if unlinkat(folder, name, AtFlags::empty()).is_err() {
                let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
            }
        }
    }
}
