//! The processes of a command that make programs, which it may then execute.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::real_path::real_path;
use super::target::Target;
use crate::tree::{State, read_stat};

/// How many linkers of one command are looked at.
const MOST_LINKERS: usize = 256;

/// What a process makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Makes {
    /// Whatever it wants, because it may execute anything.
    Anything,
    /// A binary at this path, because it is a linker.
    Binary(PathBuf),
}

/// What was made by processes that have ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    Anything,
    /// Binaries at these paths.
    Binaries(Vec<PathBuf>),
}

/// Those that still run, or have just ended. Of those that make anything, one is enough.
#[derive(Default)]
pub struct Makers {
    of_anything: Option<Maker>,
    of_binaries: Vec<(Maker, PathBuf)>,
}

struct Maker {
    process: i32,
    started: u64,
}

impl Makers {
    /// Adds one that is about to begin. Returns whether there was none of this kind.
    pub fn add(&mut self, process: i32, makes: Makes) -> bool {
        let maker = || {
            let (stat, _) = read_stat(process)?;
            Some(Maker { process, started: stat.started })
        };
        match makes {
            Makes::Anything if self.of_anything.as_ref().is_some_and(Maker::is_running) => false,
            Makes::Anything => {
                self.of_anything = maker();
                true
            }
            Makes::Binary(path) => {
                let is_first = !self.of_binaries.iter().any(|(maker, _)| maker.is_running());
                let has_room = self.of_binaries.len() < MOST_LINKERS;
                self.of_binaries.extend(maker().filter(|_| has_room).map(|maker| (maker, path)));
                is_first
            }
        }
    }

    /// Whether one runs that may make anything.
    pub fn make_anything(&self) -> bool {
        self.of_anything.is_some()
    }

    /// What was made by those that have ended since the last call.
    pub fn take_ended(&mut self) -> Option<Made> {
        if self.of_anything.take_if(|maker| !maker.is_running()).is_some() {
            return Some(Made::Anything);
        }
        let ended = self.of_binaries.extract_if(.., |(maker, _)| !maker.is_running());
        let paths: Vec<_> = ended.map(|(_, path)| path).collect();
        Some(Made::Binaries(paths)).filter(|made| *made != Made::Binaries(Vec::new()))
    }
}

impl Maker {
    fn is_running(&self) -> bool {
        let is_it = |stat: &crate::tree::ProcessStat| {
            stat.started == self.started && stat.state != State::Zombie
        };
        read_stat(self.process).is_some_and(|(stat, _)| is_it(&stat))
    }
}

/// Whether a program is only asked about itself.
pub fn is_asked_about_itself(arguments: &[Vec<u8>]) -> bool {
    const QUESTIONS: [&[u8]; 5] = [b"--version", b"-V", b"-v", b"--help", b"-h"];
    let options = arguments.get(1..).unwrap_or_default();
    !options.is_empty() && options.iter().all(|option| QUESTIONS.contains(&option.as_slice()))
}

/// The file that a linker was told to make, from the directory of its process. `None` if nobody can tell.
pub fn output_of_linker(process: i32, arguments: &[Vec<u8>]) -> Option<PathBuf> {
    let mut output = b"a.out".to_vec();
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        // A file with more arguments.
        if word.starts_with(b"@") {
            return None;
        }
        let after = |option: &[u8]| word.strip_prefix(option).map(<[u8]>::to_vec);
        if [&b"-o"[..], b"--output"].contains(&&**word) {
            output = words.next()?.clone();
        } else if let Some(named) = after(b"--output=").or_else(|| after(b"-o")) {
            output = named;
        }
    }
    let path = fs::read_link(format!("/proc/{process}/cwd")).ok()?.join(OsStr::from_bytes(&output));
    Some(real_path(path.parent()?).ok()?.join(path.file_name()?))
}

/// Whether a program makes binaries.
pub fn is_linker(target: &Target) -> bool {
    const LINKERS: [&str; 6] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "mold"];
    // The target system may come before the name.
    let name = target.name().rsplit('-').next().unwrap_or_default();
    target.interpreter.is_none() && LINKERS.contains(&name)
}
