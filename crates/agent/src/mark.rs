//! A mark that commands carry and cannot take off, even when everything of ours above them was killed.
//!
//! It is their limit of file locks, which is one lower than that of the process that starts them. Linux has not
//! enforced this limit since 2.4, so it is in nobody's way. Every process inherits it, and without privileges it
//! can only be lowered further.

use std::fs::read_to_string;

use rustix::process::{Resource, Rlimit, getrlimit};

/// How the kernel calls it.
const NAME: &str = "Max file locks";

/// What marks a process that this one starts, to be set before it executes its program.
pub fn mark() -> (Resource, Rlimit) {
    let most = own().saturating_sub(1);
    (Resource::Locks, Rlimit { current: Some(most), maximum: Some(most) })
}

/// Whether a process has been started below a server, this one being no command of it. Nothing if nobody can
/// tell.
pub fn is_marked(pid: i32) -> Option<bool> {
    let limits = read_to_string(format!("/proc/{pid}/limits")).ok()?;
    Some(hard_limit(&limits)? < own())
}

fn own() -> u64 {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX)
}

/// From a table with a line for each limit: its name, the soft limit, the hard one and its unit.
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
    fn what_has_a_lower_limit_is_marked_with_all_it_starts() {
        assert_eq!(is_marked(std::process::id() as i32), Some(false));
        let most = own().saturating_sub(1).to_string();
        let mut command = Command::new("prlimit");
        command.arg(format!("--locks={most}:{most}")).args(["sh", "-c", "echo $$; read x; true"]);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        assert_eq!(is_marked(line.trim().parse().unwrap()), Some(true));
        drop(shell.stdin.take());
        let pid = shell.id() as i32;
        shell.wait().unwrap();
        assert_eq!(is_marked(pid), None);
    }
}
