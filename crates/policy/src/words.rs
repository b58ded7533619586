//! Finding the one command a plain text runs.
//!
//! Plain means: the command's name stands there letter by letter, and nothing in its arguments is
//! anything but text to the shell. Quotes are fine around arguments as long as nothing in them is
//! expanded, now or by a builtin that takes its arguments for code (`test -v 'a[$(rm x)]'`). File
//! patterns are fine in arguments: they become text, never a command.

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
    "coproc",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "fish",
    "find",
    "flock",
    "gawk",
    "ionice",
    "ksh",
    "mawk",
    "nice",
    "node",
    "nohup",
    "nsenter",
    "parallel",
    "perl",
    "php",
    "python",
    "python3",
    "rbash",
    "ruby",
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
    "trap",
    "unshare",
    "watch",
    "xargs",
    "zsh",
];

/// The first word of a plain command, or the part that is not plain.
pub fn command_word(script: &str) -> Result<&str, String> {
    let script = script.trim_matches([' ', '\t']);
    let end = script.find([' ', '\t']).unwrap_or(script.len());
    let (word, arguments) = script.split_at(end);
    if let Some(odd) = word.chars().find(|c| !is_name_character(*c)) {
        return Err(shown(odd));
    }
    if word.is_empty() {
        return Err(String::new());
    }
    match odd_argument(arguments) {
        Some(odd) => Err(odd),
        None => Ok(word),
    }
}

pub fn runs_another(name: &str) -> bool {
    RUN_ANOTHER.contains(&name.to_lowercase().as_str())
}

/// The first part of the arguments that is more than text.
fn odd_argument(arguments: &str) -> Option<String> {
    let mut rest = arguments.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let text = rest.as_str();
                let Some((quoted, after)) = text.split_once(c) else {
                    return Some(c.to_string());
                };
                if let Some(odd) = odd_in_quotes(c, quoted) {
                    return Some(odd);
                }
                rest = after.chars();
            }
            c if is_argument_character(c) => {}
            c => return Some(shown(c)),
        }
    }
    None
}

fn odd_in_quotes(quote: char, text: &str) -> Option<String> {
    let code: &[&str] = if quote == '"' { &["$", "`", "\\"] } else { &["$(", "`"] };
    let odd = code.iter().find(|part| text.contains(**part)).map(|part| part.to_string());
    odd.or_else(|| text.contains('\0').then(|| shown('\0')))
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || "_-./+@,:".contains(c)
}

fn is_argument_character(c: char) -> bool {
    is_name_character(c) || " \t%=^*?[]~!".contains(c)
}

fn shown(c: char) -> String {
    c.escape_debug().to_string()
}
