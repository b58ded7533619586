//! How the agent and its keepers deal with signals.
//!
//! They block all signals and end only when their stream ends, so that a signal to a process group or a whole service
//! cannot take a keeper away from its run. SIGCHLD is unblocked only while waiting, so that the end of a child
//! interrupts the wait. Programs do not inherit blocked signals, because the child clears its mask before exec. They
//! would inherit ignored signals, so none is ignored.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, sigset_t};
use rustix::event::PollFlags;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::cgroup::Alarm;

extern "C" fn interrupt(_: c_int) {}

/// Asks the kernel for a SIGCONT when our parent dies: a stopped process would stay behind otherwise. The kernel sends
/// it when the *thread* that forked us ends.
pub fn resume_when_parent_dies() {
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
}

/// Resets every disposition, blocks every signal and makes SIGCHLD interrupt waits.
pub fn block_all() {
    // SAFETY: plain calls on values that live here; `interrupt` does nothing and so is safe at any
    // moment. The kernel leaves signals alone that cannot be changed.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupt as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut());
        libc::sigprocmask(libc::SIG_SETMASK, &all(), ptr::null_mut());
    }
}

/// Unblocks every signal, for a program that is about to be executed.
pub fn unblock_all() {
    // SAFETY: `sigemptyset` initialises the whole set.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        libc::sigprocmask(libc::SIG_SETMASK, &mask, ptr::null_mut());
    }
}

/// What ended a wait, apart from a child or the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Woken {
    /// The socket is readable.
    pub socket: bool,
    /// One of the alarms has gone off.
    pub alarm: bool,
    /// A process wants to execute something.
    pub exec: bool,
}

/// What to wait for, besides the end of a child.
#[derive(Default)]
pub struct Waited<'a> {
    /// Until it is readable.
    pub socket: Option<BorrowedFd<'a>>,
    pub alarms: [Option<Alarm<'a>>; 2],
    /// Until a process asks here whether it may execute something.
    pub execs: Option<BorrowedFd<'a>>,
    /// Until this time is over.
    pub timer: Option<Duration>,
}

/// Waits until one of these happens, or a child ends.
pub fn wait(waited: &Waited<'_>) -> Woken {
    let Waited { socket, alarms, execs, timer } = waited;
    let readable = |fd: &Option<BorrowedFd<'_>>| fd.map(|fd| (fd.as_raw_fd(), PollFlags::IN));
    let alarm = |at: usize| alarms[at].map(|(fd, flags)| (fd.as_raw_fd(), flags));
    // The kernel ignores a negative descriptor.
    let mut waiting =
        [readable(socket), alarm(0), alarm(1), readable(execs)].map(|waited| libc::pollfd {
            fd: waited.map_or(-1, |(fd, _)| fd),
            events: waited.map_or(0, |(_, flags)| flags.bits() as i16),
            revents: 0,
        });
    let time = timer.map(|timer| libc::timespec {
        tv_sec: timer.as_secs() as libc::time_t,
        tv_nsec: timer.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut mask = all();
    // SAFETY: all pointers are to live values, and `mask` is an initialised set.
    let ready = unsafe {
        libc::sigdelset(&mut mask, libc::SIGCHLD);
        libc::ppoll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, time, &mask)
    };
    let woken = |at: usize| ready > 0 && waiting[at].revents != 0;
    Woken { socket: woken(0), alarm: woken(1) || woken(2), exec: woken(3) }
}

fn all() -> sigset_t {
    // SAFETY: `sigfillset` initialises the whole set.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigfillset(&mut mask);
        mask
    }
}
