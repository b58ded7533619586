//! Starting one program: from a [`Spawn`] to a running process and our ends of its pipes.
//!
//! The child shares our memory until it executes its program (`CLONE_VM | CLONE_VFORK`), which
//! keeps the cost of starting independent of our size and lets it leave word of a failure in a
//! variable. Until then it may only make system calls: everything it needs is laid out before it
//! exists, and it allocates nothing.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::ptr;

use libc::{c_char, c_int, c_void};
use mcpz_sandbox::Seal;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getpriority_process, setpriority_process, setrlimit};

use crate::ends::{Childs, Direction, Ends, Pipes, input_pipe, terminal};
use crate::frame::{
    ANSWERS_FD, Directory, Event, Failure, ORDERS_FD, Program, Spawn, Stage, Stdin,
};
use crate::limits::Limits;
use crate::tree::OFFERED;

/// The longest single argument the kernel passes on, its closing NUL included.
const MAX_ARGUMENT: usize = 128 << 10;

/// Where a shell finds a script that is too long for an argument. The shell keeps it open while it
/// reads, so it is out of the way of the low numbers scripts use themselves.
const SCRIPT_FD: RawFd = 63;

/// The C library's own constant overflows its type.
#[cfg(target_arch = "x86_64")]
const CLONE_INTO_CGROUP: u64 = 1 << 33;

const STACK_SIZE: usize = 64 << 10;

/// What every run of one keeper shares.
pub struct Launcher {
    null: OwnedFd,
    environment: Vec<CString>,
    stack: Vec<u8>,
    /// What every program puts on itself.
    seal: Option<Seal>,
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
    pub fn new(limits: &Limits, seal: Option<Seal>) -> io::Result<Self> {
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let environment = std::env::vars_os().filter_map(|(name, value)| assignment(&name, &value));
        Ok(Self {
            null: null.into(),
            environment: environment.collect(),
            stack: vec![0; STACK_SIZE],
            seal,
            pipes: None,
            limits: limits.of_each(),
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
            seal: self.seal.as_ref().map_or(ptr::null(), ptr::from_ref),
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
    /// Nothing for an ordinary user, who may not write there as we are not dumpable.
    fn open() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let own = std::fs::read_to_string(path).ok()?;
        Some(Self { file: File::options().write(true).open(path).ok()?, own })
    }

    fn set(&self, value: &str) {
        let _ = self.file.write_at(value.as_bytes(), 0);
    }
}

impl Launched {
    /// What there is to say of it. Our ends go with that.
    pub fn event(&self) -> Event {
        let (keeper, fds) = (std::process::id() as i32, self.all().count() as u8);
        Event::Started { pid: self.pid, keeper, fds }
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

/// All the child needs, as system calls take it. Lists end with a null pointer.
struct Plan<'a> {
    programs: *const *const c_char,
    argv: *const *const c_char,
    environment: *const *const c_char,
    directory: *const c_char,
    handle: RawFd,
    stdin: RawFd,
    stdout: RawFd,
    stderr: RawFd,
    /// Whether these are a terminal, which is to be its own.
    terminal: bool,
    orders: RawFd,
    answers: RawFd,
    script: RawFd,
    seal: *const Seal,
    limits: &'a [(Resource, Rlimit)],
    memory: Option<(Resource, Rlimit)>,
    counts_memory: bool,
    nice: Option<i32>,
    failure: Option<Failure>,
}

/// The child's life until it executes its program.
extern "C" fn become_program(plan: *mut c_void) -> c_int {
    // SAFETY: `clone` passes a live `Plan`, and our parent sleeps until we execute or leave. Only
    // system calls are made, on descriptors and strings the parent keeps alive meanwhile.
    unsafe {
        let plan = &mut *plan.cast::<Plan<'_>>();
        // Without a controlling terminal nothing the program does can stop or signal us.
        libc::setsid();
        // Should the keeper be killed, its death takes the first process along; the rest of the
        // tree goes to the agent.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut stage = Stage::Directory;
        // First of all: another descriptor may take the handle's number.
        let entered = (plan.directory.is_null() || libc::chdir(plan.directory) == 0)
            && (plan.handle < 0 || libc::fchdir(plan.handle) == 0);
        let moved = entered && {
            stage = Stage::Resources;
            (!plan.terminal || libc::ioctl(plan.stdin, libc::TIOCSCTTY, 0) == 0)
                && libc::dup2(plan.stdin, 0) >= 0
                && libc::dup2(plan.stdout, 1) >= 0
                && libc::dup2(plan.stderr, 2) >= 0
                && (plan.script < 0 || libc::dup2(plan.script, SCRIPT_FD) >= 0)
                && (plan.orders < 0 || libc::dup2(plan.orders, ORDERS_FD) >= 0)
                && (plan.answers < 0 || libc::dup2(plan.answers, ANSWERS_FD) >= 0)
        };
        let sealed = moved && {
            stage = Stage::Confinement;
            // It only makes system calls.
            plan.seal.as_ref().is_none_or(|seal| match seal.apply() {
                Ok(()) => true,
                Err(errno) => {
                    *libc::__errno_location() = errno;
                    false
                }
            })
        };
        if sealed {
            stage = Stage::Program;
            // Last, so that they are in nobody's way but the program's.
            let memory = plan.memory.iter().filter(|_| !plan.counts_memory);
            for (resource, limit) in plan.limits.iter().chain(memory) {
                let _ = setrlimit(*resource, *limit);
            }
            if let Some(nice) = plan.nice {
                let _ = setpriority_process(None, nice);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            execute(plan);
        }
        plan.failure = Some(Failure { stage, errno: *libc::__errno_location() });
        libc::_exit(127)
    }
}

/// Tries each candidate as a shell would: the first that executes wins, and a file that may not be
/// executed is remembered over one that does not exist.
///
/// # Safety
/// `plan` must hold valid null-terminated lists.
unsafe fn execute(plan: &Plan<'_>) {
    // SAFETY: the lists end with null pointers, as the caller promises.
    unsafe {
        let mut program = plan.programs;
        let mut denied = false;
        while !(*program).is_null() {
            libc::execve(*program, plan.argv, plan.environment);
            match *libc::__errno_location() {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR => {}
                _ => return,
            }
            program = program.add(1);
        }
        if denied {
            *libc::__errno_location() = libc::EACCES;
        }
    }
}

/// Makes a child that shares our memory and runs [`become_program`]; returns when it has executed
/// or left.
fn clone(
    stack: &mut [u8],
    cgroup: Option<BorrowedFd<'_>>,
    plan: &mut Plan<'_>,
) -> Result<i32, Errno> {
    #[cfg(target_arch = "x86_64")]
    if let Some(cgroup) = cgroup {
        match clone_into_cgroup(stack, cgroup, ptr::from_mut(plan).cast()) {
            Ok(pid) => return Ok(pid),
            Err(errno @ (Errno::AGAIN | Errno::NOMEM)) => return Err(errno),
            // A container's filter that does not know the call, a folder that was removed or that
            // we may not use: the cgroup is an addition, not a condition.
            Err(_) => plan.counts_memory = false,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = cgroup;
    let plan = ptr::from_mut(plan).cast::<c_void>();
    let top = aligned_top(stack);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `top` is the upper end of a stack nobody else uses, and `plan` outlives the child's
    // use of it because CLONE_VFORK holds us here until it has executed or left.
    match unsafe { libc::clone(become_program, top.cast(), flags, plan) } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN)),
        pid => Ok(pid),
    }
}

fn aligned_top(stack: &mut [u8]) -> *mut u8 {
    let end = stack.as_mut_ptr_range().end;
    end.wrapping_sub(end as usize % 16)
}

/// The same through `clone3`, which alone can put the child into a cgroup from its first moment on.
/// The C library has no wrapper for it.
#[cfg(target_arch = "x86_64")]
fn clone_into_cgroup(
    stack: &mut [u8],
    cgroup: BorrowedFd<'_>,
    plan: *mut c_void,
) -> Result<i32, Errno> {
    let size = stack.len() & !15;
    let top = aligned_top(stack) as u64;
    // SAFETY: all zeroes is a valid `clone_args`.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64 | CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.stack = top - size as u64 + 16;
    args.stack_size = size as u64 - 16;
    args.cgroup = cgroup.as_raw_fd() as u64;
    let result: i64;
    // SAFETY: the parent returns here with all registers but rax, rcx and r11 as they were. The
    // child starts at the top of its own aligned stack and never comes back from the call; it finds
    // its function and argument in registers the kernel copied.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const args,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") plan,
            in("r13") become_program as extern "C" fn(*mut c_void) -> c_int,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match result {
        pid @ 0.. => Ok(pid as i32),
        error => Err(Errno::from_raw_os_error(-error as i32)),
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
