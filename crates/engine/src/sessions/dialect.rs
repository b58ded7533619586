//! How a shell is made to carry out orders.

use std::path::Path;

use mcpz_agent::{ANSWERS_FD, ORDERS_FD};

/// How a shell reads orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// It can read up to a NUL: `bash`, `zsh`.
    Loop { zsh: bool },
    /// It carries out a script while that is being written: `dash` and its kin.
    Script,
}

/// The answer: the exit code and the directory. Tracing is not to show it, and a function of that name
/// is not to give it.
const ANSWER: &str = r#"printf '%d %s\0' "$_mcpz_c" "$PWD" >"#;

impl Dialect {
    /// The dialect of a shell, by what it really is.
    pub fn of(shell: &Path) -> Self {
        let real = std::fs::canonicalize(shell).unwrap_or_else(|_| shell.to_owned());
        match real.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            "bash" => Self::Loop { zsh: false },
            name if name.starts_with("zsh") => Self::Loop { zsh: true },
            _ => Self::Script,
        }
    }

    /// The shell and its arguments.
    pub fn command(self, shell: &Path) -> Vec<String> {
        let program = shell.to_string_lossy().into_owned();
        let name = shell.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let quiet: &[&str] = match self {
            Self::Loop { zsh: true } => &["-f"],
            Self::Loop { zsh: false } => &["--norc", "--noprofile"],
            Self::Script => &[],
        };
        let driver = match self {
            Self::Loop { .. } => format!(
                "_mcpz_c=0; _mcpz_q() {{ return $_mcpz_c; }}; \
                 while {{ IFS= read -r -d '' -u {ORDERS_FD} _mcpz_t; }} 2>/dev/null; do \
                 {{ _mcpz_q; }} 2>/dev/null; eval \"$_mcpz_t\"\n\
                 {{ _mcpz_c=$?; builtin {ANSWER}&{ANSWERS_FD}; }} 2>/dev/null; done"
            ),
            Self::Script => format!(". /dev/fd/{ORDERS_FD}"),
        };
        let quiet = quiet.iter().map(ToString::to_string);
        [program].into_iter().chain(quiet).chain(["-c".to_owned(), driver, name]).collect()
    }

    /// What has to be said before the first order.
    pub fn greeting(self) -> &'static str {
        match self {
            Self::Loop { .. } => "",
            Self::Script => "_mcpz_c=0; _mcpz_q() { return $_mcpz_c; }\n",
        }
    }

    /// A command as it is given to the shell.
    pub fn order(self, text: &str) -> Vec<u8> {
        match self {
            Self::Loop { .. } => [text.as_bytes(), b"\0"].concat(),
            // `command` keeps a mistake in the text from ending the shell.
            Self::Script => {
                let quoted = text.replace('\'', r"'\''");
                let order = format!(
                    "{{ _mcpz_q; }} 2>/dev/null\ncommand eval '{quoted}'\n\
                     {{ _mcpz_c=$?; command {ANSWER}/dev/fd/{ANSWERS_FD}; }} 2>/dev/null\n"
                );
                order.into_bytes()
            }
        }
    }
}

/// The exit code and the directory of an answer.
pub fn parse_answer(answer: &[u8]) -> Option<(i32, String)> {
    let text = String::from_utf8_lossy(answer.strip_suffix(b"\0")?);
    let (code, directory) = text.split_once(' ')?;
    Some((code.parse().ok()?, directory.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_code_and_a_directory_that_may_have_blanks() {
        assert_eq!(parse_answer(b"0 /a b\nc\0"), Some((0, "/a b\nc".to_owned())));
        for garbage in [&b""[..], b"0 /a", b"x /a\0", b"\0"] {
            assert_eq!(parse_answer(garbage), None);
        }
    }
}
