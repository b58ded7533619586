//! The memory that the program's own code takes.

use std::fs;

/// Lets go of code that was needed so far: what is needed again is found where the kernel keeps the
/// file. Starting up takes much more of it than waiting for work.
pub fn forget() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, length) in maps.lines().filter_map(|line| code(line, program.to_str()?)) {
        // SAFETY: the pages are the file's own, as nobody could ever write to them; they are read
        // from it again.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// Where a line of `maps` has code of the program. Data that can only be read may have been written
/// before that, when the program was loaded.
fn code(line: &str, program: &str) -> Option<(usize, usize)> {
    let mut fields = line.splitn(6, ' ');
    let (range, rights) = (fields.next()?, fields.next()?);
    let (start, end) = range.split_once('-')?;
    let (start, end) =
        (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let ours = rights == "r-xp" && fields.last()?.trim_start() == program;
    ours.then_some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_itself_is_let_go() {
        let line = |rights, path| format!("5000-7000 {rights} 00001000 fd:00 1234      {path}");
        assert_eq!(code(&line("r-xp", "/bin/a b"), "/bin/a b"), Some((0x5000, 0x2000)));
        assert_eq!(code(&line("r--p", "/bin/a b"), "/bin/a b"), None);
        assert_eq!(code(&line("rw-p", "/bin/a b"), "/bin/a b"), None);
        assert_eq!(code(&line("r-xp", "/bin/libc"), "/bin/a b"), None);
        assert_eq!(code("7000-8000 r-xp 00000000 00:00 0", "/bin/a b"), None);
    }

    #[test]
    fn code_is_there_when_it_is_needed_again() {
        forget();
        forget();
        assert_eq!("still".to_owned() + " here", "still here");
    }
}
