//! The kernel's questions: which process wants to execute what, as it stands in its memory.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use libc::{c_int, seccomp_notif, seccomp_notif_resp};

use crate::git_configs::{Place, Rename};

/// How much is read at a time. No read crosses a page, because the next one may be missing.
const PAGE: u64 = 4096;

/// The longest path that the kernel accepts.
const MAX_PATH: usize = 4096;

/// How many arguments are read, and how much of each: more than the kernel accepts.
const MAX_ARGUMENTS: u64 = 1 << 20;
pub const MAX_ARGUMENT: usize = 128 << 10;

/// The descriptor on which the kernel asks.
pub struct Listener(pub OwnedFd);

/// A process that waits in `execve` or `execveat`, or in a call that mounts something or renames a file.
pub struct Question {
    id: u64,
    /// The thread that made the call.
    pub thread: i32,
    call: Call,
    mount: Option<MountCall>,
    rename: Option<RenameCall>,
    memory: Memory,
}

/// The memory of a process.
struct Memory {
    file: Option<File>,
    /// The page that was read last, and its address. Arguments usually follow one another.
    page: RefCell<(u64, Vec<u8>)>,
}

/// The arguments of the call that matter.
struct Call {
    directory: c_int,
    path: u64,
    argv: u64,
    envp: u64,
    flags: c_int,
}

/// A call that changes what is mounted, and where the type of a new file system is in its memory.
#[derive(Clone, Copy)]
struct MountCall {
    file_system: Option<u64>,
}

impl MountCall {
    fn of(call: i64, arguments: &[u64; 6]) -> Option<Self> {
        let file_system = match call {
            // A folder, for example, has none.
            libc::SYS_mount => Some(arguments[2]).filter(|address| *address != 0),
            libc::SYS_fsopen => Some(arguments[0]),
            libc::SYS_umount2 | libc::SYS_pivot_root | libc::SYS_move_mount => None,
            _ => return None,
        };
        Some(Self { file_system })
    }
}

/// The arguments of a call that renames a file.
#[derive(Clone, Copy)]
struct RenameCall {
    from: (c_int, u64),
    to: (c_int, u64),
    flags: u32,
}

impl RenameCall {
    fn of(call: i64, arguments: &[u64; 6]) -> Option<Self> {
        let [first, second, third, fourth, flags, _] = *arguments;
        match call {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => {
                let (from, to) = ((libc::AT_FDCWD, first), (libc::AT_FDCWD, second));
                Some(Self { from, to, flags: 0 })
            }
            #[cfg(not(target_arch = "riscv64"))]
            libc::SYS_renameat => {
                let (from, to) = ((first as c_int, second), (third as c_int, fourth));
                Some(Self { from, to, flags: 0 })
            }
            libc::SYS_renameat2 => {
                let (from, to) = ((first as c_int, second), (third as c_int, fourth));
                Some(Self { from, to, flags: flags as u32 })
            }
            _ => None,
        }
    }
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
                envp: arguments[3],
                flags: arguments[4] as c_int,
            },
            false => Call {
                directory: libc::AT_FDCWD,
                path: arguments[0],
                argv: arguments[1],
                envp: arguments[2],
                flags: 0,
            },
        };
        let thread = asked.pid as i32;
        let file = File::open(format!("/proc/{thread}/mem")).ok();
        let memory = Memory { file, page: RefCell::default() };
        let mount = MountCall::of(asked.data.nr.into(), &arguments);
        let rename = RenameCall::of(asked.data.nr.into(), &arguments);
        let question = Question { id: asked.id, thread, call, mount, rename, memory };
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

    /// Lets the call succeed, without doing anything.
    pub fn succeed(&self, question: &Question) {
        self.answer(question, 0, 0);
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
    /// Whether the call changes what is mounted.
    pub fn is_mount(&self) -> bool {
        self.mount.is_some()
    }

    /// Whether it mounts a file system that names programs, or may do so.
    pub fn mounts_program_names(&self) -> bool {
        const NAMES_PROGRAMS: &[u8] = b"binfmt_misc";
        let file_system = self.mount.and_then(|call| call.file_system);
        file_system.is_some_and(|address| {
            self.text(address, MAX_PATH).map_or(true, |kind| kind == NAMES_PROGRAMS)
        })
    }

    /// Whether the call renames a file.
    pub fn is_rename(&self) -> bool {
        self.rename.is_some()
    }

    /// What a call renames. `None` if it does something else with the files, or they cannot be read.
    pub fn rename(&self) -> Option<Rename> {
        let RenameCall { from, to, flags: 0 } = self.rename? else { return None };
        let place = |(directory, path): (c_int, u64)| {
            let path = self.text(path, MAX_PATH).ok()?;
            let here = directory == libc::AT_FDCWD || path.starts_with(b"/");
            Some(Place { directory: (!here).then_some(directory), path })
        };
        // The second first: by its name, most calls turn out to be about something else.
        let (to, from) = (place(to)?, place(from)?);
        Some(Rename { from, to })
    }

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

    /// The arguments, with the name. Fails if one cannot be read, which the kernel perhaps can.
    pub fn arguments(&self) -> io::Result<Vec<Vec<u8>>> {
        self.texts(self.call.argv)
    }

    /// The variables that the program would get, as `NAME=VALUE`.
    pub fn environment(&self) -> io::Result<Vec<Vec<u8>>> {
        self.texts(self.call.envp)
    }

    /// The texts in a list of pointers, which ends with a null pointer.
    fn texts(&self, list: u64) -> io::Result<Vec<Vec<u8>>> {
        let mut pointers = Vec::new();
        // All of them first: they are on other pages than the texts.
        for at in (0..MAX_ARGUMENTS).filter(|_| list != 0) {
            let place = list.checked_add(at * 8).ok_or(io::ErrorKind::InvalidInput)?;
            let bytes = self.memory.read(place, 8, |_| None)?;
            let pointer = bytes.try_into().map_err(|_| io::ErrorKind::UnexpectedEof)?;
            match u64::from_ne_bytes(pointer) {
                0 => break,
                pointer => pointers.push(pointer),
            }
        }
        pointers.into_iter().map(|pointer| self.text(pointer, MAX_ARGUMENT)).collect()
    }

    /// The text at an address, up to its NUL or to the limit.
    fn text(&self, address: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.memory.read(address, limit, |part| part.iter().position(|byte| *byte == 0))
    }
}

impl Memory {
    /// Reads from an address on, up to where `end` finds the end, or to the limit.
    fn read(
        &self,
        address: u64,
        limit: usize,
        end: impl Fn(&[u8]) -> Option<usize>,
    ) -> io::Result<Vec<u8>> {
        let unreadable = || io::Error::from_raw_os_error(libc::EFAULT);
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let at = address.checked_add(bytes.len() as u64).ok_or_else(unreadable)?;
            self.load(at - at % PAGE)?;
            let page = self.page.borrow();
            let part = page.1.get((at % PAGE) as usize..).unwrap_or_default();
            let end = end(part);
            bytes.extend_from_slice(&part[..end.unwrap_or(part.len())]);
            match end {
                Some(_) => break,
                None if part.is_empty() => return Err(unreadable()),
                None => {}
            }
        }
        bytes.truncate(limit);
        Ok(bytes)
    }

    /// Makes this page the one that was read last.
    fn load(&self, address: u64) -> io::Result<()> {
        let mut page = self.page.borrow_mut();
        if page.0 == address && !page.1.is_empty() {
            return Ok(());
        }
        let file = self.file.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))?;
        *page = (address, vec![0; PAGE as usize]);
        let read = file.read_at(&mut page.1, address).inspect_err(|_| page.1.clear())?;
        page.1.truncate(read);
        Ok(())
    }
}
