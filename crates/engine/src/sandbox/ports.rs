//! Tells of ports on which commands listen, in a network of their own.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Ports {
    published: Vec<RangeInclusive<u16>>,
    /// Those of which somebody was told.
    told: Mutex<BTreeSet<u16>>,
    /// Whether a command has left something running, which may listen.
    has_left: AtomicBool,
}

impl Ports {
    pub fn new(published: Vec<RangeInclusive<u16>>) -> Self {
        Self { published, ..Self::default() }
    }

    /// A command has ended, or will, and something of it runs on.
    pub fn note_left(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Whether something may listen that no job is known for.
    pub fn may_be_new(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// What to say about these ports, if nobody outside can reach them and nobody was told yet.
    pub fn tell(&self, listening: impl Iterator<Item = u16>) -> Option<String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = listening.filter(|port| told.insert(*port)).collect();
        described(&new, &self.published)
    }
}

/// What to say about ports that nobody outside can reach.
fn described(ports: &[u16], published: &[RangeInclusive<u16>]) -> Option<String> {
    let is_closed = |port: &&u16| !published.iter().any(|range| range.contains(port));
    let closed: Vec<_> = ports.iter().filter(is_closed).map(u16::to_string).collect();
    let (first, more) = closed.split_first()?;
    let ports = match more {
        [] => format!("port {first}"),
        more => format!("ports {first}, {}", more.join(", ")),
    };
    Some(format!(
        "sandbox: only commands in the sandbox can connect to {ports}; `--publish {first}` (`publish` in [sandbox]) \
         would open it to programs on this machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_published_is_told() {
        assert_eq!(described(&[80], &[70..=90]), None);
        assert!(described(&[80, 100, 101], &[70..=90]).unwrap().contains("ports 100, 101;"));
    }
}
