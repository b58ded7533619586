//! Starting one program: from a [`Spawn`] to a running process and our ends of its pipes.
//!
//! The child shares our memory until it executes its program (`CLONE_VM | CLONE_VFORK`), which
//! keeps the cost of starting independent of our size and lets it leave word of a failure in a
//! variable. Until then it may only make system calls: everything it needs is laid out before it
//! exists, and it allocates nothing.

mod plan;

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::ptr;

use libc::c_char;
use mcpz_sandbox::Restrictions;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getpriority_process};

use crate::ends::{Childs, Direction, Ends, Pipes, input_pipe, terminal};
use crate::frame::{Directory, Event, Failure, Program, Spawn, Stage, Stdin};
use crate::limits::Limits;
use crate::mark::mark;
use crate::tree::{OFFERED, SPARED};
use plan::{Plan, clone};

/// The longest single argument the kernel passes on, its closing NUL included.
const MAX_ARGUMENT: usize = 128 << 10;

/// Where a shell finds a script that is too long for an argument. The shell keeps it open while it
/// reads, so it is out of the way of the low numbers scripts use themselves.
const SCRIPT_FD: RawFd = 63;

const STACK_SIZE: usize = 64 << 10;

/// What every run of one keeper shares.
pub struct Launcher {
    null: OwnedFd,
    environment: Vec<CString>,
    stack: Vec<u8>,
    /// What every program puts on itself.
    restrictions: Option<Restrictions>,
    /// Made while there was nothing else to do.
    pipes: Option<Pipes>,
    /// What every process is held to, and what is added where no cgroup counts memory.
    limits: Vec<(Resource, Rlimit)>,
    memory: Option<(Resource, Rlimit)>,
    nice: Option<i32>,
    exposure: Option<Exposure>,
}

/// How ready this process is to be killed when the machine has no memory left. What it starts
/// inherits that.
struct Exposure {
    file: File,
    own: String,
}

/// Where programs are started.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Inside this one, if there is one.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Whether a cgroup counts their memory.
    pub counts_memory: bool,
}

/// A program that runs, and our ends of what it reads and writes.
pub struct Launched {
    pub pid: i32,
    pub ends: Ends,
    /// Where it reads orders from and answers, if it is directed.
    pub direction: Option<(OwnedFd, OwnedFd)>,
}

impl Launcher {
    pub fn new(limits: &Limits, restrictions: Option<Restrictions>) -> io::Result<Self> {
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let environment = std::env::vars_os().filter_map(|(name, value)| assignment(&name, &value));
        Ok(Self {
            null: null.into(),
            environment: environment.collect(),
            stack: vec![0; STACK_SIZE],
            restrictions,
            pipes: None,
            limits: limits.of_each().into_iter().chain([mark()]).collect(),
            memory: limits.of_memory(),
            nice: match limits.nice {
                0 => None,
                nice => Some(getpriority_process(None).unwrap_or(0).max(nice.into())),
            },
            exposure: Exposure::open(),
        })
    }

    /// Whether what is started goes before us when there is no memory left.
    pub fn exposes(&self) -> bool {
        self.exposure.is_some()
    }

    /// Does what can be done before it is known what to start.
    pub fn prepare(&mut self) {
        if self.pipes.is_none() {
            // Whoever needs them finds out why they cannot be made.
            self.pipes = Pipes::make().ok();
        }
    }

    /// Starts the program in a session of its own.
    pub fn launch(&mut self, spawn: &Spawn, place: Place<'_>) -> Result<Launched, Failure> {
        let script = match &spawn.program {
            Program::Script { text, .. } if text.len() >= MAX_ARGUMENT => {
                Some(script_file(text.as_bytes()).map_err(resources)?)
            }
            _ => None,
        };
        let argv = c_strings(arguments(&spawn.program, script.is_some()))?;
        let environment = self.environment_of(spawn)?;
        let programs = candidates(argv.first(), &environment)?;
        let (directory, handle) = match &spawn.directory {
            Directory::Own => (None, None),
            Directory::Path(path) => (Some(c_string(path.as_os_str().as_bytes().to_vec())?), None),
            Directory::Handle(handle) => (None, Some(handle)),
        };

        let (ends, childs) = match spawn.stdin {
            Stdin::Terminal { rows, columns } => terminal(rows, columns).map_err(resources)?,
            Stdin::Null | Stdin::Pipe => self.pipes(spawn).map_err(resources)?,
        };

        let (direction, directed) = match spawn.directed {
            true => {
                let Direction { ours, childs } = Direction::make().map_err(resources)?;
                (Some(ours), Some(childs))
            }
            false => (None, None),
        };

        let (argv, environment) = (pointers(&argv), pointers(&environment));
        let programs = pointers(&programs);
        let mut plan = Plan {
            programs: programs.as_ptr(),
            argv: argv.as_ptr(),
            environment: environment.as_ptr(),
            directory: directory.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            handle: handle.map_or(-1, AsRawFd::as_raw_fd),
            stdin: childs.stdin.as_ref().unwrap_or(&self.null).as_raw_fd(),
            stdout: childs.stdout.as_raw_fd(),
            stderr: childs.stderr.as_ref().unwrap_or(&childs.stdout).as_raw_fd(),
            terminal: matches!(ends, Ends::Terminal(_)),
            orders: directed.as_ref().map_or(-1, |(orders, _)| orders.as_raw_fd()),
            answers: directed.as_ref().map_or(-1, |(_, answers)| answers.as_raw_fd()),
            script: script.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            restrictions: self.restrictions.as_ref().map_or(ptr::null(), ptr::from_ref),
            limits: &self.limits,
            memory: self.memory,
            counts_memory: place.counts_memory,
            nice: self.nice,
            failure: None,
        };
        let exposed = self.exposure.as_ref().inspect(|exposure| exposure.set(OFFERED));
        let pid = clone(&mut self.stack, place.cgroup, &mut plan);
        exposed.inspect(|exposure| exposure.set(&exposure.own));
        let pid = pid.map_err(resources)?;
        // SAFETY: the child wrote through the pointer we passed; a plain read could be taken to
        // see the value from before the clone.
        match unsafe { ptr::read_volatile(&raw const plan.failure) } {
            None => Ok(Launched { pid, ends, direction }),
            Some(failure) => {
                // SAFETY: reaps our own child, which has already left; no status is wanted.
                unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
                Err(failure)
            }
        }
    }

    fn pipes(&mut self, spawn: &Spawn) -> Result<(Ends, Childs), Errno> {
        let Pipes { stdout, stderr } = self.pipes.take().map_or_else(Pipes::make, Ok)?;
        let (child_stdin, stdin) = match spawn.stdin {
            Stdin::Pipe => input_pipe().map(|(read, write)| (Some(read), Some(write)))?,
            _ => (None, None),
        };
        let ends = Ends::Pipes { stdout: stdout.0, stderr: stderr.0, stdin };
        let stderr = (!spawn.joined).then_some(stderr.1);
        Ok((ends, Childs { stdin: child_stdin, stdout: stdout.1, stderr }))
    }

    fn environment_of(&self, spawn: &Spawn) -> Result<Vec<CString>, Failure> {
        let mut environment = self.environment.clone();
        for (name, value) in &spawn.environment {
            environment.retain(|entry| !names(entry, name));
            if let Some(value) = value {
                environment.push(assignment(name, value).ok_or(invalid())?);
            }
        }
        Ok(environment)
    }
}

impl Exposure {
    /// Returns nothing for an ordinary user: our process is not dumpable, so the kernel refuses the write.
    /// Otherwise this also exempts the keeper from the OOM killer, if it may. In cgroup v1 the keeper shares
    /// its run's memory limit and could be the last process left to kill.
    fn open() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let own = std::fs::read_to_string(path).ok()?;
        let file = File::options().write(true).open(path).ok()?;
        let own = match file.write_at(SPARED.as_bytes(), 0) {
            Ok(_) => SPARED.to_owned(),
            Err(_) => own,
        };
        Some(Self { file, own })
    }

    fn set(&self, value: &str) {
        let _ = self.file.write_at(value.as_bytes(), 0);
    }
}

impl Launched {
    /// What there is to say of it. Our ends go with that.
    pub fn event(&self) -> Event {
        Event::Started { pid: self.pid, fds: self.all().count() as u8 }
    }

    /// Whether somebody waits to write to it.
    pub fn is_awaited(&self) -> bool {
        self.ends.has_input() || self.direction.is_some()
    }

    /// All our ends.
    pub fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let direction = self.direction.iter().flat_map(|(orders, answers)| [orders, answers]);
        self.ends.all().chain(direction.map(AsFd::as_fd))
    }
}

fn arguments(program: &Program, script_file: bool) -> Vec<OsString> {
    match program {
        Program::Argv(argv) => argv.clone(),
        Program::Script { shell, .. } if script_file => {
            vec![shell.clone(), format!("/dev/fd/{SCRIPT_FD}").into()]
        }
        Program::Script { shell, text } => vec![shell.clone(), "-c".into(), text.clone()],
    }
}

/// The paths at which a program may be: the one it is given by, or its name in each folder of the
/// `PATH` it will run with.
fn candidates(name: Option<&CString>, environment: &[CString]) -> Result<Vec<CString>, Failure> {
    let name = name.ok_or(invalid())?;
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![name.clone()]);
    }
    let path = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    let path = path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    path.split(|byte| *byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b".".as_slice() } else { folder };
            c_string([folder, b"/", name.as_bytes()].concat())
        })
        .collect()
}

/// A sealed file in memory that holds a script.
fn script_file(text: &[u8]) -> Result<OwnedFd, Errno> {
    let file = memfd_create("script", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

fn names(entry: &CString, name: &OsStr) -> bool {
    entry.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
}

fn assignment(name: &OsStr, value: &OsStr) -> Option<CString> {
    let valid = !name.is_empty() && !name.as_bytes().contains(&b'=');
    let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
    valid.then(|| CString::new(entry).ok()).flatten()
}

fn c_strings(texts: Vec<OsString>) -> Result<Vec<CString>, Failure> {
    texts.into_iter().map(|text| c_string(text.into_vec())).collect()
}

fn c_string(bytes: Vec<u8>) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|_| invalid())
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn invalid() -> Failure {
    Failure { stage: Stage::Program, errno: libc::EINVAL }
}

pub fn resources(errno: Errno) -> Failure {
    Failure { stage: Stage::Resources, errno: errno.raw_os_error() }
}

/// Marks every descriptor from `first` on as closed for programs we start: whoever started us may
/// have left some open.
pub fn close_on_exec_from(first: RawFd) {
    // SAFETY: only sets a flag on descriptors; none is closed.
    let set = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 4) };
    if set == 0 {
        return;
    }
    for fd in first..1024 {
        // SAFETY: the descriptor is only borrowed for one call, which fails if it is not open.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
    }
}
