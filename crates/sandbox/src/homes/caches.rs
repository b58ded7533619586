//! Mounts caches that commands may write: what is there, and a layer on top of it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Timespec, Timestamps, mkdir, openat, rmdir, statat,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, unmount,
};
use rustix::process::fchdir;

use super::Cache;
use super::helper::{Entry, Kind, MountedHome};
use super::mounts::{attach, clone_tree};
use crate::caches::LAYERS;

impl MountedHome {
    /// Mounts the caches. What is not possible on this machine is shown as it is, and cannot be written.
    pub(super) fn add_caches(&mut self) {
        if !self.home.has_layer {
            return;
        }
        // Caches are given to overlayfs relative to the real home, which has no path any more.
        if fchdir(&self.real).is_ok() {
            for (path, cache) in self.home.caches().collect::<Vec<_>>() {
                let _ = self.add_cache(path, cache);
            }
        }
        let _ = rustix::process::chdir("/");
        let _ = unmount(LAYERS, UnmountFlags::DETACH);
        let _ = rmdir(LAYERS);
    }

    fn add_cache(&mut self, path: &Path, cache: Cache) -> io::Result<()> {
        let mut is_there = true;
        let around: Vec<_> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
        for folder in around.iter().rev() {
            match statat(&self.real, *folder, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {}
                // A link leads to where nothing of ours is mounted.
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(_) => is_there = false,
            }
        }
        for folder in around.iter().rev() {
            self.make_folder(folder, 0o755)?;
            if *folder != path {
                self.entries.entry((*folder).to_owned()).or_insert(Entry::CACHE);
            }
        }
        let name = path.to_string_lossy().replace('/', "%");
        let [upper, work] = ["upper", "work"].map(|it| Path::new(LAYERS).join(&name).join(it));
        make_folders(&[upper.parent().unwrap_or(&upper), &upper])?;
        let layer = match cache {
            Cache::Layered if is_there => {
                make_folders(&[&work])?;
                overlay(path, &upper, &work)?
            }
            Cache::Layered => clone_tree(&self.real, &upper)?,
            Cache::Opened => {
                remove_stubs(&upper)?;
                clone_tree(&self.real, &upper)?
            }
        };
        attach(&layer, &self.shown, path)?;
        if cache == Cache::Opened {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = openat(&self.shown, path, flags, Mode::empty())?;
            self.opened.insert(path.to_owned(), opened);
        }
        self.entries.insert(path.to_owned(), Entry::CACHE);
        Ok(())
    }

    /// The caches that commands can write, with their paths.
    pub(super) fn writable_paths(&self) -> Vec<PathBuf> {
        let caches = self.home.caches().map(|(path, _)| path);
        let is_mounted =
            |path: &&Path| self.entries.get(*path).is_some_and(|entry| entry.kind == Kind::Cache);
        caches.filter(is_mounted).map(|path| self.home.path.join(path)).collect()
    }

    /// Marks something that only stands for an entry, in a folder that stays for the next sandbox.
    pub(super) fn mark(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.stub(path);
        let oldest = Timespec { tv_sec: 0, tv_nsec: 0 };
        let times = Timestamps { last_access: oldest, last_modification: oldest };
        Ok(utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// A file system that shows a folder of the current directory, and writes to another one.
fn overlay(lower: &Path, upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    let system = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Without it, only root could mark files as removed.
    fsconfig_set_flag(&system, "userxattr")?;
    fsconfig_set_string(&system, "lowerdir", lower)?;
    fsconfig_set_string(&system, "upperdir", upper)?;
    fsconfig_set_string(&system, "workdir", work)?;
    fsconfig_create(&system)?;
    let careful = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, careful)?)
}

fn make_folders(folders: &[&Path]) -> io::Result<()> {
    for folder in folders {
        match mkdir(*folder, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Removes what an earlier sandbox put there for its mounts.
fn remove_stubs(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, folder, flags, Mode::empty())?;
    for entry in Dir::read_from(&opened)?.flatten() {
        let name = Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
        let Ok(found) = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if found.st_mtime == 0 && unlinkat(&opened, name, AtFlags::REMOVEDIR).is_err() {
            let is_empty = found.st_size == 0;
            let is_file = FileType::from_raw_mode(found.st_mode) != FileType::Directory;
            if is_empty && is_file {
                let _ = unlinkat(&opened, name, AtFlags::empty());
            }
        }
    }
    Ok(())
}
