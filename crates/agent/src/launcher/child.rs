//! What the child does between clone and exec.
//!
//! It shares the parent's memory, so it must only make system calls and must not allocate. It asks to be killed with
//! its parent. The kernel does that when the *thread* that cloned it ends, so a keeper must have only one thread.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use libc::{c_char, c_int, c_void};
use mcpz_sandbox::Restrictions;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setpriority_process, setrlimit};

use super::SCRIPT_FD;
use crate::frame::{Failure, REPLY_FD, Stage};

/// The C library's own constant overflows its type.
#[cfg(target_arch = "x86_64")]
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Everything the child needs, in the form that system calls take. Lists end with a null pointer; a descriptor of -1
/// is not used.
pub struct Plan<'a> {
    pub programs: *const *const c_char,
    pub argv: *const *const c_char,
    pub environment: *const *const c_char,
    pub directory: *const c_char,
    pub handle: RawFd,
    pub stdin: RawFd,
    pub stdout: RawFd,
    pub stderr: RawFd,
    /// Whether stdin is a terminal, which becomes the controlling terminal.
    pub terminal: bool,
    pub replies: RawFd,
    pub script: RawFd,
    pub restrictions: *const Restrictions,
    pub limits: &'a [(Resource, Rlimit)],
    pub memory: Option<(Resource, Rlimit)>,
    pub counts_memory: bool,
    pub nice: Option<i32>,
    /// What the keeper's filter wants to see before it lets an `execve` pass unasked.
    pub token: u64,
    pub failure: Option<Failure>,
}

/// Runs in the child until it executes its program.
extern "C" fn become_program(plan: *mut c_void) -> c_int {
    // SAFETY: `clone` passes a live `Plan`, and our parent sleeps until we execute or exit. Only
    // system calls are made, on descriptors and strings that the parent keeps alive meanwhile.
    unsafe {
        let plan = &mut *plan.cast::<Plan<'_>>();
        // In a session of its own, the program cannot stop or signal the keeper through a terminal.
        libc::setsid();
        // If the keeper is killed, the kernel kills the first process; the agent inherits the rest of the tree.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut stage = Stage::Directory;
        // Before `dup2`, which may overwrite the handle's number.
        let entered = (plan.directory.is_null() || libc::chdir(plan.directory) == 0)
            && (plan.handle < 0 || libc::fchdir(plan.handle) == 0);
        let moved = entered && {
            stage = Stage::Resources;
            (!plan.terminal || libc::ioctl(plan.stdin, libc::TIOCSCTTY, 0) == 0)
                && libc::dup2(plan.stdin, 0) >= 0
                && libc::dup2(plan.stdout, 1) >= 0
                && libc::dup2(plan.stderr, 2) >= 0
                && (plan.script < 0 || libc::dup2(plan.script, SCRIPT_FD) >= 0)
                && (plan.replies < 0 || libc::dup2(plan.replies, REPLY_FD) >= 0)
        };
        let restricted = moved && {
            stage = Stage::Confinement;
            plan.restrictions.as_ref().is_none_or(|restrictions| {
                match restrictions.restrict_command() {
                    Ok(()) => true,
                    Err(errno) => {
                        *libc::__errno_location() = errno;
                        false
                    }
                }
            })
        };
        if restricted {
            stage = Stage::Program;
            // Last, so that they limit the program and not our own calls.
            let memory = plan.memory.iter().filter(|_| !plan.counts_memory);
            for (resource, limit) in plan.limits.iter().chain(memory) {
                let _ = setrlimit(*resource, *limit);
            }
            if let Some(nice) = plan.nice {
                let _ = setpriority_process(None, nice);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            execute(plan);
        }
        plan.failure = Some(Failure { stage, errno: *libc::__errno_location() });
        libc::_exit(127)
    }
}

/// Tries each path as a shell would: the first that executes wins, and "permission denied" takes precedence over
/// "not found".
///
/// # Safety
/// `plan` must hold valid null-terminated lists.
unsafe fn execute(plan: &Plan<'_>) {
    // SAFETY: the lists end with null pointers, as the caller promises.
    unsafe {
        let mut program = plan.programs;
        let mut denied = false;
        while !(*program).is_null() {
            let (argv, environment) = (plan.argv, plan.environment);
            libc::syscall(libc::SYS_execve, *program, argv, environment, plan.token);
            match *libc::__errno_location() {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR => {}
                _ => return,
            }
            program = program.add(1);
        }
        if denied {
            *libc::__errno_location() = libc::EACCES;
        }
    }
}

/// Creates a child that shares our memory and runs [`become_program`]. Returns when it has executed or exited.
pub fn clone(
    stack: &mut [u8],
    cgroup: Option<BorrowedFd<'_>>,
    plan: &mut Plan<'_>,
) -> Result<i32, Errno> {
    #[cfg(target_arch = "x86_64")]
    if let Some(cgroup) = cgroup {
        match clone_into_cgroup(stack, cgroup, ptr::from_mut(plan).cast()) {
            Ok(pid) => return Ok(pid),
            Err(errno @ (Errno::AGAIN | Errno::NOMEM)) => return Err(errno),
            // A container's filter may refuse the call, or the folder may be gone or not writable. The program
            // runs without the cgroup then.
            Err(_) => plan.counts_memory = false,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = cgroup;
    let plan = ptr::from_mut(plan).cast::<c_void>();
    let top = aligned_top(stack);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `top` is the upper end of a stack that nothing else uses, and `plan` outlives the child's
    // use of it because CLONE_VFORK suspends us until the child has executed or exited.
    match unsafe { libc::clone(become_program, top.cast(), flags, plan) } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN)),
        pid => Ok(pid),
    }
}

fn aligned_top(stack: &mut [u8]) -> *mut u8 {
    let end = stack.as_mut_ptr_range().end;
    end.wrapping_sub(end as usize % 16)
}

/// The same by `clone3`, the only call that can start a child inside another cgroup. The C library has no wrapper for
/// it.
#[cfg(target_arch = "x86_64")]
fn clone_into_cgroup(
    stack: &mut [u8],
    cgroup: BorrowedFd<'_>,
    plan: *mut c_void,
) -> Result<i32, Errno> {
    let size = stack.len() & !15;
    let top = aligned_top(stack) as u64;
    // SAFETY: all zeroes is a valid `clone_args`.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64 | CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.stack = top - size as u64 + 16;
    args.stack_size = size as u64 - 16;
    args.cgroup = cgroup.as_raw_fd() as u64;
    let result: i64;
    // SAFETY: the parent returns here with all registers but rax, rcx and r11 as they were. The
    // child starts at the top of its own aligned stack and never comes back from the call; it finds
    // its function and argument in registers the kernel copied.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const args,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") plan,
            in("r13") become_program as extern "C" fn(*mut c_void) -> c_int,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match result {
        pid @ 0.. => Ok(pid as i32),
        error => Err(Errno::from_raw_os_error(-error as i32)),
    }
}
