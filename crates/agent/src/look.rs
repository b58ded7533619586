//! What a keeper is asked about its run while that goes on, and how it finds out.
//!
//!     server ── Look(Question) ──▶ keeper ──▶ /proc, the terminal
//!            ◀──── Seen ──────────
//!
//! The keeper is an ancestor of every process it looks at and lives in the same namespaces. So the kernel
//! shows it what it hides from strangers, and process ids mean the same to the keeper as to the run.

mod input;
mod ports;

use std::fs::{File, read_link};
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::process::{Signal, getpid};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde::{Deserialize, Serialize};

use crate::ancestry::Identity;
use crate::tree;

/// How much of a command line is told at most.
const MAX_COMMAND_LINE: u64 = 64 << 10;

/// What can be asked about a run, or done to what is below it. A keeper answers at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Which processes are there?
    Processes,
    /// Which of them has the first process started?
    Started,
    /// Signals those the first process has started, except for these, and tells which they are.
    Signal { signal: i32, except: Vec<Identity> },
    /// Does one of them wait for what the first process can be given to read?
    WaitsForInput,
    /// Which programs read that?
    Readers,
    /// Does one of them listen on this TCP port?
    Listens { port: u16 },
    /// Does its terminal hide the line that is typed, as for a password?
    HidesInput,
    /// Gives its terminal another size.
    Resize { rows: u16, columns: u16 },
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    Processes(Vec<Identity>),
    Readers(Vec<Reader>),
    Answer(bool),
}

/// A program that reads the input of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    /// The name of the file it was started from.
    pub name: String,
    /// The beginning of its command line, without its name.
    pub arguments: Vec<Vec<u8>>,
}

/// The run that is looked at: all that is below this process.
pub struct Subject<'a> {
    /// The first process, while it is there.
    pub first: Option<i32>,
    pub terminal: Option<BorrowedFd<'a>>,
}

impl Subject<'_> {
    pub fn look(&self, question: &Question) -> Seen {
        match question {
            Question::Processes => Seen::Processes(identities(&tree::seen_below(own()))),
            Question::Started => {
                let started = self.first.map(tree::seen_below).unwrap_or_default();
                Seen::Processes(identities(&started))
            }
            Question::Signal { signal, except } => {
                Seen::Processes(self.signal_started(*signal, except))
            }
            Question::WaitsForInput => Seen::Answer(self.waits_for_input()),
            Question::Readers => Seen::Readers(self.readers()),
            Question::Listens { port } => Seen::Answer(ports::listens(&pids_below(), *port)),
            Question::HidesInput => Seen::Answer(self.hides_input()),
            Question::Resize { rows, columns } => Seen::Answer(self.resize(*rows, *columns)),
        }
    }

    /// A stopped process is woken, or it could not hear.
    fn signal_started(&self, signal: i32, except: &[Identity]) -> Vec<Identity> {
        let mut started = identities(&self.first.map(tree::living).unwrap_or_default());
        started.retain(|process| !except.contains(process));
        let pids: Vec<_> = started.iter().map(|process| process.pid).collect();
        if let Some(signal) = Signal::from_named_raw(signal) {
            tree::signal(&pids, signal);
            tree::signal(&pids, Signal::CONT);
        }
        started
    }

    /// What the first process reads, as `/dev/pts/3` or `pipe:[123]`.
    fn input(&self) -> Option<PathBuf> {
        link(self.first?, "fd/0")
    }

    fn waits_for_input(&self) -> bool {
        let Some(input) = self.input() else { return false };
        let input = input.to_string_lossy();
        input != "/dev/null" && pids_below().iter().any(|pid| input::waits_to_read(*pid, &input))
    }

    fn readers(&self) -> Vec<Reader> {
        let Some(input) = self.input() else { return Vec::new() };
        // None may be missed, so every process of the machine is looked at.
        let all = tree::descendants(own()).into_iter();
        all.filter(|pid| link(*pid, "fd/0").as_ref() == Some(&input)).filter_map(reader).collect()
    }

    /// Programs that show what is typed by themselves do not read whole lines.
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
    tree::seen_below(own()).iter().map(|entry| entry.pid).collect()
}

fn identities(entries: &[tree::Entry]) -> Vec<Identity> {
    entries.iter().map(Identity::from).collect()
}

fn reader(pid: i32) -> Option<Reader> {
    let name = link(pid, "exe")?.file_name()?.to_string_lossy().into_owned();
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(MAX_COMMAND_LINE).read_to_end(&mut line).ok()?;
    let arguments = line.split(|byte| *byte == 0).skip(1).map(<[u8]>::to_vec).collect();
    Some(Reader { name, arguments })
}

fn link(pid: i32, name: &str) -> Option<PathBuf> {
    read_link(format!("/proc/{pid}/{name}")).ok()
}
