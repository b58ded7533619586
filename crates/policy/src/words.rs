//! Finding the one command a plain text runs.
//!
//! Plain means: the command's name stands there letter by letter, and nothing in its arguments is
//! anything but text to the shell. Quotes are fine around arguments as long as nothing in them is
//! expanded, now or by a builtin that takes its arguments for code (`test -v 'a[$(rm x)]'`). File
//! patterns are fine in arguments: they become text, never a command.

use crate::Denial;

/// Commands that run the command their arguments name.
const RUN_ANOTHER: &[&str] = &[
    ".",
    "ash",
    "awk",
    "bash",
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "compgen",
    "coproc",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "find",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "i386",
    "ionice",
    "ksh",
    "linux32",
    "linux64",
    "make",
    "mapfile",
    "mawk",
    "nice",
    "noglob",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "prlimit",
    "rbash",
    "readarray",
    "repeat",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sh",
    "source",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "time",
    "timeout",
    "toybox",
    "trap",
    "uname26",
    "unshare",
    "watch",
    "x86_64",
    "xargs",
    "zsh",
];

/// Interpreters and loaders, which come with versions in their names.
const RUN_ANOTHER_AS: &[&str] = &["ld-", "ld.so", "lua", "node", "perl", "php", "python", "ruby"];

/// Variables that only change how a program speaks.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "TERM",
    "TZ",
];

/// The first word of a plain command, or why it is none.
pub fn command_word(script: &str) -> Result<&str, Denial> {
    let script = script.trim_matches([' ', '\t', '\n']);
    let end = script.find([' ', '\t']).unwrap_or(script.len());
    let (word, arguments) = script.split_at(end);
    if word.is_empty() {
        return Err(Denial::Nothing);
    }
    let odd = word.chars().find(|c| !is_name_character(*c)).map(shown);
    let odd = odd.or_else(|| odd_path(word)).or_else(|| odd_argument(arguments));
    match odd {
        Some(part) => Err(Denial::NotUnderstood { part }),
        None => Ok(word),
    }
}

pub fn runs_another(name: &str) -> bool {
    let name = name.to_lowercase();
    RUN_ANOTHER.contains(&name.as_str())
        || RUN_ANOTHER_AS.iter().any(|start| name.starts_with(start))
}

pub fn is_harmless_variable(name: &str) -> bool {
    HARMLESS.contains(&name) || name.strip_prefix("LC_").is_some_and(|rest| !rest.contains('%'))
}

pub fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Parts of a path that make it another than it seems.
fn odd_path(word: &str) -> Option<String> {
    let parts = word.split('/').skip(1);
    let odd = |part: &&str| part.is_empty() || *part == "." || *part == "..";
    let ends = |word: &str| word == ".." || word.starts_with("../");
    (ends(word) || parts.clone().any(|part| odd(&part))).then(|| word.to_owned())
}

/// The first part of the arguments that is more than text.
fn odd_argument(arguments: &str) -> Option<String> {
    // What the shell makes of the word so far: pieces in quotes add up to one.
    let mut word = String::new();
    let mut rest = arguments.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let Some((quoted, after)) = rest.as_str().split_once(c) else {
                    return Some(c.to_string());
                };
                if c == '"'
                    && let Some(odd) = quoted.chars().find(|c| "$`\\".contains(*c))
                {
                    return Some(shown(odd));
                }
                word.push_str(quoted);
                rest = after.chars();
            }
            ' ' | '\t' => word.clear(),
            c if is_argument_character(c) => word.push(c),
            c => return Some(shown(c)),
        }
        if let Some(code) = ["$(", "${", "`", "\0"].into_iter().find(|code| word.contains(code)) {
            return Some(code.escape_debug().to_string());
        }
    }
    None
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || "_-./+@,:".contains(c)
}

fn is_argument_character(c: char) -> bool {
    is_name_character(c) || "%=^*?[]~!".contains(c)
}

fn shown(c: char) -> String {
    c.escape_debug().to_string()
}
