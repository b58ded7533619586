//! Kills everything below a process, in as many rounds as that takes.

use std::collections::HashSet;

use super::{kill_with_group, living, scan_children};

/// Rounds of killing that read only what there is to kill. A thousand agents that scan all processes, each for its own
/// few, would slow each other down for half a minute.
///
/// Walking from a process to its children can miss one while others start or end. Then the next round finds others than
/// those that were killed, and scans all processes.
pub struct Hunt {
    root: i32,
    killed: Option<HashSet<i32>>,
}

impl Hunt {
    pub fn new(root: i32) -> Self {
        Self { root, killed: None }
    }

    /// Kills those descendants that exist now and are targets.
    pub fn kill_if(&mut self, is_target: impl Fn(i32) -> bool) {
        let mut found = scan_children(self.root);
        found.retain(|process| is_target(process.pid));
        let is_new = |pid| self.killed.as_ref().is_some_and(|killed| !killed.contains(&pid));
        if found.iter().any(|process| is_new(process.pid)) {
            found.extend(living(self.root).into_iter().filter(|process| is_target(process.pid)));
        }
        found.iter().for_each(kill_with_group);
        let killed = found.iter().map(|process| process.pid);
        self.killed.get_or_insert_default().extend(killed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;

    #[test]
    fn only_targets_are_killed_also_those_that_come_later() {
        let start = || Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let mut hunt = Hunt::new(std::process::id() as i32);
        let (mut spared, mut first) = (start(), start());
        let mut targets = vec![first.id() as i32];
        hunt.kill_if(|pid| targets.contains(&pid));
        assert_eq!(first.wait().unwrap().signal(), Some(libc::SIGKILL));
        let mut later = start();
        targets.push(later.id() as i32);
        hunt.kill_if(|pid| targets.contains(&pid));
        assert_eq!(later.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}
