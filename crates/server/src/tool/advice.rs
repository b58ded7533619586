//! What to do about a command that was not found or not permitted, as its shell says it.
//!
//! The exit code of a pipeline is that of its last part, so what the shell complains about counts,
//! whatever the exit code.

use mcpz_engine::{End, is_only_in_bash};

use super::Call;

/// What shells end with when a command cannot be executed.
const NOT_EXECUTABLE: i32 = 126;

/// The most that is repeated of what a shell says.
const LONGEST_NAME: usize = 200;

/// What to do, if there is something to be said.
pub fn advice(call: &Call<'_>, end: End, stderr: &str) -> Option<String> {
    if let Some(name) = missing(stderr) {
        return Some(about_missing(call, name));
    }
    match (end, denied(stderr)) {
        (End::Exited(NOT_EXECUTABLE), what) => Some(about_not_executable(what, stderr)),
        (End::Exited(0), _) | (_, None) => None,
        (_, Some(what)) => Some(format!(
            "permission was denied for `{what}`: check who may use it with `ls -ld`, choose a place of \
             your own, or ask for the right to"
        )),
    }
}

/// The name a shell did not find, out of its complaint: `sh: 1: gti: not found`.
fn missing(stderr: &str) -> Option<&str> {
    stderr.lines().rev().find_map(|line| {
        let before = line
            .strip_suffix(": command not found")
            .or_else(|| line.strip_suffix(": not found"))
            .or_else(|| line.strip_suffix(": No such file or directory"))?;
        let (shell, name) = before.rsplit_once(": ")?;
        // Programs complain in the same words about what they cannot find; shells name a line.
        let numbered = shell.rsplit_once(": ").map_or(shell, |(_, last)| last);
        let numbered = numbered.strip_prefix("line ").unwrap_or(numbered);
        let by_shell = !numbered.is_empty() && numbered.bytes().all(|byte| byte.is_ascii_digit());
        (by_shell && !name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
    })
}

fn about_missing(call: &Call<'_>, name: &str) -> String {
    if name.contains('/') {
        return format!("there is no file `{name}`");
    }
    if is_only_in_bash(name) {
        return format!(
            "`{name}` needs bash, and this shell is another: run it with `bash -c`, or start the server \
             with --shell bash"
        );
    }
    match call.engine.similar_commands(name) {
        similar if similar.is_empty() => format!("`{name}` is not on the PATH"),
        similar => format!("`{name}` is not on the PATH. Did you mean {}?", similar.join(", ")),
    }
}

/// What somebody was not permitted to use: `cat: /etc/shadow: Permission denied`.
fn denied(stderr: &str) -> Option<&str> {
    stderr.lines().rev().find_map(|line| {
        let before = line
            .strip_suffix(": Permission denied")
            .or_else(|| line.strip_suffix(": Operation not permitted"))?;
        let name =
            before.rsplit(": ").next()?.trim_matches(['\'', '"', '`', '\u{2018}', '\u{2019}']);
        let name = name.rsplit_once(" '").map_or(name, |(_, name)| name);
        (!name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
    })
}

fn about_not_executable(what: Option<&str>, stderr: &str) -> String {
    let what = what.map_or("the file".to_owned(), |name| format!("`{name}`"));
    let text = stderr.to_ascii_lowercase();
    if text.contains("is a directory") {
        return "a directory cannot be executed: name a file in it".to_owned();
    }
    if text.contains("exec format error") || text.contains("cannot execute binary file") {
        return format!(
            "{what} is for another kind of machine, or lacks a first line such as #!/bin/sh"
        );
    }
    if text.contains("bad interpreter") {
        return "the program named in the first line of the file is not there".to_owned();
    }
    format!(
        "{what} was found but may not be executed. Make it executable with chmod +x, run it with its \
         interpreter (sh FILE, python3 FILE), or check that it is not a directory"
    )
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
            ("/bin/sh: 1: [[: not found\nmore\n", Some("[[")),
            ("ls: x: No such file or directory\n", None),
            ("Error: module: not found\n", None),
        ] {
            assert_eq!(missing(stderr), name, "{stderr}");
        }
    }

    #[test]
    fn what_was_not_permitted_is_found_in_what_programs_say() {
        for (stderr, name) in [
            ("cat: /etc/shadow: Permission denied\n", Some("/etc/shadow")),
            ("/bin/sh: 1: ./x.sh: Permission denied\n", Some("./x.sh")),
            ("ls: cannot open directory '/root': Permission denied\n", Some("/root")),
            ("fine\n", None),
        ] {
            assert_eq!(denied(stderr), name, "{stderr}");
        }
    }
}
