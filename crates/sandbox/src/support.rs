//! Finds out by trying what this machine can enforce, and how to fix what it cannot.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::ABI;

use crate::bubblewrap::{Bubblewrap, Version};
use crate::layout::Layout;
use crate::restrictions::landlock_version;

/// How much of a sandbox this machine can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Not enough: commands must not run.
    Nothing,
    /// Landlock and seccomp without namespaces: commands have no network, no sockets and no private `/tmp`, and cannot
    /// change the mode of a file. Nothing inside a writable folder can be protected. Commands see other processes,
    /// though not their environment.
    RestrictionsOnly,
    /// Namespaces and restrictions.
    Both,
}

/// Something that is missing, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub cause: String,
    pub fix: String,
}

/// What this machine supports.
#[derive(Debug)]
pub struct Support {
    pub landlock: Option<ABI>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    pub bubblewrap: Option<Bubblewrap>,
    pub obstacles: Vec<Obstacle>,
}

impl Support {
    /// Tries everything. `bwrap` is the path of that program, if it was found. `trial` is a program, with arguments,
    /// that runs a [`trial`](crate::trial) inside the layout and succeeds if nothing was possible that must not be.
    pub fn probe(bwrap: Option<&Path>, layout: &mut Layout, trial: (&Path, &[OsString])) -> Self {
        let mut obstacles = Vec::new();
        let landlock = match landlock_version() {
            Ok(abi) => Some(abi),
            Err(error) => {
                obstacles.push(no_landlock(&error));
                None
            }
        };
        let no_seccomp = no_seccomp();
        let seccomp = no_seccomp.is_none();
        obstacles.extend(no_seccomp);
        let mut bubblewrap = find(bwrap).and_then(|found| try_out(found, layout, trial));
        while bubblewrap.is_err() && layout.uncover_gone() {
            bubblewrap = find(bwrap).and_then(|found| try_out(found, layout, trial));
        }
        let bubblewrap = bubblewrap.map_err(|obstacle| obstacles.push(obstacle)).ok();
        Self { landlock, seccomp, bubblewrap, obstacles }
    }

    pub fn protection(&self) -> Protection {
        match (self.landlock, &self.bubblewrap) {
            (None, _) => Protection::Nothing,
            _ if !self.seccomp => Protection::Nothing,
            (Some(_), Some(_)) => Protection::Both,
            // Before version 6, a command could truncate files and signal other processes.
            (Some(abi), None) if abi >= ABI::V6 => Protection::RestrictionsOnly,
            (Some(_), None) => Protection::Nothing,
        }
    }

    /// Whether commands can share the machine's network without reaching its abstract sockets, which belong to the same
    /// namespace.
    pub fn can_share_network(&self) -> bool {
        self.bubblewrap.is_some() && self.landlock.is_some_and(|abi| abi >= ABI::V6)
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.cause, self.fix)
    }
}

impl Obstacle {
    fn new(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { cause: cause.into(), fix: fix.into() }
    }
}

fn no_landlock(error: &io::Error) -> Obstacle {
    let (cause, fix) = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => (
            "Landlock is built into this kernel, but was not enabled at boot",
            "add landlock to the kernel's lsm= list",
        ),
        Some(libc::EPERM) => (
            "a container's seccomp filter blocks Landlock",
            "allow the landlock_* system calls in the container",
        ),
        _ => {
            ("this kernel has no Landlock", "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK")
        }
    };
    Obstacle::new(cause, fix)
}

fn no_seccomp() -> Option<Obstacle> {
    let answer = libc::SECCOMP_RET_ERRNO;
    // SAFETY: asks whether the kernel knows this action; the pointer is to a live value.
    let known = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const answer)
    };
    (known != 0).then(|| {
        let cause = format!("cannot filter system calls ({})", io::Error::last_os_error());
        let fix = "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp(2)";
        Obstacle::new(cause, fix)
    })
}

fn find(bwrap: Option<&Path>) -> Result<Bubblewrap, Obstacle> {
    let missing = |cause: String| {
        let fix = "install the package bubblewrap";
        Obstacle::new(cause, fix)
    };
    let bwrap = bwrap.ok_or_else(|| missing("bwrap is not on PATH".into()))?;
    let told = Command::new(bwrap).arg("--version").stdin(Stdio::null()).output();
    let told =
        told.map_err(|error| missing(format!("cannot run {} ({error})", bwrap.display())))?;
    let version = Version::parse(&String::from_utf8_lossy(&told.stdout));
    match version {
        Some(version) if version >= Version::OLDEST => {
            Ok(Bubblewrap { program: PathBuf::from(bwrap), version })
        }
        version => {
            let told = version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
            let cause = format!("{} has version {told}", bwrap.display());
            let fix = format!("install bubblewrap {} or later", Version::OLDEST);
            Err(Obstacle::new(cause, fix))
        }
    }
}

/// Runs the trial in namespaces.
fn try_out(
    bubblewrap: Bubblewrap,
    layout: &Layout,
    (program, arguments): (&Path, &[OsString]),
) -> Result<Bubblewrap, Obstacle> {
    let tried = bubblewrap
        .command(layout, program, arguments)
        .and_then(|mut prepared| prepared.command.stdin(Stdio::null()).output());
    match tried {
        Ok(output) if output.status.success() => Ok(bubblewrap),
        Ok(output) => Err(no_namespaces(String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(no_namespaces(&error.to_string())),
    }
}

/// Why `bwrap` could not create namespaces, as far as the system's settings tell.
fn no_namespaces(said: &str) -> Obstacle {
    let said = said.lines().next().unwrap_or("bwrap printed nothing");
    let root = rustix::process::geteuid().is_root();
    let switches: [(&str, &str, bool); 3] = [
        ("/proc/sys/user/max_user_namespaces", "0", false),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", true),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", true),
    ];
    let off = switches.iter().position(|(path, off, for_others)| {
        let value = std::fs::read_to_string(path).unwrap_or_default();
        value.trim() == *off && !(*for_others && root)
    });
    let fix = match off {
        Some(0) => "sysctl user.max_user_namespaces=15000",
        Some(1) => "sysctl kernel.unprivileged_userns_clone=1",
        Some(_) => {
            "give bwrap an AppArmor profile that allows userns (package apparmor-profiles: \
             bwrap-userns-restrict), or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        }
        // It names the path.
        None if said.starts_with("bwrap: Can't ") && said.contains('/') => {
            "try again: a file that has just been replaced cannot be covered. If it stays, look at the path"
        }
        None if in_container() => {
            "allow the container to create namespaces and mount /proc: with Docker, --security-opt \
             seccomp=unconfined --security-opt systempaths=unconfined, or --privileged"
        }
        None => "run `bwrap --unshare-user --ro-bind / / true` to see why",
    };
    Obstacle::new(format!("bwrap cannot create a sandbox ({said})"), fix)
}

fn in_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|path| {
        !matches!(std::fs::metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
    })
}
