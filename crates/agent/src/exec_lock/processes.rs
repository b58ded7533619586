//! Which program each process of a run is, for the rules: the one it executed last.
//!
//! A process is known by its image: its executable, and where the kernel has put the parts of its memory. The kernel
//! chooses the places at random for every program that is executed, a fork keeps them, and the filter sees to it that
//! nothing else changes them. So a fork is what its parent was when it forked, whatever either became since, and a call
//! that was permitted but failed has changed nothing.
//!
//!     image known? ─▶ it is that program
//!        │ no
//!     its own call was permitted? ─▶ it is what it then executed, if the image is not the one from before
//!        │ no
//!     the parent has the same image? ─▶ it is what the parent is
//!        │ no
//!     its parents have ended: it gets the least rights of all programs that it may be
//!
//! What a process can write itself, such as its command line, proves nothing. Only shells cannot write it.
//!
//! A process may ask the kernel not to choose at random (`setarch -R`). Its programs have images that others can have
//! as well, so these are not remembered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use super::identity::FileId;
use super::standing::Standing;
use super::target::{base_name, executable_of};
use crate::tree::{self, Layout, ProcessStat};

/// How many processes are remembered before those that have ended are forgotten.
const MAX_KNOWN: usize = 4096;

/// How many images are remembered before those that were not needed for long are forgotten.
const MAX_IMAGES: usize = 8192;

/// How many different command lines of shells are remembered. Others get the least rights.
const MAX_COMMAND_LINES: usize = 4096;

/// How many executables the calls of one process may lead to while none of them has succeeded.
const MAX_NEXT: usize = 16;

/// How much of a command line is compared.
const COMPARED_ARGUMENTS: usize = 64;
const COMPARED_BYTES: usize = 1024;

/// Shells that cannot write to a place in a file, and so not to their own memory.
const SHELLS: [&str; 2] = ["bash", "dash"];

/// The processes of one run.
#[derive(Default)]
pub struct Processes {
    images: Images,
    /// Calls that were permitted, by process.
    permitted: HashMap<i32, Permitted>,
    /// The most that may be there before ended processes are forgotten.
    limit: usize,
    /// By executable: the least that its processes may.
    by_executable: HashMap<FileId, Standing>,
    /// The same by executable and command line.
    by_command_line: HashMap<(FileId, u64), Standing>,
}

/// A program in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Image {
    executable: FileId,
    layout: Layout,
}

/// What a program was executed as.
#[derive(Clone)]
struct Executed {
    standing: Standing,
    /// The program that `env` may execute next, because the script that was executed says so.
    env_program: Option<String>,
    /// Whether its image is certainly no other program's.
    is_unique: bool,
}

/// Calls of one process, of which at most one has succeeded.
struct Permitted {
    started: u64,
    /// `None` for the first process of the run, which was the keeper's.
    before: Option<Image>,
    /// What it was before.
    was: Executed,
    /// By executable.
    next: HashMap<FileId, Executed>,
}

/// Images that were seen, and when each was last needed, as a number that grows.
#[derive(Default)]
struct Images {
    known: HashMap<Image, (Executed, u64)>,
    now: u64,
}

/// A process that wants to execute something.
pub struct Caller {
    pub process: i32,
    thread: i32,
    started: u64,
    image: Option<Image>,
    is_unique: bool,
    pub standing: Standing,
    /// The program that it is to execute as the interpreter of its script, if it is `env`.
    pub env_program: Option<String>,
}

/// What a process becomes if its call succeeds.
pub struct Next<'a> {
    pub standing: Standing,
    pub executable: FileId,
    pub env_program: Option<String>,
    /// The command line it will have.
    pub command_line: &'a [Vec<u8>],
}

impl Processes {
    /// Takes note of the run's first process. If it is `env`, it may execute the program that its script says.
    pub fn add_first(
        &mut self,
        process: i32,
        standing: Standing,
        env_program: Option<String>,
        command_line: &[Vec<u8>],
    ) {
        let Some((stat, _)) = tree::read_stat(process) else { return };
        let Some(executable) = executable_of(process) else { return };
        self.note_program(executable, command_line, &standing);
        let is_unique = is_placed_at_random(process);
        let first = Executed { standing, env_program, is_unique };
        // The kernel may still be about to make its image.
        if let Some(image) = Image::of(&stat) {
            self.images.add(image, first.clone());
        }
        let (started, was) = (stat.started, Executed::unknown());
        let next = HashMap::from([(executable, first)]);
        self.permitted.insert(process, Permitted { started, before: None, was, next });
    }

    /// Takes note of the image of the run's first process, which the kernel had not made when it was added.
    pub fn settle_first(&mut self, process: i32) {
        self.caller(process);
    }

    /// The process of a thread, and what it is.
    pub fn caller(&mut self, thread: i32) -> Option<Caller> {
        let (stat, _) = tree::read_stat(thread)?;
        let (process, stat) = match stat.threads {
            ..=1 => (thread, stat),
            _ => {
                let process = process_of(thread)?;
                (process, tree::read_stat(process)?.0)
            }
        };
        let image = Image::of(&stat);
        let executed = match image {
            Some(image) => {
                let found = self.executed(&stat, image, 0);
                let executed = found.unwrap_or_else(|| self.orphan(process, image.executable));
                self.images.add(image, executed)
            }
            None => Executed::unknown(),
        };
        let Executed { standing, env_program, is_unique } = executed;
        let started = stat.started;
        Some(Caller { process, thread, started, image, is_unique, standing, env_program })
    }

    /// Takes note of a call that is about to be permitted.
    pub fn note(&mut self, caller: Caller, next: Next<'_>) {
        let Next { standing, executable, env_program, command_line } = next;
        self.note_program(executable, command_line, &standing);
        let Some(before) = caller.image else { return };
        if self.permitted.len() >= self.limit.max(MAX_KNOWN) {
            self.forget_ended();
        }
        let Caller { process, thread, started, is_unique, .. } = caller;
        let next_is_unique = is_placed_at_random(thread);
        let was =
            Executed { standing: caller.standing, env_program: caller.env_program, is_unique };
        let before = Some(before);
        let new = || Permitted { started, before, was: was.clone(), next: HashMap::new() };
        let permitted = self.permitted.entry(process).or_insert_with(new);
        if (permitted.started, permitted.before) != (started, before) {
            *permitted = new();
        }
        let is_full = permitted.next.len() >= MAX_NEXT;
        let executed = Executed { standing, env_program, is_unique: next_is_unique };
        match permitted.next.entry(executable) {
            Entry::Occupied(mut known) => drop(known.insert(executed.least(known.get()))),
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(vacant) => drop(vacant.insert(executed)),
        }
    }

    /// What a process is, if its image is known, or it or a living ancestor with the same image has executed it.
    fn executed(&mut self, stat: &ProcessStat, image: Image, depth: usize) -> Option<Executed> {
        const MAX_DEPTH: usize = 64;
        if let Some(known) = self.images.find(image) {
            return Some(known);
        }
        let permitted = self.permitted.get(&stat.pid).filter(|it| it.started == stat.started);
        if let Some(Permitted { before, was, next, .. }) = permitted {
            let next = next.get(&image.executable).cloned();
            return match (*before == Some(image), next) {
                // The kernel has run something else than what was asked about.
                (false, next) => Some(next.unwrap_or_else(Executed::unknown)),
                // It has failed, if the image would be another one otherwise.
                (true, Some(next)) if !next.is_unique => Some(next.least(was)),
                (true, _) => Some(was.clone()),
            };
        }
        if depth >= MAX_DEPTH || stat.parent == std::process::id() as i32 {
            return None;
        }
        // Others can have the same image, and one of them may have adopted it.
        if !is_placed_at_random(stat.pid) && adopts(stat.parent) {
            return None;
        }
        let (parent, _) = tree::read_stat(stat.parent)?;
        let same = Image::of(&parent).is_some_and(|its| its == image);
        if same { self.executed(&parent, image, depth + 1) } else { None }
    }

    /// What a process is whose parents have ended before they executed anything.
    fn orphan(&self, process: i32, executable: FileId) -> Executed {
        let by_line = || self.by_command_line.get(&(executable, command_line(process)));
        let standing = match is_shell(process) {
            true => by_line(),
            false => self.by_executable.get(&executable),
        };
        let standing = standing.cloned().unwrap_or(Standing::LEAST);
        Executed { standing, env_program: None, is_unique: false }
    }

    fn note_program(&mut self, executable: FileId, command_line: &[Vec<u8>], standing: &Standing) {
        lessen(self.by_executable.entry(executable), standing);
        let line = (executable, hash(command_line.iter().map(Vec::as_slice)));
        let is_full = self.by_command_line.len() >= MAX_COMMAND_LINES;
        match self.by_command_line.entry(line) {
            Entry::Vacant(_) if is_full => {}
            entry => lessen(entry, standing),
        }
    }

    /// Forgets processes that have ended. If that does not help, allows for more.
    fn forget_ended(&mut self) {
        self.permitted.retain(|process, permitted| {
            tree::read_stat(*process).is_some_and(|(stat, _)| stat.started == permitted.started)
        });
        self.limit = self.permitted.len() * 2;
    }
}

impl Image {
    fn of(stat: &ProcessStat) -> Option<Self> {
        Some(Self { executable: executable_of(stat.pid)?, layout: stat.layout? })
    }
}

impl Executed {
    /// A program that nobody knows.
    fn unknown() -> Self {
        Self { standing: Standing::LEAST, env_program: None, is_unique: false }
    }

    /// What is certain of a program that is one of both.
    fn least(self, other: &Self) -> Self {
        Self {
            standing: self.standing.least(&other.standing),
            env_program: self.env_program.filter(|it| other.env_program.as_ref() == Some(it)),
            is_unique: self.is_unique && other.is_unique,
        }
    }
}

impl Images {
    fn find(&mut self, image: Image) -> Option<Executed> {
        self.now += 1;
        let (executed, used) = self.known.get_mut(&image)?;
        *used = self.now;
        Some(executed.clone())
    }

    /// Adds an image, unless it is there already or may be another program's, and returns what it is.
    fn add(&mut self, image: Image, executed: Executed) -> Executed {
        if let Some(known) = self.find(image) {
            return known;
        }
        if !executed.is_unique {
            return executed;
        }
        if self.known.len() >= MAX_IMAGES {
            let mut used: Vec<_> = self.known.values().map(|(_, used)| *used).collect();
            let (_, middle, _) = used.select_nth_unstable(MAX_IMAGES / 2);
            let middle = *middle;
            self.known.retain(|_, (_, used)| *used > middle);
        }
        self.known.insert(image, (executed.clone(), self.now));
        executed
    }
}

fn lessen<K>(entry: Entry<'_, K, Standing>, standing: &Standing) {
    let least = |known: &mut Standing| *known = known.clone().least(standing);
    entry.and_modify(least).or_insert_with(|| standing.clone());
}

/// Whether the kernel chooses the places in memory of what a thread executes.
fn is_placed_at_random(thread: i32) -> bool {
    static ANYWHERE: LazyLock<bool> = LazyLock::new(|| {
        fs::read("/proc/sys/kernel/randomize_va_space").is_ok_and(|it| !it.starts_with(b"0"))
    });
    let mut text = [0; 16];
    let read = fs::File::open(format!("/proc/{thread}/personality"));
    let read = read.and_then(|file| file.read_at(&mut text, 0)).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
    let personality = u32::from_str_radix(text.trim(), 16);
    *ANYWHERE && personality.is_ok_and(|it| it & libc::ADDR_NO_RANDOMIZE as u32 == 0)
}

/// Whether a process is the first one of a PID namespace, whose children need not have been started by it.
fn adopts(process: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_none_or(|it| it.split_whitespace().next_back() == Some("1"))
}

/// Whether a process runs a shell that cannot change its own command line.
fn is_shell(process: i32) -> bool {
    let Ok(path) = fs::read_link(format!("/proc/{process}/exe")) else { return false };
    let folders = ["/bin", "/usr/bin"].map(Path::new);
    SHELLS.contains(&base_name(&path)) && path.parent().is_some_and(|it| folders.contains(&it))
}

/// A hash of a process's command line.
fn command_line(process: i32) -> u64 {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    hash(line.split(|byte| *byte == 0))
}

fn hash<'a>(line: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for argument in line.take(COMPARED_ARGUMENTS) {
        argument[..argument.len().min(COMPARED_BYTES)].hash(&mut hasher);
    }
    hasher.finish()
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok()
}
