//! The environment of the user's login shell.
//!
//! What a desktop starts has no shell above it, and so nothing of what the user has told their shell
//! about `PATH`. Which of its files say that is anybody's guess; so the shell is started as a terminal
//! would start it, for login and interactive, and told to become a program of ours, which tells.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_engine::{Login, Settle, Variables};
use rustix::process::getuid;

/// How long it may take. The first command waits for it.
const TIME: Duration = Duration::from_secs(5);

/// The argument that makes us the program that tells.
pub const SUBCOMMAND: &str = "environment";

/// What is set for the shell alone, so that nothing asks for what nobody is there to answer.
const FOR_THE_SHELL: &[(&str, &str)] = &[
    // For files that want to know what they are read for.
    ("MCPZ_LOGIN_ENV", "1"),
    // Many return at once from one that is dumb, which is what shells take none for.
    ("TERM", "xterm-256color"),
    ("DISABLE_AUTO_UPDATE", "true"),
    ("ZSH_TMUX_AUTOSTART", "false"),
    ("ZSH_TMUX_AUTOSTARTED", "true"),
];

/// What is the shell's own and says nothing to others. The agent it may have started for keys is gone
/// with it.
const ITS_OWN: &[&str] = &["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "SSH_AGENT_PID", "_"];

/// How the login shell is asked; `settle` takes what comes of it.
pub fn login(settle: Settle) -> Login {
    let shell = shell().to_string_lossy().into_owned();
    let ours = std::env::current_exe().unwrap_or_default();
    // All shells read this alike, fish too.
    let ours = format!("'{}'", ours.to_string_lossy().replace('\'', "'\\''"));
    let command = [&shell, "-l", "-i", "-c", &format!("exec {ours} {SUBCOMMAND}")];
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Login {
        command: command.map(str::to_owned).to_vec(),
        // Not where we work: shells load what they find there, and a model can write there.
        directory: home
            .filter(|home| home.is_absolute() && home.is_dir())
            .unwrap_or_else(|| "/".into()),
        environment: FOR_THE_SHELL
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        timeout: TIME,
        settle,
    }
}

/// The shell of whoever runs us.
fn shell() -> PathBuf {
    let named = std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
    named.or_else(listed_shell).unwrap_or_else(|| "/bin/sh".into())
}

fn listed_shell() -> Option<PathBuf> {
    let users = std::fs::read("/etc/passwd").ok()?;
    shell_of(getuid().as_raw(), &users)
}

fn shell_of(user: u32, users: &[u8]) -> Option<PathBuf> {
    let number = user.to_string();
    let lines = users.split(|byte| *byte == b'\n');
    let fields = lines.map(|line| line.split(|byte| *byte == b':').collect::<Vec<_>>());
    let mut shells = fields.filter_map(|fields| match *fields {
        [_, _, id, _, _, _, shell] if id == number.as_bytes() => Some(shell),
        _ => None,
    });
    shells
        .next()
        .map(|shell| OsStr::from_bytes(shell).into())
        .filter(|shell: &PathBuf| shell.is_absolute())
}

/// Our environment with what the login shell has in its own.
pub fn overlaid(ours: &[(OsString, OsString)], told: &Variables) -> Vec<(OsString, OsString)> {
    let taken: Vec<_> = told.all().iter().filter(|(name, value)| is_taken(name, value)).collect();
    let kept = ours.iter().filter(|(name, _)| !taken.iter().any(|(other, _)| other == name));
    let mut all: Vec<_> = kept.chain(taken.iter().copied()).cloned().collect();
    let path = |variables: &[(OsString, OsString)]| {
        variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone())
    };
    if let (Some(ours), Some((_, theirs))) =
        (path(ours), all.iter_mut().find(|(name, _)| name == "PATH"))
    {
        *theirs = joined(theirs, &ours);
    }
    all
}

fn is_taken(name: &OsStr, value: &OsStr) -> bool {
    let is_ours = |(ours, _): &(&str, &str)| name == *ours;
    let is_gone = name == "SSH_AUTH_SOCK" && !Path::new(value).exists();
    !FOR_THE_SHELL.iter().any(is_ours) && !ITS_OWN.iter().any(|own| name == *own) && !is_gone
}

/// A `PATH` with what another has besides, after it: what was found before still is.
fn joined(first: &OsStr, second: &OsStr) -> OsString {
    let mut folders: Vec<_> = first.as_bytes().split(|byte| *byte == b':').collect();
    let more = second.as_bytes().split(|byte| *byte == b':');
    for folder in more {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    OsStr::from_bytes(&folders.join(&b':')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        all.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn what_the_shell_has_wins_but_for_what_is_its_own() {
        let ours = variables(&[("A", "1"), ("B", "1"), ("PWD", "/x"), ("TERM", "dumb")]);
        let theirs =
            [("A", "2"), ("C", "2"), ("PWD", "/y"), ("SHLVL", "3"), ("TERM", "xterm-256color")];
        let mut all = overlaid(&ours, &Variables::new(variables(&theirs)));
        all.sort();
        let expected = [("A", "2"), ("B", "1"), ("C", "2"), ("PWD", "/x"), ("TERM", "dumb")];
        assert_eq!(all, variables(&expected));
    }

    #[test]
    fn folders_of_our_path_come_after_those_of_the_shell() {
        let ours = variables(&[("PATH", "/opt/mine:/bin")]);
        let all = overlaid(&ours, &Variables::new(variables(&[("PATH", "/home/me/bin:/bin")])));
        assert_eq!(all, variables(&[("PATH", "/home/me/bin:/bin:/opt/mine")]));
    }

    #[test]
    fn a_socket_that_went_with_the_shell_is_not_taken() {
        let ours = variables(&[("SSH_AUTH_SOCK", "/run/ours")]);
        let told = |value| Variables::new(variables(&[("SSH_AUTH_SOCK", value)]));
        assert_eq!(overlaid(&ours, &told("/no/such/socket")), ours);
        assert_eq!(
            overlaid(&ours, &told("/dev/null")),
            variables(&[("SSH_AUTH_SOCK", "/dev/null")])
        );
    }

    #[test]
    fn a_shell_is_found_by_the_number_of_its_user() {
        let users = b"root:x:0:0:root:/root:/bin/bash\nbroken\nme:x:1000:100::/home/me:/bin/zsh\n\
                      none:x:1001:100::/:\n";
        assert_eq!(shell_of(1000, users), Some("/bin/zsh".into()));
        assert_eq!(shell_of(1001, users), None);
        assert_eq!(shell_of(7, users), None);
    }
}
