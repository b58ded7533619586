//! What a program reads and writes: its ends, and ours.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What a program writes to: our ends, and its own.
pub struct Pipes {
    pub stdout: (OwnedFd, OwnedFd),
    pub stderr: (OwnedFd, OwnedFd),
}

/// Our ends of what a program reads and writes.
pub enum Ends {
    Pipes { stdout: OwnedFd, stderr: OwnedFd, stdin: Option<OwnedFd> },
    Terminal(OwnedFd),
}

/// The program's own ends. Its stderr is its stdout if it has none.
pub struct Childs {
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
}

/// A terminal of some size: our end, and the program's. What is printed there is not told apart.
pub fn terminal(rows: u16, columns: u16) -> Result<(Ends, Childs), Errno> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&ours)?;
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let childs =
        ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    let stdin = Some(childs.try_clone().map_err(|_| Errno::MFILE)?);
    Ok((Ends::Terminal(ours), Childs { stdin, stdout: childs, stderr: None }))
}

/// Two pipes: for orders and for answers.
pub struct Direction {
    pub ours: (OwnedFd, OwnedFd),
    pub childs: (OwnedFd, OwnedFd),
}

impl Direction {
    pub fn make() -> Result<Self, Errno> {
        let (childs_orders, orders) = input_pipe()?;
        let (answers, childs_answers) = output_pipe()?;
        Ok(Self { ours: (orders, answers), childs: (childs_orders, childs_answers) })
    }
}

impl Ends {
    pub fn terminal(&self) -> Option<&OwnedFd> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            Self::Pipes { .. } => None,
        }
    }

    pub fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = match self {
            Self::Pipes { stdout, stderr, stdin } => [Some(stdout), Some(stderr), stdin.as_ref()],
            Self::Terminal(terminal) => [Some(terminal), None, None],
        };
        all.into_iter().flatten().map(AsFd::as_fd)
    }

    /// Whether somebody may want to write to it at once.
    pub fn has_input(&self) -> bool {
        matches!(self, Self::Pipes { stdin: Some(_), .. } | Self::Terminal(_))
    }
}

impl Pipes {
    pub fn make() -> Result<Self, Errno> {
        Ok(Self { stdout: output_pipe()?, stderr: output_pipe()? })
    }
}

/// A pipe the program writes to. Only our end does not block: the flag belongs to the end, and a
/// program must find an ordinary pipe.
fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, childs) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    Ok((ours, childs))
}

pub fn input_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (childs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&ours)?;
    Ok((childs, ours))
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(fd.as_fd(), true)
}
