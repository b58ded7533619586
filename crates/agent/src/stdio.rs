//! The pipes, sockets and terminals of a program: its ends, and ours.
//!
//! Our ends do not block. The program's ends do, because programs expect ordinary pipes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The pipes a program writes to, each with our end first.
pub struct OutputPipes {
    pub stdout: (OwnedFd, OwnedFd),
    pub stderr: (OwnedFd, OwnedFd),
}

/// Our ends of a program's stdio.
pub enum ParentEnds {
    Pipes { stdout: OwnedFd, stderr: OwnedFd, stdin: Option<OwnedFd> },
    Terminal(OwnedFd),
}

/// The program's own ends. Without stderr, that goes to stdout.
pub struct ChildEnds {
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
}

/// A terminal of this size: our end, and the program's. Its stdout and stderr cannot be told apart.
pub fn terminal(rows: u16, columns: u16) -> Result<(ParentEnds, ChildEnds), Errno> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&ours)?;
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let childs =
        ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    let stdin = Some(childs.try_clone().map_err(|_| Errno::MFILE)?);
    Ok((ParentEnds::Terminal(ours), ChildEnds { stdin, stdout: childs, stderr: None }))
}

impl ParentEnds {
    pub fn terminal(&self) -> Option<&OwnedFd> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            Self::Pipes { .. } => None,
        }
    }

    /// The inode of the pipe that the program reads, if its stdin is one. Both ends have the same.
    pub fn input_pipe(&self) -> Option<u64> {
        let Self::Pipes { stdin: Some(stdin), .. } = self else { return None };
        let stat = fstat(stdin).ok()?;
        FileType::from_raw_mode(stat.st_mode).is_fifo().then_some(stat.st_ino)
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = match self {
            Self::Pipes { stdout, stderr, stdin } => [Some(stdout), Some(stderr), stdin.as_ref()],
            Self::Terminal(terminal) => [Some(terminal), None, None],
        };
        all.into_iter().flatten().map(AsFd::as_fd)
    }

    /// Whether the server may want to write to the program at once.
    pub fn has_input(&self) -> bool {
        matches!(self, Self::Pipes { stdin: Some(_), .. } | Self::Terminal(_))
    }
}

impl OutputPipes {
    pub fn create() -> Result<Self, Errno> {
        Ok(Self { stdout: output_pipe()?, stderr: output_pipe()? })
    }
}

/// A pipe the program writes to: our end, and the program's.
pub fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, childs) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    Ok((ours, childs))
}

/// A pipe the program reads from: the program's end, and ours.
pub fn input_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (childs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    Ok((childs, ours))
}

/// A socket the program reads from: the program's end, and ours.
pub fn input_socket() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (childs, ours) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Nobody reads what the program writes to it.
    shutdown(&childs, Shutdown::Write)?;
    set_nonblocking(&ours)?;
    Ok((childs, ours))
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(fd.as_fd(), true)
}
