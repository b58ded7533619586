//! Starts one program: from a [`Spawn`] to a running process and our ends of its pipes.
//!
//! The child shares our memory until it executes its program (`CLONE_VM | CLONE_VFORK`). That makes the cost of
//! starting independent of our size, and lets the child report a failure in a variable. Until then it may only make
//! system calls: the parent prepares everything it needs, and it allocates nothing.
//!
//! No process is made before a request arrives. Two ways to have one ready were tried, a forked process and one with
//! shared memory that listens to the server itself. A busy client waited 60 to 200 µs longer with either, because the
//! next process was made while the last answer was on its way.

mod child;

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;

use libc::c_char;
use mcpz_sandbox::Restrictions;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getpriority_process};

use crate::frame::{Directory, Failure, KeeperEvent, Program, Spawn, Stage, Stdin};
use crate::limits::Limits;
use crate::marker::marker_limit;
use crate::oom_score::OomScore;
use crate::stdio::{
    ChildEnds, OutputPipes, ParentEnds, input_pipe, input_socket, output_pipe, terminal,
};
use child::{Plan, clone};

/// The longest single argument that the kernel accepts, including the NUL at its end.
const MAX_ARGUMENT: usize = 128 << 10;

/// The descriptor from which a shell reads a script that is too long for an argument. The shell keeps it open while it
/// reads, so it must not collide with the low numbers that scripts use themselves.
const SCRIPT_FD: RawFd = 63;

const STACK_SIZE: usize = 64 << 10;

/// Starts the programs of one keeper, and holds what all of them share.
pub struct Launcher {
    null: OwnedFd,
    environment: Vec<CString>,
    stack: Vec<u8>,
    /// What every program applies to itself, if commands are confined.
    restrictions: Option<Restrictions>,
    /// Created in advance, while the keeper is idle.
    pipes: Option<OutputPipes>,
    /// The limits of every process, and the one that is added where no cgroup counts memory.
    limits: Vec<(Resource, Rlimit)>,
    memory: Option<(Resource, Rlimit)>,
    nice: Option<i32>,
    oom_score: Option<OomScore>,
}

/// The cgroup in which programs start.
#[derive(Clone, Copy)]
pub struct ChildCgroup<'a> {
    /// The folder to start in, in version 2.
    pub folder: Option<BorrowedFd<'a>>,
    /// Whether a cgroup limits their memory.
    pub counts_memory: bool,
}

/// A program that runs, and our ends of its pipes.
pub struct Launched {
    pub pid: i32,
    pub stdio: ParentEnds,
    /// What the program replies, if it has a pipe for that.
    pub replies: Option<OwnedFd>,
    /// The variables it runs with.
    pub environment: Vec<CString>,
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
            limits: limits.per_process().into_iter().chain([marker_limit()]).collect(),
            memory: limits.memory_per_process(),
            nice: match limits.nice {
                0 => None,
                nice => Some(getpriority_process(None).unwrap_or(0).max(nice.into())),
            },
            oom_score: OomScore::open(),
        })
    }

    /// Whether programs start with a raised OOM score, so that they are killed before the keeper.
    pub fn sets_oom_score(&self) -> bool {
        self.oom_score.is_some()
    }

    /// Does what can be done before the request arrives.
    pub fn prepare(&mut self) {
        if self.pipes.is_none() {
            // If this fails, `launch` tries again and reports why.
            self.pipes = OutputPipes::create().ok();
        }
    }

    /// The `PATH` that a program will run with.
    pub fn path<'a>(&'a self, spawn: &'a Spawn) -> &'a [u8] {
        let mut set = spawn.environment.iter().rev().filter(|(name, _)| name == "PATH");
        match set.next() {
            Some((_, Some(path))) => path.as_bytes(),
            Some((_, None)) => path_of(&[]),
            None => path_of(&self.environment),
        }
    }

    /// The files that will be tried for a program.
    pub fn files(&self, spawn: &Spawn) -> Result<Vec<CString>, Failure> {
        let argv = c_strings(arguments(&spawn.program, false))?;
        candidates(argv.first(), self.path(spawn))
    }

    /// Starts the program in a session of its own, from the file that was chosen, if one was. A filter may demand the
    /// token for that.
    pub fn launch(
        &mut self,
        spawn: &Spawn,
        chosen: Option<&CStr>,
        cgroup: ChildCgroup<'_>,
        token: u64,
    ) -> Result<Launched, Failure> {
        let script = match &spawn.program {
            Program::Script { text, .. } if text.len() >= MAX_ARGUMENT => {
                Some(script_file(text.as_bytes()).map_err(resources)?)
            }
            _ => None,
        };
        let argv = c_strings(arguments(&spawn.program, script.is_some()))?;
        let environment = self.environment_of(spawn)?;
        let programs = match chosen {
            Some(file) => vec![file.to_owned()],
            None => candidates(argv.first(), path_of(&environment))?,
        };
        let (directory, handle) = match &spawn.directory {
            Directory::Own => (None, None),
            Directory::Path(path) => (Some(c_string(path.as_os_str().as_bytes().to_vec())?), None),
            Directory::Handle(handle) => (None, Some(handle)),
            // The keeper has opened it.
            Directory::Beneath { .. } => return Err(resources(Errno::INVAL)),
        };

        let (stdio, child_ends) = match spawn.stdin {
            Stdin::Terminal { rows, columns } => terminal(rows, columns).map_err(resources)?,
            Stdin::Null | Stdin::Pipe | Stdin::Orders => self.pipes(spawn).map_err(resources)?,
        };

        let (replies, childs_replies) = match spawn.replies {
            true => output_pipe().map(|(ours, childs)| (Some(ours), Some(childs))),
            false => Ok((None, None)),
        }
        .map_err(resources)?;

        let (argv, variables) = (pointers(&argv), pointers(&environment));
        let programs = pointers(&programs);
        let mut plan = Plan {
            programs: programs.as_ptr(),
            argv: argv.as_ptr(),
            environment: variables.as_ptr(),
            directory: directory.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            handle: handle.map_or(-1, AsRawFd::as_raw_fd),
            stdin: child_ends.stdin.as_ref().unwrap_or(&self.null).as_raw_fd(),
            stdout: child_ends.stdout.as_raw_fd(),
            stderr: child_ends.stderr.as_ref().unwrap_or(&child_ends.stdout).as_raw_fd(),
            terminal: matches!(stdio, ParentEnds::Terminal(_)),
            replies: childs_replies.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            script: script.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            restrictions: self.restrictions.as_ref().map_or(ptr::null(), ptr::from_ref),
            limits: &self.limits,
            memory: self.memory,
            counts_memory: cgroup.counts_memory,
            nice: self.nice,
            token,
            failure: None,
        };
        let raised = self.oom_score.as_ref().inspect(|score| score.raise());
        let pid = clone(&mut self.stack, cgroup.folder, &mut plan);
        raised.inspect(|score| score.restore());
        let pid = pid.map_err(resources)?;
        // SAFETY: the child wrote through the pointer we passed; a plain read could be compiled to use the
        // value from before the clone.
        match unsafe { ptr::read_volatile(&raw const plan.failure) } {
            None => Ok(Launched { pid, stdio, replies, environment }),
            Some(failure) => {
                // SAFETY: reaps our own child, which has already exited; its status is not needed.
                unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
                Err(failure)
            }
        }
    }

    fn pipes(&mut self, spawn: &Spawn) -> Result<(ParentEnds, ChildEnds), Errno> {
        let OutputPipes { stdout, stderr } =
            self.pipes.take().map_or_else(OutputPipes::create, Ok)?;
        let (child_stdin, stdin) = match spawn.stdin {
            Stdin::Pipe => input_pipe().map(|(childs, ours)| (Some(childs), Some(ours)))?,
            Stdin::Orders => input_socket().map(|(childs, ours)| (Some(childs), Some(ours)))?,
            _ => (None, None),
        };
        let stdio = ParentEnds::Pipes { stdout: stdout.0, stderr: stderr.0, stdin };
        let stderr = (!spawn.joined).then_some(stderr.1);
        Ok((stdio, ChildEnds { stdin: child_stdin, stdout: stdout.1, stderr }))
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

impl Launched {
    /// The event that reports the start. [`Self::fds`] travel with it.
    pub fn event(&self) -> KeeperEvent {
        KeeperEvent::Started { pid: self.pid, fds: self.fds().count() as u8 }
    }

    /// Whether the server waits for the start to be reported, because it may write to the program at once.
    pub fn needs_input(&self) -> bool {
        self.stdio.has_input() || self.replies.is_some()
    }

    /// All our ends.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stdio.fds().chain(self.replies.iter().map(AsFd::as_fd))
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

/// The paths to try: the program's own path, or its name in each folder of the `PATH` it will run with.
fn candidates(name: Option<&CString>, path: &[u8]) -> Result<Vec<CString>, Failure> {
    let name = name.ok_or(invalid())?;
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![name.clone()]);
    }
    path.split(|byte| *byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b".".as_slice() } else { folder };
            c_string([folder, b"/", name.as_bytes()].concat())
        })
        .collect()
}

fn path_of(environment: &[CString]) -> &[u8] {
    let path = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
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

/// Sets close-on-exec on every descriptor from `first` on: the process that started us may have leaked some.
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
