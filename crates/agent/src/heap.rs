//! Memory that was needed for a while, given back to the system.

/// Gives back what is free. Allocators keep it otherwise, as they may need it again.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
