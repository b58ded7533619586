//! How many keepers an agent has, in memory that all of them share.
//!
//! The more there are, the more rarely each does its periodic checks (`limit_watch.rs`), so that thousands of silent
//! runs leave the machine idle.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number in memory that an agent shares with the processes it forks.
#[derive(Clone, Copy)]
pub struct KeeperCount(&'static AtomicU32);

impl KeeperCount {
    /// If the page cannot be mapped, each keeper keeps the count of the moment it was forked.
    pub fn new() -> Self {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: maps new memory at an address of the kernel's choice.
        let page =
            unsafe { libc::mmap(ptr::null_mut(), size_of::<AtomicU32>(), access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Self(Box::leak(Box::default()));
        }
        // SAFETY: the page is large enough, aligned, zeroed, and is never unmapped.
        Self(unsafe { &*page.cast() })
    }

    pub fn set(self, keepers: usize) {
        self.0.store(u32::try_from(keepers).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub fn get(self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_sees_how_many_there_are_now() {
        let keeper_count = KeeperCount::new();
        keeper_count.set(3);
        // SAFETY: the child calls nothing but functions that are safe after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let all = (0..10_000).any(|_| {
                // SAFETY: sleeps a moment.
                unsafe { libc::usleep(1000) };
                keeper_count.get() == 1000
            });
            // SAFETY: exits at once.
            unsafe { libc::_exit(i32::from(!all)) };
        }
        keeper_count.set(1000);
        let mut status = 0;
        // SAFETY: waits for the child that was just forked.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
