//! Whether a process sees the same files as we do under the same names.

use std::fmt::Display;
use std::fs::metadata;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, makedev, statx};

use super::identity::FileId;

/// The root directory and the mounts of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// A root from another namespace may be the same folder, on another mount with others below it.
    root: FileOnMount,
    /// The namespace, if the kernel does not tell the mount. A mount belongs to one namespace.
    mounts: Option<FileId>,
}

/// A file and the mount that it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOnMount {
    file: FileId,
    /// `None` if this kernel does not tell.
    mount: Option<u64>,
}

impl View {
    /// The view of a process, `self` or a number.
    pub fn of(process: impl Display) -> Option<Self> {
        let path = format!("/proc/{process}/root");
        let root = statx(CWD, path, AtFlags::empty(), FileOnMount::ASKED).ok()?;
        let root = FileOnMount::from(&root);
        let mounts = if root.mount.is_none() { Some(namespace_of(process, "mnt")?) } else { None };
        Some(Self { root, mounts })
    }
}

impl FileOnMount {
    const ASKED: StatxFlags = StatxFlags::INO.union(StatxFlags::MNT_ID);

    /// An open file.
    pub fn of(file: impl AsFd) -> Option<Self> {
        statx(file, "", AtFlags::EMPTY_PATH, Self::ASKED).ok().as_ref().map(Self::from)
    }
}

impl From<&Statx> for FileOnMount {
    fn from(found: &Statx) -> Self {
        let tells = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        let device = makedev(found.stx_dev_major, found.stx_dev_minor);
        let file = FileId { device, inode: found.stx_ino };
        Self { file, mount: tells.then_some(found.stx_mnt_id) }
    }
}

/// A namespace of a process, such as `user`. The process is `self` or a number.
pub fn namespace_of(process: impl Display, kind: &str) -> Option<FileId> {
    metadata(format!("/proc/{process}/ns/{kind}")).ok().map(|found| FileId::from(&found))
}
