//! Finds the machine's sockets that have a path.
//!
//! A read-only mount does not prevent a connection to a socket, nor does Landlock before version 9. So the sandbox
//! looks up all sockets, under every path that a mount gives them, and hides them one by one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The paths of all sockets that are bound now.
pub fn bound() -> BTreeSet<PathBuf> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let names = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mounts: Vec<_> = mounts.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
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

/// One line of `mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Vec<u8>,
    /// The folder of the file system that is mounted at `point`.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = fields.nth(2)?.to_vec();
        Some(Self { device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
    }
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

/// Decodes a field, in which the kernel writes blanks, newlines and backslashes as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, code) {
            (b'\\', Some(code)) => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        21 20 0:22 / /run rw - tmpfs tmpfs rw\n\
        22 20 0:22 /docker /srv/with\\040blank rw - tmpfs tmpfs rw\n\
        23 20 0:22 /docker/d.sock /opt/d.sock rw - tmpfs tmpfs rw";

    #[test]
    fn a_socket_is_found_under_every_name_a_mount_gives_it() {
        let mounts: Vec<_> =
            MOUNTS.split('\n').filter_map(|line| Mount::parse(line.as_bytes())).collect();
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
