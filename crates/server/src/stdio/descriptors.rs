//! Standard input and output, read and written without a thread where the system tells when that does not block.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use mcpz_agent::{is_all_read, path_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until};

use crate::watcher::LAST_WORDS;

pub type Source = Box<dyn AsyncRead + Send + Sync + Unpin>;
pub type Sink = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// The pause between two looks whether the client can still read what we write.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The pauses between two looks whether the client has read everything: the first, which doubles, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

pub fn open_stdin() -> io::Result<Source> {
    let stdin = rustix::stdio::stdin();
    Ok(match FileType::from_raw_mode(fstat(stdin)?.st_mode) {
        FileType::Fifo => {
            let fd = match reopen(stdin, OpenOptions::new().read(true)) {
                Ok(fd) => fd,
                Err(_) => stdin.try_clone_to_owned()?,
            };
            Box::new(pipe::Receiver::from_owned_fd(fd)?)
        }
        FileType::Socket => Box::new(socket(stdin.try_clone_to_owned()?)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

pub fn open_stdout() -> io::Result<Sink> {
    let stdout = rustix::stdio::stdout();
    Ok(match FileType::from_raw_mode(fstat(stdout)?.st_mode) {
        FileType::Fifo => {
            let fd = match reopen(stdout, OpenOptions::new().write(true)) {
                Ok(fd) => fd,
                Err(_) => stdout.try_clone_to_owned()?,
            };
            Box::new(pipe::Sender::from_owned_fd(fd)?)
        }
        FileType::Socket => Box::new(socket(stdout.try_clone_to_owned()?)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

/// Opens a pipe a second time. Whether it blocks is a property of the opening, and the one we were given may be shared
/// with processes that do not expect theirs to change.
fn reopen(pipe: BorrowedFd<'_>, options: &mut OpenOptions) -> io::Result<OwnedFd> {
    Ok(options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path_of(pipe))?.into())
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Waits until `by`, or until nobody can read stdout any more.
pub async fn wait_for_readers_until(by: Instant) {
    while Instant::now() < by && !has_no_reader(rustix::stdio::stdout()) {
        sleep_until(by.min(Instant::now() + LOOK_AGAIN)).await;
    }
}

/// Waits until the client has read everything from stdout, for a moment at most. It must not read progress together
/// with an answer (see `watcher.rs`).
pub async fn wait_until_read() {
    let (until, mut pause) = (Instant::now() + LAST_WORDS, FIRST_PAUSE);
    while Instant::now() < until && !is_all_read(rustix::stdio::stdout()) {
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// Whether the other end of a pipe or socket is gone.
fn has_no_reader(stdout: BorrowedFd<'_>) -> bool {
    let mut looked = [PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut looked, Some(&Timespec::default())).is_ok() && looked[0].revents().intersects(gone)
}
