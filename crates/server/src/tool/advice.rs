//! Advice about a command that was not found or not permitted, read from what its shell says.
//!
//! The exit code of a pipeline is that of its last part, so a complaint of the shell counts whatever the exit code is.

use std::path::Path;

use mcpz_engine::{Absent, End, Engine};

use super::Call;

/// The exit code of a shell that could not execute a command.
const NOT_EXECUTABLE: i32 = 126;

/// The longest name that advice repeats.
const LONGEST_NAME: usize = 200;

/// Programs that start another one, and complain in their own name if they cannot.
const STARTERS: [&str; 10] =
    ["chroot", "chrt", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs"];

/// Why a program could not start that does not exist.
const NOT_FOUND: [&str; 4] =
    ["command not found", "not found", "No such file or directory", "required file not found"];

/// Why a program could not start that does exist.
const REFUSED: [&str; 3] = ["Permission denied", "Is a directory", "Exec format error"];

/// What precedes the name in a complaint.
const TRIED: [&str; 5] = [
    "cannot create ",
    "cannot open ",
    "failed to run command ",
    "failed to execute ",
    "can't execute ",
];

const QUOTES: [char; 5] = ['\'', '"', '`', '\u{2018}', '\u{2019}'];

/// A command that has ended, and what it printed to stderr.
pub struct EndedCommand<'a> {
    pub command: &'a str,
    /// Where it started.
    pub directory: &'a Path,
    pub end: End,
    pub stderr: &'a str,
}

/// A program that a shell, or a program that starts others, could not start, and why.
#[derive(Debug, PartialEq, Eq)]
struct Unstarted<'a> {
    name: &'a str,
    why: &'a str,
}

/// What to do about a command that did not find or was not allowed something, if there is a way.
pub async fn advice(call: &Call<'_>, ended: &EndedCommand<'_>) -> Option<String> {
    if let Some(interpreter) = bad_interpreter(ended.stderr) {
        return Some(about_interpreter(interpreter));
    }
    if let Some(missing) = unstarted(ended.stderr, &NOT_FOUND) {
        return Some(about_missing(call, ended, &missing).await);
    }
    if let End::Exited(NOT_EXECUTABLE) = ended.end
        && let Some(what) = unstarted(ended.stderr, &REFUSED)
    {
        return Some(about_refused(&what));
    }
    let denied = denied(ended.stderr).filter(|_| ended.end != End::Exited(0))?;
    Some(format!(
        "permission denied for `{denied}`: check its owner and mode with `ls -ld`, use a path you own, or ask \
         for access"
    ))
}

impl<'a> Unstarted<'a> {
    /// Reads a complaint such as `sh: 1: gti: not found` or `env: ‘gti’: No such file or directory`.
    fn read(line: &'a str) -> Option<Self> {
        let (before, why) = line.rsplit_once(": ")?;
        let before = [": cannot execute", ": cannot execute binary file"]
            .iter()
            .find_map(|said| before.strip_suffix(said))
            .unwrap_or(before);
        let (speaker, said) = before.rsplit_once(": ")?;
        let speaker = speaker.strip_suffix(": exec").unwrap_or(speaker);
        // Other programs complain in the same words about files they cannot find; only shells name a line.
        let number = speaker.rsplit_once(": ").map_or(speaker, |(_, last)| last);
        let number = number.strip_prefix("line ").unwrap_or(number);
        let by_shell = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let program = speaker.rsplit('/').next().unwrap_or(speaker);
        let name = if by_shell { said } else { bare(said).trim_matches(QUOTES) };
        // More words mean that it is about something else, such as a file to read from.
        let by_starter = STARTERS.contains(&program) && !name.contains(' ');
        let name = checked(name)?;
        let is_redirection = by_shell && bare(said) != said;
        ((by_shell || by_starter) && !is_redirection).then_some(Self { name, why })
    }
}

/// The last complaint that gives one of these reasons.
fn unstarted<'a>(stderr: &'a str, reasons: &[&str]) -> Option<Unstarted<'a>> {
    let mut all = stderr.lines().rev().filter_map(Unstarted::read);
    all.find(|unstarted| reasons.contains(&unstarted.why))
}

/// The interpreter in `bash: line 1: ./x: /nope: bad interpreter: No such file or directory`.
fn bad_interpreter(stderr: &str) -> Option<&str> {
    stderr.lines().rev().find_map(|line| {
        let before = line.strip_suffix(": bad interpreter: No such file or directory")?;
        checked(before.rsplit(": ").next()?)
    })
}

async fn about_missing(
    call: &Call<'_>,
    ended: &EndedCommand<'_>,
    missing: &Unstarted<'_>,
) -> String {
    let name = missing.name;
    if name.contains('/') {
        return about_missing_file(call, ended, missing).await;
    }
    if Engine::is_only_in_bash(name) {
        return format!(
            "`{name}` needs bash, but this shell is not bash: run it with `bash -c`, or start the server \
             with --shell bash"
        );
    }
    match call.engine.similar_commands(call.owner, name).await {
        similar if similar.is_empty() => format!("`{name}` is not on the PATH"),
        similar => format!("`{name}` is not on the PATH. Did you mean {}?", similar.join(", ")),
    }
}

async fn about_missing_file(
    call: &Call<'_>,
    ended: &EndedCommand<'_>,
    missing: &Unstarted<'_>,
) -> String {
    let name = missing.name;
    // After a `cd`, a relative name is not relative to where the command started.
    let moved = !name.starts_with('/') && ended.command.split_whitespace().any(|word| word == "cd");
    match call.engine.absent(call.owner, ended.directory.join(name)).await {
        Absent::Interpreter(interpreter) => about_interpreter(&call.masked(&interpreter)),
        Absent::File if !moved => format!("there is no file `{name}`"),
        Absent::File | Absent::Either => {
            format!("`{name}` does not exist, or the interpreter in its first line does not")
        }
    }
}

fn about_interpreter(name: &str) -> String {
    match name.strip_suffix('\r') {
        Some(name) => format!(
            "the first line of the script names `{name}` followed by a carriage return: remove carriage returns \
             with `sed -i 's/\\r$//' FILE`"
        ),
        None => format!(
            "the script's interpreter `{name}` does not exist: correct its first line, or run it with \
             another (sh FILE, python3 FILE)"
        ),
    }
}

/// What a program was not permitted to use, as in `cat: /etc/shadow: Permission denied`.
fn denied(stderr: &str) -> Option<&str> {
    stderr.lines().rev().find_map(|line| {
        let before = line
            .strip_suffix(": Permission denied")
            .or_else(|| line.strip_suffix(": Operation not permitted"))?;
        let before = before.strip_suffix(": cannot execute").unwrap_or(before);
        named(before.rsplit(": ").next()?)
    })
}

/// The name in what a program says it could not do, as in `cannot touch '/x'` or `cannot create /x`.
fn named(said: &str) -> Option<&str> {
    let quoted = said.strip_suffix(QUOTES).and_then(|said| said.rsplit_once(QUOTES));
    checked(quoted.map_or_else(|| bare(said), |(_, name)| name))
}

fn bare(said: &str) -> &str {
    TRIED.iter().find_map(|tried| said.strip_prefix(tried)).unwrap_or(said)
}

/// The name, if it is short enough to repeat.
fn checked(name: &str) -> Option<&str> {
    (!name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
}

fn about_refused(what: &Unstarted<'_>) -> String {
    let name = what.name;
    match what.why {
        "Is a directory" => "a directory cannot be executed: name a file in it".to_owned(),
        "Exec format error" => {
            format!(
                "`{name}` was built for another architecture, or lacks a first line such as #!/bin/sh"
            )
        }
        _ => format!(
            "`{name}` exists but is not executable. Make it executable with chmod +x, run it with its \
             interpreter (sh FILE, python3 FILE), or check that it is not a directory"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_name_is_found_in_what_shells_say() {
        for (stderr, name) in [
            ("/bin/sh: 1: gti: not found\n", Some("gti")),
            ("bash: line 1: gti: command not found\n", Some("gti")),
            ("bash: line 3: ./gone.sh: No such file or directory\n", Some("./gone.sh")),
            ("bash: line 1: ./a b: cannot execute: required file not found\n", Some("./a b")),
            ("/bin/sh: 1: [[: not found\nmore\n", Some("[[")),
            ("/bin/sh: 1: exec: gti: not found\n", Some("gti")),
            ("env: \u{2018}gti\u{2019}: No such file or directory\n", Some("gti")),
            ("/usr/bin/env: 'pyhton': No such file or directory\n", Some("pyhton")),
            ("nohup: failed to run command 'gti': No such file or directory\n", Some("gti")),
            ("setsid: failed to execute gti: No such file or directory\n", Some("gti")),
            ("env: can't execute 'gti': No such file or directory\n", Some("gti")),
            ("xargs: gti: No such file or directory\n", Some("gti")),
            ("ls: x: No such file or directory\n", None),
            ("bash: line 1: cd: /nope: No such file or directory\n", None),
            ("xargs: Cannot open input file \u{2018}x\u{2019}: No such file or directory\n", None),
            ("env: cannot change directory to 'x': No such file or directory\n", None),
            ("Error: module: not found\n", None),
        ] {
            let found = unstarted(stderr, &NOT_FOUND);
            assert_eq!(found.map(|missing| missing.name), name, "{stderr}");
        }
    }

    #[test]
    fn what_could_not_be_executed_is_found_in_what_shells_say() {
        let missing = "bash: line 1: ./x: /nope: bad interpreter: No such file or directory\n";
        assert_eq!(bad_interpreter(missing), Some("/nope"));
        for (stderr, name) in [
            ("/bin/sh: 1: ./x.sh: Permission denied\n", Some("./x.sh")),
            ("bash: line 1: /: Is a directory\n", Some("/")),
            (
                "bash: line 1: exec: /etc/passwd: cannot execute: Permission denied\n",
                Some("/etc/passwd"),
            ),
            ("bash: line 1: ./e: cannot execute binary file: Exec format error\n", Some("./e")),
            ("nice: \u{2018}./d\u{2019}: Permission denied\n", Some("./d")),
            ("/bin/sh: 1: cannot create /x: Permission denied\n", None),
            ("cat: /etc/shadow: Permission denied\n", None),
            ("", None),
        ] {
            let found = unstarted(stderr, &REFUSED);
            assert_eq!(found.map(|refused| refused.name), name, "{stderr}");
        }
    }

    #[test]
    fn what_was_not_permitted_is_found_in_what_programs_say() {
        for (stderr, name) in [
            ("cat: /etc/shadow: Permission denied\n", Some("/etc/shadow")),
            ("/bin/sh: 1: ./x.sh: Permission denied\n", Some("./x.sh")),
            ("/bin/sh: 1: cannot create /sys/kernel/x: Permission denied\n", Some("/sys/kernel/x")),
            ("/bin/sh: 1: cannot open /etc/shadow: Permission denied\n", Some("/etc/shadow")),
            ("ls: cannot open directory '/root': Permission denied\n", Some("/root")),
            ("mkdir: cannot create directory \u{2018}/x\u{2019}: Permission denied\n", Some("/x")),
            ("mv: cannot move 'a' to '/x': Permission denied\n", Some("/x")),
            ("fine\n", None),
        ] {
            assert_eq!(denied(stderr), name, "{stderr}");
        }
    }
}
