//! Returns memory to the system that was needed only for a while.

use std::fs;

/// Blocks of this size or more are mapped separately. It is glibc's initial threshold.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 << 10;

/// Returns free memory, which the allocator would keep otherwise.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes glibc return large blocks as soon as they are freed. By default it raises its threshold after the first ones
/// and keeps about a megabyte in each arena, of which there are eight per processor; `malloc_trim` does not touch that.
/// Must be called before there is a second thread.
pub fn return_large_blocks_at_once() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and no other thread allocates meanwhile.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Releases the pages of the program's code and of the tables that it is loaded with. The kernel loads those that are
/// needed again from its page cache. Starting up needs much more of them than waiting for work, and the kernel maps 64
/// KiB around every page that is needed. All of that stays mapped and counts as ours. Server and agent call this once,
/// after they have started.
pub fn release_code_pages() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, length) in maps.lines().filter_map(|line| code(line, program.to_str()?)) {
        // SAFETY: the pages belong to the file, because they were never writable; the kernel reads them from it again.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// The address and length of a line of `maps` that is code of the program, or the read-only data at its beginning. The
/// loader may have written to other read-only data.
fn code(line: &str, program: &str) -> Option<(usize, usize)> {
    let mut fields = line.splitn(6, ' ');
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let (start, end) = range.split_once('-')?;
    let (start, end) =
        (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let is_as_in_the_file = rights == "r-xp" || rights == "r--p" && offset == "00000000";
    let ours = is_as_in_the_file && fields.last()?.trim_start() == program;
    ours.then_some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_has_written_to_is_let_go() {
        let line = |rights, path| format!("5000-7000 {rights} 00001000 fd:00 1234      {path}");
        let first = "5000-7000 r--p 00000000 fd:00 1234   /bin/a b";
        assert_eq!(code(first, "/bin/a b"), Some((0x5000, 0x2000)));
        assert_eq!(code(&line("r-xp", "/bin/a b"), "/bin/a b"), Some((0x5000, 0x2000)));
        assert_eq!(code(&line("r--p", "/bin/a b"), "/bin/a b"), None);
        assert_eq!(code(&line("rw-p", "/bin/a b"), "/bin/a b"), None);
        assert_eq!(code(&line("r-xp", "/bin/libc"), "/bin/a b"), None);
        assert_eq!(code("7000-8000 r-xp 00000000 00:00 0", "/bin/a b"), None);
    }

    #[test]
    fn code_is_there_when_it_is_needed_again() {
        release_code_pages();
        release_code_pages();
        assert_eq!("still".to_owned() + " here", "still here");
    }
}
