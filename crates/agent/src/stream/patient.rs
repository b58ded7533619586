//! Writes to a pipe without waking its reader for every page.
//!
//! Some engines read what a container prints in pieces of 4 KiB. A writer that fills the pipe again after each of them
//! wakes the reader thousands of times a second, and is woken as often. So when the pipe is full, this waits a moment:
//! then much of it is empty, and the reader has not run dry.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::fcntl_setpipe_size;
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe::Sender;

use super::pause::Pause;

/// Room for what is read during a pause, by a reader that is fast.
const CAPACITY: usize = 256 << 10;

pub struct Patient {
    pipe: Sender,
    /// `None` if it is not a pipe.
    pause: Option<Pause>,
}

impl Patient {
    /// Must be called within a runtime. The descriptor must not block.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let is_pipe = match fcntl_setpipe_size(&fd, CAPACITY) {
            // It may have to stay as large as it is.
            Ok(_) | Err(Errno::PERM | Errno::BUSY) => true,
            Err(_) => false,
        };
        let pause = is_pipe.then(Pause::new).transpose()?;
        Ok(Self { pipe: Sender::from_owned_fd_unchecked(fd)?, pause })
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.poll_over(context))?;
        }
        let written = ready!(Pin::new(&mut self.pipe).poll_write(context, bytes))?;
        if let Some(pause) = self.pause.as_mut().filter(|_| written < bytes.len()) {
            pause.begin()?;
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::pipe::{PipeFlags, pipe_with};
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Writes much to one end, reads it in small pieces from the other, and returns what was read.
    fn passed(reader: OwnedFd, writer: OwnedFd) -> Vec<u8> {
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let reading = thread::spawn(move || {
            let (mut reader, mut read) = (std::fs::File::from(reader), Vec::new());
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                read.extend_from_slice(&piece[..length]);
            }
            read
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut patient = Patient::new(writer).unwrap();
            patient.write_all(&sent()).await.unwrap();
        });
        reading.join().unwrap()
    }

    fn sent() -> Vec<u8> {
        (0..3_000_000u32).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn everything_arrives_through_a_pipe_that_is_often_full() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        assert!(passed(reader, writer) == sent());
    }

    #[test]
    fn a_socket_is_written_without_pauses() {
        let flags = SocketFlags::CLOEXEC;
        let (reader, writer) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        assert!(passed(reader, writer) == sent());
    }
}
