//! What the kernel knows about an open file descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// A path that leads to an open file of this process, whatever the file's own name is by now.
pub fn path_of(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}

/// Whether the other end of a pipe or socket has read everything that was written to it. True if the system cannot
/// tell.
pub fn is_all_read(written: BorrowedFd<'_>) -> bool {
    let mut left: libc::c_int = 0;
    // The first request works for sockets, the second for pipes.
    let asked = [libc::TIOCOUTQ, libc::FIONREAD].into_iter().find(|request| {
        // SAFETY: both requests write one integer to the pointer, which is to a live value.
        unsafe { libc::ioctl(written.as_raw_fd(), *request, &raw mut left) == 0 }
    });
    asked.is_none() || left == 0
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn pipes_and_sockets_tell_whether_all_was_read() {
        let (out, into) = std::io::pipe().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let ends: [(OwnedFd, OwnedFd); 2] = [(into.into(), out.into()), (near.into(), far.into())];
        for (writing, reading) in ends {
            let (mut writing, mut reading) = (File::from(writing), File::from(reading));
            assert!(is_all_read(writing.as_fd()));
            writing.write_all(b"ab").unwrap();
            let mut byte = [0];
            for left in [true, true, false] {
                assert_eq!(is_all_read(writing.as_fd()), !left);
                if left {
                    reading.read_exact(&mut byte).unwrap();
                }
            }
        }
    }

    #[test]
    fn nothing_is_waited_for_where_nobody_can_tell() {
        assert!(is_all_read(File::open("/dev/null").unwrap().as_fd()));
    }
}
