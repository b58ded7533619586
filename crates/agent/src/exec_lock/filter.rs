//! The filter that makes the kernel ask the keeper before every `execve` and `execveat`.
//!
//! The keeper installs it once, on itself, so that everything it starts inherits it, and holds the descriptor on which
//! the questions arrive. It sleeps while it starts a program (`CLONE_VFORK`) and cannot answer then. So the filter lets
//! an `execve` pass whose fourth argument, which the kernel ignores, is a random token that only the keeper knows.
//!
//! Calls of another architecture, such as the 32-bit calls of x86, are refused: their arguments are laid out
//! differently, and no program that is built for this machine makes them.
//!
//! The kernel asks before `mount` and `fsopen` as well: with a file system of the type `binfmt_misc`, a process in a
//! user namespace of its own could have the kernel run another program in place of the one that it asked about.
//!
//! Where commands may change shared configurations of git, it asks before files are renamed (`git_configs.rs`). This
//! may be all that it asks about.
//!
//! `prctl(PR_SET_MM)` is refused as well. It changes what `/proc` says about a process's memory and its executable, by
//! which the keeper knows processes. Only programs that save and restore others use it.

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

/// The numbers of `execve` and `execveat` in the 32-bit calls, of x86 and of Arm.
const EXECVE_32: u32 = 11;
const EXECVEAT_32: [u32; 2] = [358, 387];

/// The numbers of `mount`, `fsopen` and `prctl` in both.
const MOUNT_32: u32 = 21;
const FSOPEN_32: u32 = 430;
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

/// The filter for programs, from the top: jumps count the instructions to skip.
fn ask_about_execs(token: u64) -> [sock_filter; 25] {
    let execve = number(libc::SYS_execve);
    let execveat = number(libc::SYS_execveat);
    let prctl = number(libc::SYS_prctl);
    let mount = number(libc::SYS_mount);
    let fsopen = number(libc::SYS_fsopen);
    [
        step(LOAD, ARCHITECTURE),
        jump(IF_EQUAL, NATIVE, 7, 0),
        // Another architecture.
        step(LOAD, NUMBER),
        jump(IF_EQUAL, EXECVE_32, 20, 0),
        jump(IF_EQUAL, EXECVEAT_32[0], 19, 0),
        jump(IF_EQUAL, EXECVEAT_32[1], 18, 0),
        jump(IF_EQUAL, MOUNT_32, 17, 0),
        jump(IF_EQUAL, FSOPEN_32, 16, 0),
        jump(IF_EQUAL, PRCTL_32, 11, 13),
        // This architecture.
        step(LOAD, NUMBER),
        jump(IF_EQUAL, execve, 5, 0),
        jump(IF_EQUAL, execveat, 11, 0),
        jump(IF_EQUAL, prctl, 7, 0),
        jump(IF_EQUAL, mount, 9, 0),
        jump(IF_EQUAL, fsopen, 8, 0),
        jump(IF_AT_LEAST, X32, 8, 6),
        // execve: both halves of the token.
        step(LOAD, FOURTH_ARGUMENT + LOW),
        jump(IF_EQUAL, token as u32, 0, 5),
        step(LOAD, FOURTH_ARGUMENT + HIGH),
        jump(IF_EQUAL, (token >> 32) as u32, 2, 3),
        // prctl: the option, of which the kernel takes the lower half.
        step(LOAD, FIRST_ARGUMENT + LOW),
        jump(IF_EQUAL, libc::PR_SET_MM as u32, 2, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW),
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF),
        step(RETURN, REFUSE),
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
