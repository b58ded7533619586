//! Mounts that are nowhere yet, and what they become.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

/// A mount like the one there, with all mounts below it, that is nowhere yet.
pub fn clone_tree(folder: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(folder, path, flags)?)
}

/// Mounts it at a path below an open folder.
pub fn attach(mount: &OwnedFd, folder: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(mount, "", folder, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Makes a mount read-only, but not its file system.
pub fn make_read_only(mount: &OwnedFd) -> io::Result<()> {
    // Set and cleared attributes, propagation, user namespace.
    let attributes: [u64; 4] = [MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into(), 0, 0, 0];
    // SAFETY: the path is a string, and the attributes are a live structure of that size in the kernel's layout.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
