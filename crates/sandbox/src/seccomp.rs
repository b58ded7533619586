//! The system calls that a confined command may not make, as filters that the kernel runs before each call.
//!
//! The filter lists what is refused, because ordinary programs make calls that nobody would think of allowing.
//! Dangerous calls fail with EPERM. Calls for which programs have a fallback, and calls newer than this list, fail
//! with ENOSYS.
//!
//! Compare only the half of an argument that the kernel uses. A filter that compared all of it would let
//! `ioctl(0, 1 << 32 | TIOCSTI)` pass.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use serde::{Deserialize, Serialize};

/// What isolates a command besides its restrictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Namespaces without the machine's sockets, other processes and write access to its files.
    Namespaces,
    /// Nothing. Landlock does not cover the metadata of files, and a socket could connect to anything, so the filter
    /// refuses both.
    None,
}

/// The first number of the x32 calls, which duplicate all others under other numbers.
const X32: u32 = 1 << 30;

/// The newest call that was considered for this list.
const NEWEST: u32 = 470;

// Not in the `libc` crate yet.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

const REFUSED: &[c_long] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Work that the kernel does for the process, past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    // Keyrings belong to a user, not to a namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Other views of the files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // Access to files by inode, past the mounts that cover their names.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// What is also refused without namespaces: changes to modes, owners, times and extended attributes of any file.
const REFUSED_WITHOUT_NAMESPACES: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // No socket is safe.
    libc::SYS_socket,
];

/// Calls whose first argument is the process to change. Only 0, the caller itself, is allowed.
const PROCESS_CHANGES: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls whose second argument is what to change, and whose first is its kind. The number is the kind that means all
/// processes of a user, which is refused.
const USER_CHANGES: &[(c_long, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

const NAMESPACES: &[c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Only for `unshare`: in `clone`, this bit belongs to the signal number.
const CLONE_NEWTIME: c_int = 0x80;

/// Calls that change the mode of a file, and which argument it is. A program with the set-user-ID bit lends our user's
/// rights to everyone who starts it later, outside. The set-group-ID bit is allowed here: shared folders need it
/// (`git init --shared`), this filter cannot tell a folder from a file, and the only group that commands have is our
/// user's own.
const MODE_CHANGES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// Calls that create a file, and which argument is its mode. Nothing needs either bit here. `mkdir` is not among them:
/// the kernel ignores the bits there.
const CREATIONS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that open a file, and which argument has the flags. The next one is the mode, but only with flags that create
/// a file; otherwise it may be anything.
const OPENINGS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

const CREATING_FLAGS: &[c_int] = &[libc::O_CREAT, libc::O_TMPFILE];

const SET_IDS: &[libc::mode_t] = &[libc::S_ISUID, libc::S_ISGID];

/// Requests that insert input into a terminal as if it had been typed.
const TERMINAL_INJECTION: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

const FAMILIES: &[c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Protocols that network namespaces and the proxy cover. Not MPTCP or SCTP.
const PROTOCOLS: &[c_int] =
    &[0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];

const TYPES: &[c_int] = &[libc::SOCK_STREAM, libc::SOCK_DGRAM];

/// The bits of a socket's type that are not flags.
const TYPE_MASK: u64 = 0xf;

/// The large filter, which covers everything except `clone3` and `openat2`.
pub fn program(isolation: Isolation) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<_, Vec<_>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, any_of(NAMESPACES, has)?);
    rules.insert(libc::SYS_unshare, any_of(&[NAMESPACES, &[CLONE_NEWTIME]].concat(), has)?);
    let injection =
        TERMINAL_INJECTION.iter().map(|request| all_of([argument(1, Is::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, injection.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socketpair, vec![none_of(0, &[libc::AF_UNIX])?]);
    refuse_set_ids(&mut rules)?;
    match isolation {
        Isolation::Namespaces => {
            rules.insert(libc::SYS_socket, socket_rules()?);
        }
        Isolation::None => refuse_changes(&mut rules)?,
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let mut program = prologue();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

fn refuse_set_ids(rules: &mut BTreeMap<c_long, Vec<SeccompRule>>) -> Result<(), BackendError> {
    for (call, mode) in MODE_CHANGES {
        rules.insert(*call, vec![all_of([has_bits(*mode, libc::S_ISUID)])?]);
    }
    for (call, mode) in CREATIONS {
        let of_bit = |bit: &libc::mode_t| all_of([has_bits(*mode, *bit)]);
        rules.insert(*call, SET_IDS.iter().map(of_bit).collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENINGS {
        let mut refused = Vec::new();
        for flag in CREATING_FLAGS {
            for bit in SET_IDS {
                let conditions = [has_bits(*flags, *flag as u32), has_bits(flags + 1, *bit)];
                refused.push(all_of(conditions)?);
            }
        }
        rules.insert(*call, refused);
    }
    Ok(())
}

fn refuse_changes(rules: &mut BTreeMap<c_long, Vec<SeccompRule>>) -> Result<(), BackendError> {
    rules.extend(REFUSED_WITHOUT_NAMESPACES.iter().map(|call| (*call, Vec::new())));
    for call in PROCESS_CHANGES {
        rules.insert(*call, vec![none_of(0, &[0])?]);
    }
    for (call, users) in USER_CHANGES {
        rules.insert(*call, vec![none_of(1, &[0])?, all_of([argument(0, Is::Eq, *users)])?]);
    }
    Ok(())
}

fn socket_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = vec![none_of(0, FAMILIES)?];
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = argument(0, Is::Eq, family as u64)?;
        let protocols = PROTOCOLS.iter().map(|it| argument(2, Is::Ne, *it as u64));
        rules.push(all_of([Ok(family.clone())].into_iter().chain(protocols))?);
        // All other types: raw packets, and SCTP as protocol 0.
        for kind in (0..=TYPE_MASK).filter(|kind| TYPES.iter().all(|it| *it as u64 != *kind)) {
            let kind = argument(1, Is::MaskedEq(TYPE_MASK), kind);
            rules.push(all_of([Ok(family.clone()), kind])?);
        }
    }
    // Programs query the machine's addresses here. Other netlink protocols expose other parts of the kernel.
    let netlink = argument(0, Is::Eq, libc::AF_NETLINK as u64);
    rules.push(all_of([netlink, argument(2, Is::Ne, libc::NETLINK_ROUTE as u64)])?);
    Ok(rules)
}

/// What precedes the rules, because rules cannot express a range of calls or a second errno.
fn prologue() -> BpfProgram {
    vec![
        instruction(LOAD, 0, 0, CALL_NUMBER),
        instruction(AT_LEAST, 1, 0, X32),
        instruction(AT_LEAST, 1, 2, NEWEST + 1),
        instruction(RETURN, 0, 0, errno_action(libc::EPERM)),
        instruction(RETURN, 0, 0, errno_action(libc::ENOSYS)),
    ]
}

/// The small filter, which disables `clone3` and `openat2`. Their flags and modes are in memory, which no filter can
/// read, and programs fall back to `clone` and `openat`. It is separate because keepers need both: `clone3` to start a
/// command in a cgroup, `openat2` to find out what a command wants to execute.
pub fn without_hidden_arguments() -> BpfProgram {
    vec![
        instruction(LOAD, 0, 0, CALL_NUMBER),
        instruction(EQUAL, 1, 0, libc::SYS_clone3 as u32),
        instruction(EQUAL, 0, 1, libc::SYS_openat2 as u32),
        instruction(RETURN, 0, 0, errno_action(libc::ENOSYS)),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The offset of the call's number in the data that a filter sees.
const CALL_NUMBER: u32 = 0;

/// One instruction. If it jumps, it skips `yes` or `no` instructions.
fn instruction(code: u16, yes: u8, no: u8, k: u32) -> sock_filter {
    sock_filter { code, jt: yes, jf: no, k }
}

fn errno_action(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

fn any_of(
    flags: &[c_int],
    rule: fn(c_int) -> Result<SeccompRule, BackendError>,
) -> Result<Vec<SeccompRule>, BackendError> {
    flags.iter().map(|flag| rule(*flag)).collect()
}

/// Matches if the first argument has this flag.
fn has(flag: c_int) -> Result<SeccompRule, BackendError> {
    all_of([has_bits(0, flag as u32)])
}

/// Holds if an argument has all of these bits.
fn has_bits(index: u8, bits: u32) -> Result<SeccompCondition, BackendError> {
    argument(index, Is::MaskedEq(bits.into()), bits.into())
}

fn none_of(index: u8, values: &[c_int]) -> Result<SeccompRule, BackendError> {
    all_of(values.iter().map(|value| argument(index, Is::Ne, *value as u64)))
}

fn all_of(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, BackendError>>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// A condition on the half of an argument that the kernel uses.
fn argument(index: u8, is: Is, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, Width::Dword, is, value)
}
