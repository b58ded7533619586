//! A marker that commands inherit and cannot remove, even if all our processes above them were killed.
//!
//! It is their limit of file locks, one lower than that of the process that starts them. Linux has not enforced this
//! limit since 2.4, so it does no harm. Every process inherits it, and only a privileged process, such as root's, can
//! raise it again.

use std::fs::read_to_string;

use rustix::process::{Resource, Rlimit, getrlimit};

/// The kernel's name for the limit.
const NAME: &str = "Max file locks";

/// The limit that marks a process. The child sets it before it executes its program.
pub fn marker_limit() -> (Resource, Rlimit) {
    let most = own().saturating_sub(1);
    (Resource::Locks, Rlimit { current: Some(most), maximum: Some(most) })
}

/// Whether a process is a command of some server, provided that this process is not. `None` if its limits are not
/// visible.
pub fn has_marker(pid: i32) -> Option<bool> {
    let limits = read_to_string(format!("/proc/{pid}/limits")).ok()?;
    Some(hard_limit(&limits)? < own())
}

fn own() -> u64 {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX)
}

/// Parses a table with a line for each limit: name, soft limit, hard limit and unit.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(NAME))?;
    match line.split_ascii_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_hard_limit_is_read_from_the_table() {
        let table = |soft: &str, hard: &str| {
            format!(
                "Limit    Soft Limit   Hard Limit   Units\nMax file locks  {soft}  {hard}  locks\n"
            )
        };
        assert_eq!(hard_limit(&table("unlimited", "unlimited")), Some(u64::MAX));
        assert_eq!(hard_limit(&table("7", "18446744073709551614")), Some(u64::MAX - 1));
        assert_eq!(hard_limit("Max cpu time  1  2  seconds\n"), None);
    }

    #[test]
    fn what_has_a_lower_limit_has_marker_with_all_it_starts() {
        assert_eq!(has_marker(std::process::id() as i32), Some(false));
        let most = own().saturating_sub(1).to_string();
        let mut command = Command::new("prlimit");
        command.arg(format!("--locks={most}:{most}")).args(["sh", "-c", "echo $$; read x; true"]);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        assert_eq!(has_marker(line.trim().parse().unwrap()), Some(true));
        drop(shell.stdin.take());
        let pid = shell.id() as i32;
        shell.wait().unwrap();
        assert_eq!(has_marker(pid), None);
    }
}
