//! The words of the one command a plain text runs.
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
    "QWEN_CODE",
    "TERM",
    "TZ",
];

/// The words of a plain command as the shell would pass them on, or why it is none.
pub fn split(script: &str) -> Result<Vec<String>, Denial> {
    let script = script.trim_matches([' ', '\t', '\n']);
    let end = script.find([' ', '\t']).unwrap_or(script.len());
    let (name, arguments) = script.split_at(end);
    if let Some(odd) = name.chars().find(|c| !is_name_character(*c)) {
        return Err(Denial::NotUnderstood { part: shown(odd) });
    }
    let arguments = split_arguments(arguments).map_err(|part| Denial::NotUnderstood { part })?;
    Ok([vec![name.to_owned()], arguments].concat())
}

/// The name of the program, if it can be told from its path.
pub fn program(words: &[String]) -> Result<&str, Denial> {
    let word = words.first().filter(|word| !word.is_empty()).ok_or(Denial::Nothing)?;
    match odd_path(word) {
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

/// Takes arguments apart. The error is the first part that is more than text.
fn split_arguments(arguments: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // What the shell makes of the word so far: pieces in quotes add up to one.
    let mut word: Option<String> = None;
    let mut rest = arguments.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let (quoted, after) = rest.as_str().split_once(c).ok_or_else(|| c.to_string())?;
                if c == '"'
                    && let Some(odd) = quoted.chars().find(|c| "$`\\".contains(*c))
                {
                    return Err(shown(odd));
                }
                word.get_or_insert_default().push_str(quoted);
                rest = after.chars();
            }
            ' ' | '\t' => words.extend(word.take()),
            c if is_argument_character(c) => word.get_or_insert_default().push(c),
            c => return Err(shown(c)),
        }
        let code = |code: &&str| word.as_ref().is_some_and(|word| word.contains(code));
        if let Some(code) = ["$(", "${", "`", "\0"].iter().find(|part| code(part)) {
            return Err(code.escape_debug().to_string());
        }
    }
    words.extend(word);
    Ok(words)
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
