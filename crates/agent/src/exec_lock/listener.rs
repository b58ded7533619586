//! The kernel's questions: which process wants to execute what, as it stands in its memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use libc::{c_int, seccomp_notif, seccomp_notif_resp};

/// How much of a path or an argument is read at a time. No read crosses a page, because the next one may be missing.
const PAGE: u64 = 4096;

/// The longest path that the kernel accepts.
const MAX_PATH: usize = 4096;

/// How many arguments are read, and how much of each.
pub const MAX_ARGUMENTS: usize = 64;
pub const MAX_ARGUMENT: usize = 4096;

/// The descriptor on which the kernel asks.
pub struct Listener(pub OwnedFd);

/// A process that waits in `execve` or `execveat`.
pub struct Question {
    id: u64,
    /// The thread that made the call.
    pub thread: i32,
    call: Call,
    memory: Option<File>,
}

/// The arguments of the call that matter.
struct Call {
    directory: c_int,
    path: u64,
    argv: u64,
    flags: c_int,
}

/// What a process named as the file to execute.
#[derive(Debug, PartialEq, Eq)]
pub enum Named {
    /// A path, relative to this descriptor of the process, or to its current directory.
    Path { directory: Option<c_int>, path: Vec<u8> },
    /// An open file of the process.
    Open(c_int),
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// The next question, after the descriptor was readable. `None` if the process is gone.
    pub fn next(&self) -> Option<Question> {
        // SAFETY: all zeroes is a valid `seccomp_notif`, and the kernel wants it to be.
        let mut asked: seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live value of the type that this request fills.
        let received = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked)
        };
        if received != 0 {
            return None;
        }
        let arguments = asked.data.args;
        let call = match i64::from(asked.data.nr) == libc::SYS_execveat {
            true => Call {
                directory: arguments[0] as c_int,
                path: arguments[1],
                argv: arguments[2],
                flags: arguments[4] as c_int,
            },
            false => {
                Call { directory: libc::AT_FDCWD, path: arguments[0], argv: arguments[1], flags: 0 }
            }
        };
        let thread = asked.pid as i32;
        let memory = File::open(format!("/proc/{thread}/mem")).ok();
        let question = Question { id: asked.id, thread, call, memory };
        // The id of a process that was killed meanwhile may already be another's.
        self.is_waiting(&question).then_some(question)
    }

    /// Whether the process still waits for the answer.
    pub fn is_waiting(&self, question: &Question) -> bool {
        // SAFETY: the pointer is to a live number, which the kernel reads.
        let valid = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const question.id,
            )
        };
        valid == 0
    }

    /// Lets the call go on.
    pub fn permit(&self, question: &Question) {
        self.answer(question, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Lets the call fail.
    pub fn refuse(&self, question: &Question, errno: c_int) {
        self.answer(question, -errno, 0);
    }

    fn answer(&self, question: &Question, error: c_int, flags: u32) {
        let mut answer = seccomp_notif_resp { id: question.id, val: 0, error, flags };
        // It fails if the process is gone, which is fine.
        // SAFETY: the pointer is to a live value of the type that this request reads.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}

impl Question {
    /// What the process wants to execute. Fails if its memory cannot be read, or the kernel would not accept it either.
    pub fn named(&self) -> io::Result<Named> {
        let Call { directory, flags, .. } = self.call;
        let path = self.text(self.call.path, MAX_PATH)?;
        if path.len() >= MAX_PATH {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        match path.is_empty() {
            true if flags & libc::AT_EMPTY_PATH != 0 => Ok(Named::Open(directory)),
            true => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            false => {
                let here = directory == libc::AT_FDCWD || path.starts_with(b"/");
                Ok(Named::Path { directory: (!here).then_some(directory), path })
            }
        }
    }

    /// The arguments, with the name. Cut short if they are many or long.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        let pointers = (0..MAX_ARGUMENTS as u64).map(|at| {
            let mut pointer = [0; 8];
            let place = self.call.argv.checked_add(at * 8)?;
            self.memory.as_ref()?.read_exact_at(&mut pointer, place).ok()?;
            Some(u64::from_ne_bytes(pointer)).filter(|pointer| *pointer != 0)
        });
        pointers.map_while(|pointer| self.text(pointer?, MAX_ARGUMENT).ok()).collect()
    }

    /// The text at an address, up to its NUL or to the limit.
    fn text(&self, address: u64, limit: usize) -> io::Result<Vec<u8>> {
        let unreadable = || io::Error::from_raw_os_error(libc::EFAULT);
        let memory = self.memory.as_ref().ok_or_else(unreadable)?;
        let mut text = Vec::new();
        while text.len() < limit {
            let at = address.checked_add(text.len() as u64).ok_or_else(unreadable)?;
            let mut part = [0; PAGE as usize];
            let part = &mut part[..(PAGE - at % PAGE) as usize];
            let read = memory.read_at(part, at)?;
            match part[..read].iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&part[..end]);
                    break;
                }
                None if read == 0 => return Err(unreadable()),
                None => text.extend_from_slice(&part[..read]),
            }
        }
        text.truncate(limit);
        Ok(text)
    }
}
