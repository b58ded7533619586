//! Questions about a running run, which its keeper answers.
//!
//!     server ──── Ask(Question) ────▶ keeper ──▶ /proc, the terminal
//!            ◀── Answered(Answer) ───
//!
//! The keeper is an ancestor of every process it inspects and lives in the same namespaces. So the kernel shows it what
//! it hides from unrelated processes, and process ids mean the same to the keeper as to the run. The server's own
//! thread reads nothing about a run from `/proc`, and nobody signals an id that was read earlier: the keeper signals as
//! soon as it has looked.
//!
//! A new question is a variant of [`Question`], its answer in `Subject::answer`, and a method of the engine's
//! `Inspector`. A detached job's recorder passes questions on to its keeper, and may be older than the server that
//! asks: add variants at the end, and raise `frame::VERSION`.

mod input;
mod ports;
mod readers;

use std::collections::HashSet;
use std::fs::read_link;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::process::{Signal, getpid};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde::{Deserialize, Serialize};

use crate::ancestry::Identity;
use crate::exec_lock::ExecLock;
use crate::exec_rules::{EncodedRules, RefusedExec};
use crate::tree;
pub use readers::InputReader;

/// What to find out about a run, or to do to it. A keeper answers at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Which processes does the run have?
    Processes,
    /// Which of them are there besides the first process?
    Others,
    /// Signals those, except these and everything below them, and returns which they were. Signal 0 only lists them.
    Signal { signal: i32, except: Vec<Identity> },
    /// Does one of them wait for the first process's stdin?
    WaitsForInput,
    /// Which programs may come to read what is written to it, and how?
    Readers,
    /// Does one of them listen on this TCP port?
    Listens { port: u16 },
    /// Does the terminal hide what is typed, as for a password?
    HidesInput,
    /// Resizes the terminal.
    Resize { rows: u16, columns: u16 },
    /// Allows the processes of the run to execute more than before.
    Permit(EncodedRules),
    /// What were they not allowed to execute since this was last asked?
    RefusedExecs {
        /// Whether the next answer leaves these out.
        take: bool,
    },
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Processes(Vec<Identity>),
    Readers { readers: Vec<InputReader>, mode: InputMode },
    YesNo(bool),
    RefusedExecs(Vec<RefusedExec>),
}

/// How the next input of a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputMode {
    /// From a pipe.
    Stream,
    /// From a terminal, by a program that waits for a line.
    Line,
    /// The same, where the terminal hides the line, as for a password.
    Secret,
    /// From a terminal, key by key, or nobody knows how, because no program waits.
    Keys,
}

/// The run to inspect: everything below this process.
pub struct Subject<'a> {
    /// The first process, while it is alive.
    pub first: Option<i32>,
    pub terminal: Option<BorrowedFd<'a>>,
    /// The inode of the pipe that is its stdin, if it is one.
    pub input_pipe: Option<u64>,
    pub exec_lock: Option<&'a mut ExecLock>,
}

impl Subject<'_> {
    pub fn answer(&mut self, question: &Question) -> Answer {
        match question {
            Question::Processes => Answer::Processes(identities(&tree::scan_children(own()))),
            Question::Others => {
                let mut others = tree::scan_children(own());
                others.retain(|process| Some(process.pid) != self.first);
                Answer::Processes(identities(&others))
            }
            Question::Signal { signal, except } => {
                Answer::Processes(self.signal_others(*signal, except))
            }
            Question::WaitsForInput => Answer::YesNo(self.waits_for_input()),
            Question::Readers => {
                let stdin = self.input();
                let readers = readers::find(own(), self.input_pipe, stdin.as_deref());
                Answer::Readers { readers, mode: self.input_mode() }
            }
            Question::Listens { port } => Answer::YesNo(ports::listens(&pids_below(), *port)),
            Question::HidesInput => Answer::YesNo(self.hides_input()),
            Question::Resize { rows, columns } => Answer::YesNo(self.resize(*rows, *columns)),
            Question::Permit(rules) => {
                let lock = self.exec_lock.as_mut();
                Answer::YesNo(lock.map(|lock| lock.permit(rules)).is_some())
            }
            Question::RefusedExecs { take } => {
                let refused = |lock: &mut ExecLock| match take {
                    true => lock.take_refused(),
                    false => lock.refused().to_vec(),
                };
                let lock = self.exec_lock.as_mut();
                Answer::RefusedExecs(lock.map(|lock| refused(lock)).unwrap_or_default())
            }
        }
    }

    /// Resumes stopped processes, which would not handle the signal otherwise.
    fn signal_others(&self, signal: i32, except: &[Identity]) -> Vec<Identity> {
        let mut spared = HashSet::new();
        let mut others = tree::living(own());
        // Parents come before their children.
        others.retain(|process| {
            let spare = spared.contains(&process.parent) || except.contains(&process.into());
            if spare {
                spared.insert(process.pid);
            }
            !spare && Some(process.pid) != self.first
        });
        let pids: Vec<_> = others.iter().map(|process| process.pid).collect();
        if let Some(signal) = Signal::from_named_raw(signal) {
            tree::signal(&pids, signal);
            tree::signal(&pids, Signal::CONT);
        }
        identities(&others)
    }

    /// The stdin of the first process, such as `/dev/pts/3` or `pipe:[123]`. A session's shell reads
    /// its orders there, which are not input of its commands.
    fn input(&self) -> Option<PathBuf> {
        let input = read_proc_link(self.first?, "fd/0")?;
        (!input.to_string_lossy().starts_with("socket:[")).then_some(input)
    }

    fn waits_for_input(&self) -> bool {
        let Some(input) = self.input() else { return false };
        let input = input.to_string_lossy();
        input != "/dev/null" && pids_below().iter().any(|pid| input::waits_to_read(*pid, &input))
    }

    fn input_mode(&self) -> InputMode {
        let Some(terminal) = self.terminal else { return InputMode::Stream };
        let by_line =
            tcgetattr(terminal).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
        match by_line {
            true if self.hides_input() => InputMode::Secret,
            true if self.waits_for_input() => InputMode::Line,
            _ => InputMode::Keys,
        }
    }

    /// Programs that echo input themselves do not read whole lines (`ICANON`).
    fn hides_input(&self) -> bool {
        let modes = self.terminal.and_then(|terminal| tcgetattr(terminal).ok());
        modes.is_some_and(|modes| {
            modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }

    fn resize(&self, rows: u16, columns: u16) -> bool {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.terminal.is_some_and(|terminal| tcsetwinsize(terminal, size).is_ok())
    }
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn pids_below() -> Vec<i32> {
    tree::scan_children(own()).iter().map(|entry| entry.pid).collect()
}

fn identities(entries: &[tree::ProcessStat]) -> Vec<Identity> {
    entries.iter().map(Identity::from).collect()
}

fn read_proc_link(pid: i32, name: &str) -> Option<PathBuf> {
    read_link(format!("/proc/{pid}/{name}")).ok()
}
