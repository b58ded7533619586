//! Shells that programs start: which texts are only a program and its arguments, and which variables change a shell.

use std::path::Path;

use mcpz_policy::{glob, is_builtin};

use super::listener::MAX_ARGUMENT;

/// Shells that take a command after `-c`, and that every system has or nobody adds.
const SHELLS: [&str; 6] =
    ["/bin/sh", "/usr/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/dash", "/usr/bin/dash"];

/// Builtins that are programs as well, and do no more than those. In bash, `test -v` and `printf -v` do.
const LIKE_PROGRAMS: [&str; 4] = ["echo", "true", "false", "pwd"];

/// Variables with which a shell runs something besides its text.
const CHANGE_SHELLS: [&str; 9] = [
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "BASHOPTS",
    "SHELLOPTS",
    "PS4",
    "PROMPT_COMMAND",
    // Over ssh, a bash of the first level reads `.bashrc`.
    "SSH_CLIENT",
    "SSH2_CLIENT",
];

pub fn is_shell(path: &Path) -> bool {
    SHELLS.iter().any(|shell| path.as_os_str() == *shell)
}

pub fn changes_shells(variable: &str) -> bool {
    CHANGE_SHELLS.iter().any(|pattern| glob(pattern, variable))
}

/// The program in a text that a shell gets with these arguments, if the shell finds nothing to do in it but to execute
/// that program.
pub fn plain_program(arguments: &[Vec<u8>]) -> Option<&str> {
    let (name, text) = match arguments {
        [name, option, dashes, text, ..] if option == b"-c" && dashes == b"--" => (name, text),
        [name, option, text, ..] if option == b"-c" => (name, text),
        _ => return None,
    };
    // A login shell reads files first.
    if name.starts_with(b"-") {
        return None;
    }
    // A longer one is cut.
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() < MAX_ARGUMENT)?;
    // Its own arguments are data.
    let text = text.strip_suffix(" \"$@\"").unwrap_or(text);
    let text = text.strip_prefix("exec ").unwrap_or(text);
    // Every other piece is between single quotes.
    let pieces = text.split('\'');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " /_.,:@%+-=".contains(c);
    let plain = pieces.clone().step_by(2).all(|piece| piece.chars().all(is_plain));
    let program = text.split(' ').find(|word| !word.is_empty())?;
    let is_program = !program.contains(['\'', '='])
        && (!is_builtin(program) || LIKE_PROGRAMS.contains(&program));
    (plain && pieces.count() % 2 == 1 && is_program).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Option<String> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        plain_program(&words).map(str::to_owned)
    }

    #[test]
    fn only_a_program_and_its_arguments_are_plain() {
        for (text, expected) in [
            ("less -R", Some("less")),
            ("exec ssh -W 'a b' host", Some("ssh")),
            ("vim -f \"$@\"", Some("vim")),
            ("echo x", Some("echo")),
            ("x= \"$@\"", None),
            ("ls; \"$@\"", None),
            ("command eval x", None),
            ("eval x", None),
            ("printf -v x y", None),
            ("test -v x", None),
            (". ./x", None),
            ("ls $x", None),
            ("ls 'a", None),
            ("'ls' x", None),
        ] {
            assert_eq!(program(&["sh", "-c", text]).as_deref(), expected, "{text}");
            assert_eq!(program(&["/bin/sh", "-c", "--", text]).as_deref(), expected, "{text}");
            assert_eq!(program(&["-sh", "-c", text]), None, "{text}");
        }
        assert_eq!(program(&["sh", "-lc", "ls"]), None);
    }
}
