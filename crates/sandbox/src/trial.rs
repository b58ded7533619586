//! Tries, from inside the sandbox, what must not be possible.
//!
//! That a confining call succeeded is only a promise. The trial is the proof, made once where the commands will run,
//! when the server starts. A machine whose trial fails counts as one without bubblewrap (`support.rs`).

use std::fs::OpenOptions;
use std::path::Path;

use libc::c_long;

use crate::restrictions::{Permissions, RestrictionError, Restrictions};
use crate::seccomp::Isolation;

/// Something that was possible and must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hole {
    AgentUnrestricted,
    CommandUnrestricted,
    Writing,
    Family,
    Network,
    Namespace,
    Trace,
    IoUring,
    Mount,
    Clone3,
    SetUserId,
}

/// Restricts the calling process for good, and tries what must not be possible.
pub fn trial(permissions: &Permissions) -> Result<Vec<Hole>, RestrictionError> {
    let restrictions = Restrictions::prepare(permissions)?;
    if restrictions.restrict_agent().is_err() {
        return Ok(vec![Hole::AgentUnrestricted]);
    }
    if restrictions.restrict_command().is_err() {
        return Ok(vec![Hole::CommandUnrestricted]);
    }
    let socket = |family| (libc::SYS_socket, [c_long::from(family), libc::SOCK_STREAM.into(), 0]);
    let mut calls = vec![
        (Hole::Family, socket(libc::AF_VSOCK), libc::EPERM),
        (Hole::Namespace, (libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0]), libc::EPERM),
        (Hole::Trace, (libc::SYS_ptrace, [libc::PTRACE_TRACEME.into(), 0, 0]), libc::EPERM),
        (Hole::IoUring, (libc::SYS_io_uring_setup, [0; 3]), libc::EPERM),
        (Hole::Mount, (libc::SYS_umount2, [0; 3]), libc::EPERM),
        (Hole::SetUserId, (libc::SYS_fchmod, [-1, libc::S_ISUID.into(), 0]), libc::EPERM),
        (Hole::Clone3, (libc::SYS_clone3, [0; 3]), libc::ENOSYS),
    ];
    if permissions.isolation == Isolation::None {
        calls.push((Hole::Network, socket(libc::AF_INET), libc::EPERM));
    }
    let holes = calls.into_iter().filter(|(_, call, errno)| refusal(*call) != Some(*errno));
    let mut holes: Vec<_> = holes.map(|(hole, ..)| hole).collect();
    if ["/", "/etc", "/usr"].iter().any(|folder| can_write(Path::new(folder))) {
        holes.push(Hole::Writing);
    }
    Ok(holes)
}

/// The errno with which a call fails, if it does.
fn refusal((number, [first, second, third]): (c_long, [c_long; 3])) -> Option<i32> {
    // SAFETY: calls that take a pointer get a null pointer; whatever a call creates ends with this process.
    let result = unsafe { libc::syscall(number, first, second, third) };
    (result < 0).then(|| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn can_write(folder: &Path) -> bool {
    let path = folder.join(format!(".mcpz-trial-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path);
    made.is_ok_and(|_| std::fs::remove_file(path).is_ok())
}
