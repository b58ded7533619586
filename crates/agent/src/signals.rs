//! How the agent and its keepers deal with signals.
//!
//! They block all of them and end only when their stream ends, so that a signal to a process group
//! or to a whole service cannot take a keeper away from its run. SIGCHLD is let in only while
//! waiting, which turns "a child ended" into an interrupted wait. Blocking is not inherited by
//! programs: the child clears its mask. Ignoring would be, so nothing is ignored.

use std::ptr;

use libc::{c_int, sigset_t};

extern "C" fn wake(_: c_int) {}

/// Resets every disposition, blocks every signal and makes SIGCHLD interrupt waits.
pub fn take_over() {
    // SAFETY: plain calls on values that live here; `wake` does nothing and so is safe at any
    // moment. Signals that cannot be changed are left alone by the kernel.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut());
        libc::sigprocmask(libc::SIG_SETMASK, &all(), ptr::null_mut());
    }
}

/// The mask to wait with: everything blocked but SIGCHLD.
pub fn while_waiting() -> sigset_t {
    let mut mask = all();
    // SAFETY: `mask` is an initialised set.
    unsafe { libc::sigdelset(&mut mask, libc::SIGCHLD) };
    mask
}

fn all() -> sigset_t {
    // SAFETY: `sigfillset` initialises the whole set.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigfillset(&mut mask);
        mask
    }
}
