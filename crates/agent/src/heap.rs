//! Memory that was needed for a while, given back to the system.

/// Blocks from this size on get memory of their own; that of others is shared. It is what glibc begins with.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 << 10;

/// Gives back what is free. Allocators keep it otherwise, as they may need it again.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes glibc return large blocks as soon as they are freed. By default it raises its threshold after the first
/// ones and keeps about a megabyte in each arena, of which there are eight per processor; `malloc_trim` does not
/// touch that. To be called before there is a second thread.
pub fn return_large_blocks_at_once() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and no other thread allocates meanwhile.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
