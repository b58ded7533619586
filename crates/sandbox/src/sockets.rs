//! The sockets of the machine that have a name in the file system, where they can be found.
//!
//! A read-only mount does not keep anybody from connecting to a socket, nor does Landlock before
//! its ninth version. So the sockets that somebody listens on are looked up, under every name that
//! a mount gives them, and hidden one by one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// All that is known of now.
pub fn bound() -> BTreeSet<PathBuf> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let names = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mounts: Vec<_> = mounts.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
    let names = names.split(|byte| *byte == b'\n').filter_map(name);
    let aliases = names.flat_map(|name| aliases(&name, &mounts));
    // One that was mounted by itself may belong to another network namespace, whose names are not
    // listed.
    let mounted = mounts.iter().map(|mount| mount.point.clone());
    mounted.chain(aliases).filter(|path| is_socket(path)).collect()
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

/// The last field of a line, if it is a path: others have none, or one that begins with `@`.
fn name(line: &[u8]) -> Option<PathBuf> {
    let start = line.windows(2).position(|pair| pair == b" /")? + 1;
    let path = PathBuf::from(OsString::from_vec(line[start..].to_vec()));
    Some(path.canonicalize().unwrap_or(path))
}

/// What is mounted where, of what.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Vec<u8>,
    /// The folder of the file system that is mounted.
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

/// All names that a path has because a file system, or part of one, is mounted more than once.
fn aliases(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // Of those mounted at the same place the last is seen.
    let under = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(own) = under.max_by_key(|mount| mount.point.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.point) else { return Vec::new() };
    let inner = own.root.join(below);
    let same = mounts.iter().filter(|mount| mount.device == own.device);
    same.filter_map(|mount| Some(mount.point.join(inner.strip_prefix(&mount.root).ok()?)))
        // To join nothing leaves a slash at the end.
        .map(|path| path.components().collect())
        .collect()
}

/// The kernel writes blanks, line ends and backslashes as three octal digits.
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
