//! The processes of a command that make programs, which it may then execute.

use super::target::Target;
use crate::tree::{State, read_stat};

/// What a process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// Whatever it wants, because it may execute anything.
    Anything,
    /// Binaries, because it is a linker.
    Binaries,
}

/// Those that still run, or have just ended. One of each kind is enough.
#[derive(Default)]
pub struct Makers {
    of_anything: Option<Maker>,
    of_binaries: Option<Maker>,
}

struct Maker {
    process: i32,
    started: u64,
}

impl Makers {
    /// Adds one that is about to begin. Returns whether there was none of this kind.
    pub fn add(&mut self, process: i32, makes: Makes) -> bool {
        let slot = match makes {
            Makes::Anything => &mut self.of_anything,
            Makes::Binaries => &mut self.of_binaries,
        };
        if slot.as_ref().is_some_and(Maker::is_running) {
            return false;
        }
        let stat = read_stat(process).map(|(stat, _)| stat);
        *slot = stat.map(|stat| Maker { process, started: stat.started });
        true
    }

    /// Whether one runs that may make anything.
    pub fn make_anything(&self) -> bool {
        self.of_anything.is_some()
    }

    /// What was made by one that has ended since the last call.
    pub fn take_ended(&mut self) -> Option<Makes> {
        if self.of_anything.take_if(|maker| !maker.is_running()).is_some() {
            return Some(Makes::Anything);
        }
        let ended = self.of_binaries.take_if(|maker| !maker.is_running());
        ended.map(|_| Makes::Binaries)
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

/// Whether a program makes binaries.
pub fn is_linker(target: &Target) -> bool {
    const LINKERS: [&str; 6] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "mold"];
    // The target system may come before the name.
    let name = target.name().rsplit('-').next().unwrap_or_default();
    target.interpreter.is_none() && LINKERS.contains(&name)
}
