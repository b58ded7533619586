//! Where paths lead for a process that waits for an answer.
//!
//! Links to `/proc/self` lead somewhere else for the keeper than for that process. Where a path begins with one, that
//! of the process is taken. One behind other links is an error.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::c_int;

/// Where an absolute path leads.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path_of(&open_clear(None, path.as_os_str().as_bytes(), 0)?)
}

/// Where a path leads for a process in this directory.
pub fn real_path_for(process: i32, directory: &Path, path: &str) -> io::Result<PathBuf> {
    let Some((link, rest)) = own_link(process, path.as_bytes()) else {
        return real_path(&directory.join(path));
    };
    // The keeper names it for a process that is not there yet.
    if process == std::process::id() as i32 {
        return Err(io::Error::from_raw_os_error(libc::ELOOP));
    }
    let opened = open(None, &link, 0)?;
    match rest.is_empty() {
        true => path_of(&opened),
        false => path_of(&open_clear(Some(opened.as_fd()), rest, 0)?),
    }
}

fn path_of(opened: &OwnedFd) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    // `/proc/self` is a link like any other, which nothing stops.
    match path.starts_with(format!("/proc/{}", std::process::id())) {
        true => Err(io::Error::from_raw_os_error(libc::ELOOP)),
        false => Ok(path),
    }
}

/// Opens a path without links that mean something else to the process than to us.
pub fn open_clear(from: Option<BorrowedFd<'_>>, path: &[u8], resolve: u64) -> io::Result<OwnedFd> {
    open(from, path, resolve | libc::RESOLVE_NO_MAGICLINKS)
}

/// For a path that begins with a link in the process's own folder in `/proc`: that link, as we have to write it, and
/// the rest of the path.
pub fn own_link(process: i32, path: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    const STREAMS: [(&[u8], &str); 3] =
        [(b"/dev/stdin", "fd/0"), (b"/dev/stdout", "fd/1"), (b"/dev/stderr", "fd/2")];
    const FOLDERS: [(&[u8], &str); 3] =
        [(b"/proc/self/", ""), (b"/proc/thread-self/", ""), (b"/dev/fd/", "fd/")];
    let own =
        |link: &str, rest: &[u8]| [format!("/proc/{process}/{link}").as_bytes(), rest].concat();
    if let Some((_, link)) = STREAMS.into_iter().find(|(stream, _)| *stream == path) {
        return Some((own(link, b""), b""));
    }
    let (folder, link) = FOLDERS.into_iter().find(|(folder, _)| path.starts_with(folder))?;
    let rest = &path[folder.len()..];
    // `fd/3` is a link, and so are `exe`, `cwd` and `root`.
    let skipped = if link.is_empty() && rest.starts_with(b"fd/") { 3 } else { 0 };
    let end = rest[skipped..].iter().position(|byte| *byte == b'/');
    let end = end.map_or(rest.len(), |end| skipped + end);
    let behind =
        rest[end..].iter().position(|byte| *byte != b'/').map_or(rest.len(), |at| end + at);
    Some((own(link, &rest[..end]), &rest[behind..]))
}

/// Opens a path without reading it.
pub fn open(from: Option<BorrowedFd<'_>>, path: &[u8], resolve: u64) -> io::Result<OwnedFd> {
    let path = CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    open_path(from.map_or(libc::AT_FDCWD, |from| from.as_raw_fd()), &path, resolve)
}

fn open_path(from: c_int, path: &CStr, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all zeroes is a valid `open_how`.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = resolve;
    // SAFETY: both pointers are to live values, and the size is that of the second.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            from,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    match opened {
        // SAFETY: the kernel has just made this descriptor for us.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_through_the_own_folder_in_proc_is_that_of_the_process() {
        let parsed = |path: &'static str| {
            let (link, rest) = own_link(7, path.as_bytes())?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(&link), text(rest)))
        };
        let some = |link: &str, rest: &str| Some((link.to_owned(), rest.to_owned()));
        assert_eq!(parsed("/proc/self/exe"), some("/proc/7/exe", ""));
        assert_eq!(parsed("/proc/self/fd/3"), some("/proc/7/fd/3", ""));
        assert_eq!(parsed("/proc/thread-self/cwd//a/b"), some("/proc/7/cwd", "a/b"));
        assert_eq!(parsed("/dev/fd/5"), some("/proc/7/fd/5", ""));
        assert_eq!(parsed("/dev/stdin"), some("/proc/7/fd/0", ""));
        assert_eq!(parsed("/usr/bin/ls"), None);
    }

    #[test]
    fn a_link_that_leads_through_the_own_folder_in_proc_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let at = |path: &str| folder.join(path);
        fs::write(at("file"), "").unwrap();
        for (name, link) in
            [("plain", "file"), ("cwd", "/proc/self/cwd"), ("status", "/proc/self/status")]
        {
            std::os::unix::fs::symlink(link, at(name)).unwrap();
        }
        assert_eq!(real_path(&at("plain")).unwrap(), at("file"));
        for path in ["cwd", "cwd/Cargo.toml", "status"] {
            let error = real_path(&at(path)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{path}");
        }
        let mut other = std::process::Command::new("sleep");
        let mut other = other.arg("300").current_dir(&folder).spawn().unwrap();
        let found = |process| real_path_for(process, &folder, "/proc/self/cwd/plain");
        assert_eq!(found(other.id() as i32).unwrap(), at("file"));
        assert!(found(std::process::id() as i32).is_err());
        other.kill().and_then(|()| other.wait()).unwrap();
    }
}
