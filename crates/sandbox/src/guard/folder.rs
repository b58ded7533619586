//! A folder that commands write to, opened so that no link in it leads us elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, chmod, fstat, openat,
    openat2, statat,
};

/// How much of a file is read. One that is larger is not what it claims to be.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Folder(OwnedFd);

/// A new file may reuse an inode, but is younger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    inode: u64,
    created: Option<SystemTime>,
}

impl Folder {
    /// Opens a folder that is not in the hands of commands, such as the working directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a folder in this one. Fails if there is a link on the way.
    pub fn inner(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(Self(openat2(&self.0, path.as_ref(), flags, Mode::empty(), resolve)?))
    }

    pub fn kind(&self, name: impl AsRef<Path>) -> Option<FileType> {
        self.stat(name).map(|found| FileType::from_raw_mode(found.st_mode))
    }

    pub fn stat(&self, name: impl AsRef<Path>) -> Option<Stat> {
        statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Tells an entry from another that took its place.
    pub fn identity(&self, name: &str) -> Option<Identity> {
        let found = self.path_of(OsStr::new(name)).symlink_metadata().ok()?;
        Some(Identity { inode: found.ino(), created: found.created().ok() })
    }

    /// The names in it, sorted.
    pub fn names(&self) -> Vec<OsString> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(opened) = openat(&self.0, ".", flags, Mode::empty()).and_then(Dir::new) else {
            return Vec::new();
        };
        let names =
            opened.flatten().map(|it| OsStr::from_bytes(it.file_name().to_bytes()).to_owned());
        let mut names: Vec<_> = names.filter(|name| name != "." && name != "..").collect();
        names.sort();
        names
    }

    /// The contents of a file. `None` if there is none, or something else.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty()).ok()?);
        let is_file = file.metadata().is_ok_and(|it| it.is_file());
        let mut contents = Vec::new();
        let mut limited = file.take(MOST_BYTES);
        (is_file && limited.read_to_end(&mut contents).is_ok()).then_some(contents)
    }

    /// Writes a file that does not exist.
    pub fn create(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(0o644))?;
        File::from(file).write_all(contents)
    }

    /// Moves an entry to another folder.
    pub fn move_to(&self, name: &OsStr, other: &Self) -> io::Result<()> {
        let moved = || Ok(rustix::fs::renameat(&self.0, name, &other.0, name)?);
        match moved() {
            // Somebody has taken away the right to write to this folder, or to the one that is moved.
            Err(error) if io::Error::kind(&error) == io::ErrorKind::PermissionDenied => {
                let before = fstat(&self.0)?.st_mode;
                self.set_mode(before | 0o700)?;
                if let Ok(entry) = self.inner(name) {
                    entry.set_mode(fstat(&entry.0)?.st_mode | 0o700)?;
                }
                let done = moved();
                self.set_mode(before)?;
                done
            }
            done => done,
        }
    }

    /// Gives an entry another name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// The path of an entry, for as long as this folder is open. No link leads there but the entry itself.
    pub fn path_of(&self, name: &OsStr) -> std::path::PathBuf {
        Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string()).join(name)
    }

    fn set_mode(&self, mode: RawMode) -> io::Result<()> {
        // Without the right to enter it, nothing below this path could be reached, not even `.`.
        let path = Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string());
        Ok(chmod(path, Mode::from_raw_mode(mode))?)
    }
}
