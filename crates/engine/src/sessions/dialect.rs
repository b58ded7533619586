//! How a shell is made to carry out orders.

use std::path::Path;

use mcpz_agent::{CONTROL_FD, REPLY_FD};

/// How a shell reads orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// It can read up to a NUL: `bash`, `zsh`.
    Loop { zsh: bool },
    /// It carries out a script while that is being written: `dash` and its kin.
    Script,
}

/// What is known before the first order: the last exit code, and how to trace again.
const PREPARE: &str = "_mcpz_c=0; _mcpz_o=; _mcpz_q() { return $_mcpz_c; }";

/// Has the last exit code be the last one again, without a trap or `set -e` taking notice.
const RECALL: &str = "{ _mcpz_q && :; } 2>/dev/null";

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
            // The inner loop is for a `break` or `continue` that stands alone.
            Self::Loop { .. } => format!(
                "{PREPARE}; while {{ IFS= read -r -d '' -u {CONTROL_FD} _mcpz_t; }} 2>/dev/null; do \
                 for _mcpz_l in 1; do {RECALL}; eval \"$_mcpz_o$_mcpz_t\"\ndone\n\
                 {{ _mcpz_c=$?; {}; builtin {ANSWER}&{REPLY_FD}; }} 2>/dev/null; done",
                self.untrace()
            ),
            Self::Script => format!(". /dev/fd/{CONTROL_FD}"),
        };
        let quiet = quiet.iter().map(ToString::to_string);
        [program].into_iter().chain(quiet).chain(["-c".to_owned(), driver, name]).collect()
    }

    /// What has to be said before the first order.
    pub fn greeting(self) -> String {
        match self {
            Self::Loop { .. } => String::new(),
            Self::Script => format!("{PREPARE}\n"),
        }
    }

    /// A command as it is given to the shell.
    pub fn order(self, text: &str) -> Vec<u8> {
        match self {
            Self::Loop { .. } => [text.as_bytes(), b"\0"].concat(),
            // `command` keeps a mistake in the text from ending the shell. All of it is one line: what is
            // read after the text would be shown if that turns `-v` on, and the text by itself is not.
            Self::Script => {
                let quoted = text.replace('\'', r"'\''");
                let order = format!(
                    "_mcpz_t='{quoted}'; \
                     case $_mcpz_o in *' -v'*) command printf '%s\\n' \"$_mcpz_t\" >&2;; esac; \
                     {RECALL}; command eval \"$_mcpz_o$_mcpz_t\"; {{ _mcpz_c=$?; {}; \
                     command {ANSWER}/dev/fd/{REPLY_FD}; }} 2>/dev/null\n",
                    self.untrace()
                );
                order.into_bytes()
            }
        }
    }

    /// Turns tracing off after a command, and notes what turns it on again, unseen, before the next
    /// one. A text that cannot be read does not get that far, and leaves the note as it is.
    fn untrace(self) -> String {
        // `bash` shows each line of a text as it reads it: ours must be another one. Otherwise it is the
        // same, so that lines are counted as they are.
        let (builtin, after_both) = match self {
            Self::Loop { zsh: false } => ("builtin", "\n"),
            Self::Loop { zsh: true } => ("builtin", "; "),
            Self::Script => ("command", "; "),
        };
        let note = |options: &str, after: &str| {
            let again =
                format!("{{ _mcpz_o=; {builtin} set {options}; _mcpz_q && :; }} 2>/dev/null");
            format!("_mcpz_o='{again}{after}'; {builtin} set +vx")
        };
        // The others read nothing of ours while they carry out orders.
        let verbose = match self {
            Self::Loop { .. } => ":".to_owned(),
            Self::Script => note("-v", "; "),
        };
        let (both, trace) = (note("-vx", after_both), note("-x", "; "));
        format!("case $- in *v*x*|*x*v*) {both};; *x*) {trace};; *v*) {verbose};; esac")
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
