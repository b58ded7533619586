//! The variables of the user's login shell.
//!
//! A server that a desktop starts has no shell above it, so it lacks what the user's shell files set, above all
//! `PATH`. Nobody can know which of those files matter. The shell is therefore started as a terminal starts it,
//! as an interactive login shell, and told to `exec` this program, which reports its variables on a descriptor of
//! its own, past everything those files print (`engine/src/environment.rs`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_engine::{Login, ResolveLogin, Variables};
use rustix::process::getuid;

use crate::environment;

/// How long the shell may take. The first command waits for it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The hidden subcommand that reports the variables.
pub const SUBCOMMAND: &str = "environment";

/// Set for the shell only, mostly to keep its files from asking questions that nobody would answer.
const FOR_THE_SHELL: &[(&str, &str)] = &[
    // Lets files tell this start from an ordinary one.
    ("MCPZ_LOGIN_ENV", "1"),
    // Without it shells assume a dumb terminal, and many files then stop early.
    ("TERM", "xterm-256color"),
    ("DISABLE_AUTO_UPDATE", "true"),
    ("ZSH_TMUX_AUTOSTART", "false"),
    ("ZSH_TMUX_AUTOSTARTED", "true"),
];

/// Variables that describe the shell itself. A key agent that it started has ended with it.
const ITS_OWN: &[&str] = &["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "SSH_AGENT_PID", "_"];

/// How to ask the login shell; `resolve` receives its answer.
pub fn login(resolve: ResolveLogin) -> Login {
    let shell = shell().to_string_lossy().into_owned();
    let program = environment::program().unwrap_or_default();
    // All shells read these quotes alike, fish too.
    let program = format!("'{}'", program.to_string_lossy().replace('\'', "'\\''"));
    let command = [&shell, "-l", "-i", "-c", &format!("exec {program} {SUBCOMMAND}")];
    Login {
        command: command.map(str::to_owned).to_vec(),
        // Not the working directory: a model can write there, and shells load what they find.
        directory: environment::home()
            .filter(|home| home.is_absolute() && home.is_dir())
            .unwrap_or_else(|| "/".into()),
        environment: FOR_THE_SHELL
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        timeout: TIMEOUT,
        resolve,
    }
}

/// The shell of the user.
fn shell() -> PathBuf {
    let named =
        environment::variable("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
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

/// Our variables with those of the login shell, which win.
pub fn merge(ours: &[(OsString, OsString)], theirs: &Variables) -> Vec<(OsString, OsString)> {
    let taken: Vec<_> = theirs.all().iter().filter(|(name, value)| is_taken(name, value)).collect();
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

/// A `PATH` followed by the folders that only another has, so everything either finds is found.
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
        let mut all = merge(&ours, &Variables::new(variables(&theirs)));
        all.sort();
        let expected = [("A", "2"), ("B", "1"), ("C", "2"), ("PWD", "/x"), ("TERM", "dumb")];
        assert_eq!(all, variables(&expected));
    }

    #[test]
    fn folders_of_our_path_come_after_those_of_the_shell() {
        let ours = variables(&[("PATH", "/opt/mine:/bin")]);
        let all = merge(&ours, &Variables::new(variables(&[("PATH", "/home/me/bin:/bin")])));
        assert_eq!(all, variables(&[("PATH", "/home/me/bin:/bin:/opt/mine")]));
    }

    #[test]
    fn a_socket_that_went_with_the_shell_is_not_taken() {
        let ours = variables(&[("SSH_AUTH_SOCK", "/run/ours")]);
        let theirs = |value| Variables::new(variables(&[("SSH_AUTH_SOCK", value)]));
        assert_eq!(merge(&ours, &theirs("/no/such/socket")), ours);
        assert_eq!(
            merge(&ours, &theirs("/dev/null")),
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
