//! What a command gives up between fork and exec, and can never get back.
//!
//! At that point the child shares its parent's memory and may only make system calls. So the parent prepares
//! everything: the Landlock rules are a descriptor, the filters are compiled programs, and
//! [`Restrictions::restrict_command`] allocates nothing.
//!
//!     agent ─ restrict_agent ─▶ keeper ─ clone ─ restrict_command ─▶ command
//!
//! The kernel takes half a millisecond to install the large filter, as long as it takes to run `true`. So the agent
//! installs it once, and everything it starts inherits it. Each command only gets a Landlock domain of its own, outside
//! of which it cannot trace, signal or inspect processes, and the small filter.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use libc::{c_int, c_long, c_ulong};
use seccompiler::{BackendError, BpfProgram};
use serde::{Deserialize, Serialize};

use crate::seccomp::{self, Isolation};

/// What a command may still do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    pub readable: Vec<PathBuf>,
    /// Writable paths are readable as well.
    pub writable: Vec<PathBuf>,
    pub isolation: Isolation,
}

#[derive(Debug, thiserror::Error)]
pub enum RestrictionError {
    #[error("this kernel has no Landlock")]
    NoLandlock,
    #[error("the kernel rejects the Landlock rules")]
    Rules(#[source] RulesetError),
    #[error("cannot open {} for a Landlock rule", .0.display())]
    Path(PathBuf, #[source] io::Error),
    #[error("cannot build the system call filter")]
    Filter(#[source] BackendError),
}

/// Landlock rules and seccomp filters, ready to be applied.
pub struct Restrictions {
    rules: OwnedFd,
    filter: BpfProgram,
    small_filter: BpfProgram,
}

/// The version of the kernel's capability structures for 64 capabilities.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The number of Landlock's rules about paths. Not in `libc`.
const RULE_PATH_BENEATH: c_int = 1;

/// What nobody may create.
const DEVICES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeChar | MakeBlock});

impl Restrictions {
    /// Must be called where the paths mean the same as to the command: inside the namespaces.
    pub fn prepare(permissions: &Permissions) -> Result<Self, RestrictionError> {
        Ok(Self {
            rules: rules(permissions)?,
            filter: seccomp::program(permissions.isolation).map_err(RestrictionError::Filter)?,
            small_filter: seccomp::without_hidden_arguments(),
        })
    }

    /// Lets commands that start from now on write to a folder as well. If it is gone, that allows less, not more.
    pub fn allow_writing(&self, folder: &Path) {
        let (Ok(abi), Ok(opened)) = (landlock_version(), PathFd::new(folder)) else { return };
        // The kernel's layout: the rights, and a descriptor right behind them.
        let rights = (AccessFs::from_all(abi) & !DEVICES).bits().to_ne_bytes();
        let descriptor = opened.as_fd().as_raw_fd().to_ne_bytes();
        let mut rule = [0_u8; 12];
        rule[..8].copy_from_slice(&rights);
        rule[8..].copy_from_slice(&descriptor);
        let (rules, beneath, none) = (self.rules.as_raw_fd(), RULE_PATH_BENEATH, 0);
        // SAFETY: the rule is a live structure of the type that the number names, and the kernel only reads it.
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules, beneath, rule.as_ptr(), none) };
    }

    /// Restricts the calling thread and everything it will start: drops capabilities and installs the large filter.
    pub fn restrict_agent(&self) -> io::Result<()> {
        drop_capabilities()
            .and_then(|()| renounce_privileges())
            .and_then(|()| install(&self.filter))
            .map_err(io::Error::from_raw_os_error)
    }

    /// Restricts the calling thread to the permissions, after an ancestor called `restrict_agent`. Only makes system
    /// calls, which take about 30 µs. On failure returns the errno, and then nothing may be executed.
    pub fn restrict_command(&self) -> Result<(), c_int> {
        let rules = self.rules.as_raw_fd();
        // SAFETY: plain numbers, one of which is a descriptor that lives as long as `self`.
        checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) })?;
        install(&self.small_filter)
    }
}

/// The descriptor of the Landlock rules. A forked process that closes all others must keep it.
impl AsFd for Restrictions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rules.as_fd()
    }
}

/// The kernel's version of Landlock.
pub fn landlock_version() -> Result<ABI, io::Error> {
    const VERSION: c_long = 1;
    // SAFETY: with this flag there is nothing to point to.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION)
    };
    match version {
        ..0 => Err(io::Error::last_os_error()),
        0 | 1 => Ok(ABI::V1),
        2 => Ok(ABI::V2),
        3 => Ok(ABI::V3),
        4 => Ok(ABI::V4),
        5 => Ok(ABI::V5),
        6 => Ok(ABI::V6),
        7 => Ok(ABI::V7),
        8 => Ok(ABI::V8),
        _ => Ok(ABI::V9),
    }
}

/// Landlock rules that refuse everything this kernel can refuse, except what the permissions allow.
fn rules(permissions: &Permissions) -> Result<OwnedFd, RestrictionError> {
    let abi = landlock_version().map_err(|_| RestrictionError::NoLandlock)?;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(RestrictionError::Rules)?;
    if permissions.isolation == Isolation::None && abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi)).map_err(RestrictionError::Rules)?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi)).map_err(RestrictionError::Rules)?;
    }
    let mut rules = rules.create().map_err(RestrictionError::Rules)?;
    let all = [
        (&permissions.readable, AccessFs::from_read(abi)),
        (&permissions.writable, AccessFs::from_all(abi) & !DEVICES),
    ];
    for (paths, access) in all {
        for path in paths {
            let (path_fd, applicable) = match (open(path), applicable(path, abi)) {
                (Ok(path_fd), Ok(applicable)) => (path_fd, applicable),
                // A path that disappeared since it was listed needs no rule: that allows less, not more.
                _ if !path.exists() && !permissions.writable.contains(path) => continue,
                (Err(error), _) | (_, Err(error)) => return Err(error),
            };
            let access = access & applicable;
            rules = rules
                .add_rule(PathBeneath::new(path_fd, access))
                .map_err(RestrictionError::Rules)?;
        }
    }
    Option::from(rules).ok_or(RestrictionError::NoLandlock)
}

fn open(path: &Path) -> Result<PathFd, RestrictionError> {
    PathFd::new(path)
        .map_err(|error| RestrictionError::Path(path.to_owned(), io::Error::other(error)))
}

/// The rights that apply to this path. The kernel rejects a rule with folder rights for a file.
fn applicable(path: &Path, abi: ABI) -> Result<BitFlags<AccessFs>, RestrictionError> {
    let found = path.metadata().map_err(|error| RestrictionError::Path(path.to_owned(), error))?;
    Ok(match found.is_dir() {
        true => AccessFs::from_all(abi),
        false => AccessFs::from_file(abi),
    })
}

/// Drops all capabilities, and for root also the bounding set, which would give them back on exec.
fn drop_capabilities() -> Result<(), c_int> {
    let none: c_ulong = 0;
    let bound = |option: c_int, it: c_ulong| {
        // SAFETY: plain numbers.
        unsafe { libc::prctl(option, it, none, none, none) }
    };
    if rustix::process::geteuid().is_root() {
        let mut held = (0..64).filter(|it| bound(libc::PR_CAPBSET_READ, *it) == 1);
        held.try_for_each(|it| checked(bound(libc::PR_CAPBSET_DROP, it).into()))?;
    }
    let (header, none) = ([CAPABILITY_VERSION, 0], [0_u32; 6]);
    // SAFETY: both pointers are to live values of the layout that this version has.
    checked(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) })
}

/// Without this, only root may install filters or rules.
fn renounce_privileges() -> Result<(), c_int> {
    let [yes, none]: [c_ulong; 2] = [1, 0];
    // SAFETY: plain numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) }.into())
}

fn install(filter: &BpfProgram) -> Result<(), c_int> {
    let program =
        libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut().cast() };
    // SAFETY: the program is a live list of that length, in the kernel's own layout, and the kernel only
    // reads it.
    checked(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    })
}

fn checked(result: c_long) -> Result<(), c_int> {
    match result {
        // SAFETY: always points to the errno of this thread, or of the parent that waits for us.
        -1 => Err(unsafe { *libc::__errno_location() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_any_more_cannot_be_read_but_must_be_there_to_be_written() {
        let (there, gone) = (PathBuf::from("/"), PathBuf::from("/nonexistent"));
        let permissions = |readable: Vec<PathBuf>, writable| Permissions {
            readable,
            writable,
            isolation: Isolation::Namespaces,
        };
        assert!(
            Restrictions::prepare(&permissions(vec![there.clone(), gone.clone()], Vec::new()))
                .is_ok()
        );
        let refused = Restrictions::prepare(&permissions(vec![there], vec![gone.clone()])).err();
        assert!(matches!(refused, Some(RestrictionError::Path(path, _)) if path == gone));
    }
}
