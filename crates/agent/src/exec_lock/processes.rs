//! Which program each process of a run is, for the rules: the one it executed last.
//!
//! A process that was forked is what its parent is. The kernel does not tell us of forks, so that is found out when the
//! process wants to execute something: by its parent, or, if that is gone or has executed something else meanwhile, by
//! its command line, which a fork does not change. What cannot be found out gets the least rights of all candidates.
//!
//! An `execve` that was permitted can still fail. So a process counts as its new program only once `/proc` agrees.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::rules::Standing;
use super::target::{FileId, executable_of};
use crate::tree::{self, ProcessStat};

/// How many processes are remembered before those that have ended are forgotten.
const MAX_KNOWN: usize = 4096;

/// How many different command lines are remembered. Processes of others get the least rights.
const MAX_COMMAND_LINES: usize = 4096;

/// How much of a command line is compared.
const COMPARED_ARGUMENTS: usize = 64;
const COMPARED_BYTES: usize = 1024;

/// The processes of one run.
pub struct Processes {
    known: HashMap<i32, Known>,
    /// By the command lines of programs that were executed: what their processes were.
    by_command_line: HashMap<u64, Standing>,
    limit: usize,
}

struct Known {
    started: u64,
    /// What it was executed as, and what it was before.
    now: Executed,
    before: Option<Executed>,
}

#[derive(Clone)]
struct Executed {
    standing: Standing,
    executable: FileId,
    /// The program that `env` may execute next, because the script that was executed says so.
    env_program: Option<String>,
    /// A hash of its command line.
    command_line: Option<u64>,
}

/// A process that wants to execute something.
pub struct Caller {
    pub process: i32,
    started: u64,
    pub standing: Standing,
    /// The program that it is to execute as the interpreter of its script, if it is `env`.
    pub env_program: Option<String>,
    executable: Option<FileId>,
}

/// What a process becomes if its call succeeds.
pub struct Next<'a> {
    pub standing: Standing,
    pub executable: FileId,
    pub env_program: Option<String>,
    /// The command line it will have.
    pub command_line: &'a [Vec<u8>],
}

impl Default for Processes {
    fn default() -> Self {
        Self { known: HashMap::new(), by_command_line: HashMap::new(), limit: MAX_KNOWN }
    }
}

impl Processes {
    /// Takes note of the run's first process.
    pub fn add_first(&mut self, process: i32, standing: Standing, command_line: &[Vec<u8>]) {
        self.note_command_line(hash(command_line.iter().map(Vec::as_slice)), &standing);
        let Some((stat, _)) = tree::read_stat(process) else { return };
        let Some(executable) = executable_of(process) else { return };
        let now = Executed { standing, executable, env_program: None, command_line: None };
        self.known.insert(process, Known { started: stat.started, now, before: None });
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
        let executable = executable_of(process);
        let executed = self.executed(&stat, executable, 0);
        let (standing, env_program) = match executed {
            Some(executed) => (executed.standing, executed.env_program),
            None => {
                let standing = self.by_command_line.get(&command_line(process)).cloned();
                (standing.unwrap_or(Standing::LEAST), None)
            }
        };
        Some(Caller { process, started: stat.started, standing, env_program, executable })
    }

    /// Takes note of a call that is about to be permitted.
    pub fn note(&mut self, caller: Caller, next: Next<'_>) {
        let Next { standing, executable, env_program, command_line } = next;
        let line = hash(command_line.iter().map(Vec::as_slice));
        self.note_command_line(line, &standing);
        let before = caller.executable.map(|executable| Executed {
            standing: caller.standing,
            executable,
            env_program: caller.env_program,
            command_line: None,
        });
        let now = Executed { standing, executable, env_program, command_line: Some(line) };
        if self.known.len() >= self.limit {
            self.forget_ended();
        }
        self.known.insert(caller.process, Known { started: caller.started, now, before });
    }

    /// What a process is, if it or one of its living ancestors is known and still runs the same program.
    fn executed(
        &self,
        stat: &ProcessStat,
        executable: Option<FileId>,
        depth: usize,
    ) -> Option<Executed> {
        const MAX_DEPTH: usize = 64;
        let executable = executable?;
        match self.known.get(&stat.pid).filter(|known| known.started == stat.started) {
            Some(known) if known.now.executable == executable => {
                let same = known.before.as_ref().filter(|before| before.executable == executable);
                // Both are the same file, such as a shell, so only the command line can tell.
                let failed =
                    same.filter(|_| known.now.command_line != Some(command_line(stat.pid)));
                Some(failed.unwrap_or(&known.now).clone())
            }
            Some(known) => known.before.clone().filter(|before| before.executable == executable),
            None if depth < MAX_DEPTH && stat.parent != std::process::id() as i32 => {
                let (parent, _) = tree::read_stat(stat.parent)?;
                if executable_of(parent.pid)? != executable {
                    return None;
                }
                self.executed(&parent, Some(executable), depth + 1)
            }
            None => None,
        }
    }

    fn note_command_line(&mut self, line: u64, standing: &Standing) {
        let is_full = self.by_command_line.len() >= MAX_COMMAND_LINES;
        match self.by_command_line.entry(line) {
            Entry::Occupied(mut known) => {
                let least = known.get().clone().least(standing);
                known.insert(least);
            }
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(vacant) => drop(vacant.insert(standing.clone())),
        }
    }

    /// Forgets processes that have ended. If that does not help, allows for more.
    fn forget_ended(&mut self) {
        self.known.retain(|process, known| {
            tree::read_stat(*process).is_some_and(|(stat, _)| stat.started == known.started)
        });
        self.limit = MAX_KNOWN.max(self.known.len() * 2);
    }
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
