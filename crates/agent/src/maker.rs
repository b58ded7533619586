//! Which process made something that may outlive it, such as a container, in words that a later server can read.
//!
//! A process id alone would not do: ids are used again, start over when a machine boots, and are counted apart in every
//! PID namespace. Several servers may share one container engine, also from other machines.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

use crate::ancestry::{Identity, ProcessHandle};

/// One process, among those of all machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    boot: String,
    /// The PID namespace in which it has its id.
    namespace: u64,
    process: Identity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MakerState {
    Alive,
    Gone,
    /// On another machine, in another PID namespace, or before this machine was booted. Nothing here tells which.
    Elsewhere,
}

#[derive(Debug, thiserror::Error)]
#[error("not the name of a process")]
pub struct InvalidMaker;

impl Maker {
    /// This process.
    pub fn own() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        Some(Self { boot, namespace, process: Identity::own()? })
    }

    /// What has become of it, as far as this process can see.
    pub fn state(&self) -> MakerState {
        let same = |own: &Self| own.boot == self.boot && own.namespace == self.namespace;
        if !Self::own().as_ref().is_some_and(same) {
            return MakerState::Elsewhere;
        }
        match ProcessHandle::new(self.process).is_some_and(|handle| handle.is_alive()) {
            true => MakerState::Alive,
            false => MakerState::Gone,
        }
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, process } = self;
        write!(f, "{boot}.{namespace}.{}.{}", process.pid, process.started())
    }
}

impl FromStr for Maker {
    type Err = InvalidMaker;

    fn from_str(text: &str) -> Result<Self, InvalidMaker> {
        let parts: Vec<_> = text.split('.').collect();
        let [boot, namespace, pid, started] = parts[..] else { return Err(InvalidMaker) };
        let number = |part: &str| part.parse::<u64>().map_err(|_| InvalidMaker);
        let pid = i32::try_from(number(pid)?).map_err(|_| InvalidMaker)?;
        let process = Identity::new(pid, number(started)?);
        Ok(Self { boot: boot.to_owned(), namespace: number(namespace)?, process })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(maker: &Maker) -> Maker {
        maker.to_string().parse().unwrap()
    }

    #[test]
    fn a_process_is_told_from_all_others() {
        let own = Maker::own().unwrap();
        assert_eq!(told(&own), own);
        assert_eq!(told(&own).state(), MakerState::Alive);
        let later = Identity::new(own.process.pid, own.process.started() + 1);
        let others = [
            (Maker { process: later, ..own.clone() }, MakerState::Gone),
            (Maker { boot: "x".to_owned(), ..own.clone() }, MakerState::Elsewhere),
            (Maker { namespace: 1, ..own.clone() }, MakerState::Elsewhere),
        ];
        for (other, state) in others {
            assert_eq!(told(&other).state(), state, "{other}");
        }
    }

    #[test]
    fn other_texts_name_no_process() {
        for text in
            ["", "a.b.c.d", "boot.1.2", "boot.1.2.3.4", "boot.1.-2.3", "boot.1.99999999999.3"]
        {
            assert!(text.parse::<Maker>().is_err(), "{text}");
        }
    }
}
