//! Finds the machine's sockets that have a path.
//!
//! A read-only mount does not prevent a connection to a socket, nor does Landlock before version 9. So the sandbox
//! looks up all sockets, under every path that a mount gives them, and hides them one by one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::mounts::{Mount, mounts};

/// The paths of all sockets that are bound now.
pub fn bound() -> BTreeSet<PathBuf> {
    let mounts = mounts();
    let names = std::fs::read("/proc/net/unix").unwrap_or_default();
    let names = names.split(|byte| *byte == b'\n').filter_map(name);
    let aliases = names.flat_map(|name| aliases(&name, &mounts));
    // A socket that is itself a mount point may belong to another network namespace, whose sockets are not listed.
    let mounted = mounts.iter().map(|mount| mount.point.clone());
    mounted.chain(aliases).filter(|path| is_socket(path)).collect()
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

/// The last field of a line, if it is a path. Other sockets have no name, or one that begins with `@`.
fn name(line: &[u8]) -> Option<PathBuf> {
    let start = line.windows(2).position(|pair| pair == b" /")? + 1;
    let path = PathBuf::from(OsString::from_vec(line[start..].to_vec()));
    Some(path.canonicalize().unwrap_or(path))
}

/// All paths of a file, which has several if its file system, or a part of it, is mounted more than once.
fn aliases(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // Of several mounts at the same point, the last one is visible.
    let under = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(own) = under.max_by_key(|mount| mount.point.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.point) else { return Vec::new() };
    let inner = own.root.join(below);
    let same = mounts.iter().filter(|mount| mount.device == own.device);
    same.filter_map(|mount| Some(mount.point.join(inner.strip_prefix(&mount.root).ok()?)))
        // Joining an empty path leaves a slash at the end.
        .map(|path| path.components().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    const MOUNTS: &str = "\
        20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        21 20 0:22 / /run rw - tmpfs tmpfs rw\n\
        22 20 0:22 /docker /srv/with\\040blank rw - tmpfs tmpfs rw\n\
        23 20 0:22 /docker/d.sock /opt/d.sock rw - tmpfs tmpfs rw";

    #[test]
    fn a_socket_is_found_under_every_name_a_mount_gives_it() {
        let mounts: Vec<_> = parse(MOUNTS.as_bytes()).collect();
        let found = aliases(Path::new("/run/docker/d.sock"), &mounts);
        let expected = ["/run/docker/d.sock", "/srv/with blank/d.sock", "/opt/d.sock"];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn a_socket_somebody_listens_on_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(bound().contains(&path));
    }
}
