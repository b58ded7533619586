//! The words of the commands a plain text runs, one after the other.
//!
//! A plain text is one plain command, or several with `&&`, `||` and `;` between them. Plain means:
//! the command's name stands there letter by letter, and nothing in its arguments is anything but
//! text to the shell. Quotes are fine around arguments as long as nothing in them is expanded, now or
//! by a builtin that takes its arguments for code (`test -v 'a[$(rm x)]'`). File patterns are fine in
//! arguments: they become text, never a command.

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

/// Words that are no commands to the shell: the command is what follows, or something else.
const RESERVED: &[&str] = &[
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "until", "while",
];

/// Builtins that can change what a later command of the same text is.
const CHANGE_LATER: &[&str] = &[
    "alias", "bind", "complete", "declare", "enable", "export", "fc", "getopts", "hash", "let",
    "local", "read", "readonly", "set", "shopt", "typeset", "unalias", "unset", "wait",
];

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

/// The words of each command as the shell would pass them on, or why the text is not plain.
pub fn commands(script: &str) -> Result<Vec<Vec<String>>, Denial> {
    let commands = parts(script).into_iter().map(split).collect::<Result<Vec<_>, _>>()?;
    let later = |words: &&Vec<String>| commands.len() > 1 && changes_later(words);
    match commands.iter().find(later) {
        Some(words) => Err(Denial::NotUnderstood { part: words.join(" ") }),
        None => Ok(commands),
    }
}

fn changes_later(words: &[String]) -> bool {
    let name = words.first().map(|name| base_name(name)).unwrap_or_default();
    let sets = |argument: &String| argument.starts_with("-v");
    CHANGE_LATER.contains(&name) || (name == "printf" && words.iter().any(sets))
}

/// What stands between `&&`, `||` and `;`. A backslash could hide a quote from us, but nothing that
/// has one is plain.
fn parts(script: &str) -> Vec<&str> {
    let bytes = script.as_bytes();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        let operator = match &bytes[at..] {
            [b'&', b'&', ..] | [b'|', b'|', ..] => 2,
            [b';', ..] => 1,
            _ => 0,
        };
        if let b'\'' | b'"' = byte {
            // A quote without an end is left to whoever reads the part.
            let end = bytes[at + 1..].iter().position(|other| other == byte);
            at = end.map_or(bytes.len(), |end| at + end + 2);
        } else if operator > 0 {
            parts.push(&script[start..at]);
            at += operator;
            start = at;
        } else {
            at += 1;
        }
    }
    let last = &script[start..];
    // A text may end with a semicolon, and with nothing else that joins.
    if parts.is_empty() || !last.trim().is_empty() || !script.trim_end().ends_with(';') {
        parts.push(last);
    }
    parts
}

/// The words of a plain command, or why it is none.
fn split(script: &str) -> Result<Vec<String>, Denial> {
    let script = script.trim_matches([' ', '\t', '\n']);
    let end = script.find([' ', '\t']).unwrap_or(script.len());
    let (name, arguments) = script.split_at(end);
    if let Some(odd) = name.chars().find(|c| !is_name_character(*c)) {
        return Err(Denial::NotUnderstood { part: shown(odd) });
    }
    if RESERVED.contains(&name) {
        return Err(Denial::NotUnderstood { part: name.to_owned() });
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
