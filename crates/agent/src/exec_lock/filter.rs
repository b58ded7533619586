//! The filter that makes the kernel ask the keeper before every `execve` and `execveat`.
//!
//! The keeper installs it once, on itself, so that everything it starts inherits it, and holds the descriptor on which
//! the questions arrive. It sleeps while it starts a program (`CLONE_VFORK`) and cannot answer then. So the filter lets
//! an `execve` pass whose fourth argument, which the kernel ignores, is a random token that only the keeper knows.
//!
//! Calls of another architecture, such as the 32-bit calls of x86, are refused: their arguments are laid out
//! differently, and no program that is built for this machine makes them.
//!
//! The kernel asks before calls that change what is mounted as well. Root could put another file over an allowed
//! program. And with a file system of the type `binfmt_misc`, a process in a user namespace of its own could have the
//! kernel run another program in place of the one that it asked about.
//!
//! Where commands may change shared configurations of git, it asks before files are renamed (`git_configs.rs`). This
//! may be all that it asks about.
//!
//! `prctl(PR_SET_MM)` is refused as well. It changes what `/proc` says about a process's memory and its executable, by
//! which the keeper knows processes. So is `pidfd_getfd`, with which root could take the keeper's descriptor and answer
//! in its place. Only programs that save and restore others, or debug them, use these.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_long, c_ulong, sock_filter, sock_fprog};

/// Where the kernel's description of a call (`seccomp_data`) has what.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const FOURTH_ARGUMENT: u32 = 16 + 3 * 8;

/// This architecture, as the kernel's audit code calls it.
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xc000_00f3;

/// The first number of the x32 calls, which duplicate all others under other numbers.
const X32: u32 = 1 << 30;

/// The numbers of the same calls in 32 bits: `execve`, `execveat` of x86 and of Arm, `mount`, `umount`, `umount2`,
/// `pivot_root` of both, `move_mount`, `fsopen` and `pidfd_getfd`.
const REFUSED_32: [u32; 11] = [11, 358, 387, 21, 22, 52, 217, 218, 429, 430, 438];
const PRCTL_32: u32 = 172;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;

const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;

/// What the kernel asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asks {
    pub execs: bool,
    pub renames: bool,
}

/// Installs the filter on the calling thread, and returns the descriptor on which the kernel asks.
pub fn install(token: u64, asks: Asks) -> io::Result<OwnedFd> {
    let installed = install_filter(token, asks);
    match &installed {
        // Only root may install filters on programs that can gain privileges.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {}
        _ => return installed,
    }
    let [yes, none]: [c_ulong; 2] = [1, 0];
    // SAFETY: plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) } != 0 {
        return Err(io::Error::last_os_error());
    }
    install_filter(token, asks)
}

fn install_filter(token: u64, asks: Asks) -> io::Result<OwnedFd> {
    let mut filter = if asks.renames { ask_about_renames() } else { Vec::new() };
    match asks.execs {
        true => filter.extend(ask_about_execs(token)),
        false => filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW)),
    }
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Once a question was received, signals that do not kill wait until it is answered. Otherwise a program that is
    // signalled often, as those in Go are, would ask again and again. Linux 5.19 is the first that knows this.
    for flags in [listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listen] {
        // SAFETY: the program is a live list of that length, and the kernel only reads it.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if listener >= 0 {
            // SAFETY: the kernel has just made this descriptor for us.
            let listener = unsafe { OwnedFd::from_raw_fd(listener as i32) };
            answer_on_same_processor(&listener);
            return Ok(listener);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Asks the kernel to wake us where the process runs that asks: it waits for us anyway, and another processor would
/// have to be woken first. Linux 6.6 is the first that knows this.
fn answer_on_same_processor(listener: &OwnedFd) {
    const SYNC_WAKE_UP: c_ulong = 1;
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: a plain number; a kernel that does not know the request refuses it.
    unsafe { libc::ioctl(listener.as_raw_fd(), request, SYNC_WAKE_UP) };
}

/// The numbers of the calls that rename files.
const RENAMES: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

/// Asks about calls of this architecture that rename files, and goes on with what follows for all others.
fn ask_about_renames() -> Vec<sock_filter> {
    let calls = RENAMES.len() as u8;
    let mut filter =
        vec![step(LOAD, ARCHITECTURE), jump(IF_EQUAL, NATIVE, 0, calls + 2), step(LOAD, NUMBER)];
    filter.extend(RENAMES.iter().zip(0..).map(|(call, at)| {
        let (to_question, past_it) = (calls - 1 - at, u8::from(at + 1 == calls));
        jump(IF_EQUAL, number(*call), to_question, past_it)
    }));
    filter.push(step(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    filter
}

/// Calls that change what is mounted where.
const MOUNTS: [c_long; 5] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_fsopen,
    libc::SYS_move_mount,
];

/// The filter for programs.
fn ask_about_execs(token: u64) -> Vec<sock_filter> {
    let foreign = calls_of_another_architecture();
    let mut filter = vec![step(LOAD, ARCHITECTURE), jump(IF_EQUAL, NATIVE, foreign.len() as u8, 0)];
    filter.extend(foreign);
    filter.extend([
        step(LOAD, NUMBER),
        jump(IF_AT_LEAST, X32, 0, 1),
        step(RETURN, REFUSE),
        // Both halves of the token.
        jump(IF_EQUAL, number(libc::SYS_execve), 0, 6),
        step(LOAD, FOURTH_ARGUMENT + LOW),
        jump(IF_EQUAL, token as u32, 0, 3),
        step(LOAD, FOURTH_ARGUMENT + HIGH),
        jump(IF_EQUAL, (token >> 32) as u32, 0, 1),
        step(RETURN, libc::SECCOMP_RET_ALLOW),
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF),
    ]);
    let asked = MOUNTS.iter().chain([&libc::SYS_execveat]);
    filter.extend(asked.flat_map(|call| on(number(*call), libc::SECCOMP_RET_USER_NOTIF)));
    filter.extend(on(number(libc::SYS_pidfd_getfd), REFUSE));
    filter.extend(refuse_set_mm(number(libc::SYS_prctl)));
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    filter
}

fn calls_of_another_architecture() -> Vec<sock_filter> {
    let mut filter = vec![step(LOAD, NUMBER)];
    filter.extend(REFUSED_32.iter().flat_map(|call| on(*call, REFUSE)));
    filter.extend(refuse_set_mm(PRCTL_32));
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    filter
}

/// What to do about one call.
fn on(call: u32, action: u32) -> [sock_filter; 2] {
    [jump(IF_EQUAL, call, 0, 1), step(RETURN, action)]
}

/// Refuses one option of `prctl`, of which the kernel takes the lower half.
fn refuse_set_mm(prctl: u32) -> [sock_filter; 5] {
    [
        jump(IF_EQUAL, prctl, 0, 4),
        step(LOAD, FIRST_ARGUMENT + LOW),
        jump(IF_EQUAL, libc::PR_SET_MM as u32, 0, 1),
        step(RETURN, REFUSE),
        step(RETURN, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Where the halves of an argument are.
const LOW: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };
const HIGH: u32 = 4 - LOW;

fn number(call: c_long) -> u32 {
    call as u32
}

fn step(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
