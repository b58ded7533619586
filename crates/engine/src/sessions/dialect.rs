//! How each kind of shell takes commands from a pipe, and reports their end.
//!
//! `bash` and `zsh` read commands up to a NUL byte and `eval` them. `dash` has no `read -d`, so it sources a script
//! that is still being written.
//!
//! Between commands `-x` and `-v` are off, so that our own code is not traced. A command whose session had them on
//! turns them on again by itself. A trace that goes elsewhere, by `BASH_XTRACEFD`, still shows our code.

use std::path::Path;

use mcpz_agent::{CONTROL_FD, REPLY_FD};

/// How a shell reads commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// It can read up to a NUL byte: `bash`, `zsh`.
    Loop { zsh: bool },
    /// It runs a script while that is being written: `dash` and the like.
    Script,
}

/// Defines the variables of the driver: the last exit code, and what turns tracing on again.
const PREPARE: &str = "_mcpz_c=0; _mcpz_o=; _mcpz_q() { return $_mcpz_c; }";

/// Restores `$?` without triggering a trap or `set -e`.
const RESTORE_STATUS: &str = "{ _mcpz_q && :; } 2>/dev/null";

/// Reports the exit code and the directory. It must not appear in a trace, nor call a function named `printf`.
const REPORT: &str = r#"printf '%d %s\0' "$_mcpz_c" "$PWD" >"#;

impl Dialect {
    /// The dialect of a shell, with links resolved.
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
            // The inner loop catches a `break` or `continue` outside of any loop.
            Self::Loop { .. } => format!(
                "{PREPARE}; while {{ IFS= read -r -d '' -u {CONTROL_FD} _mcpz_t; }} 2>/dev/null; do \
                 for _mcpz_l in 1; do {RESTORE_STATUS}; eval \"$_mcpz_o$_mcpz_t\"\ndone\n\
                 {{ _mcpz_c=$?; {}; builtin {REPORT}&{REPLY_FD}; }} 2>/dev/null; done",
                self.untrace()
            ),
            Self::Script => format!(". /dev/fd/{CONTROL_FD}"),
        };
        let quiet = quiet.iter().map(ToString::to_string);
        [program].into_iter().chain(quiet).chain(["-c".to_owned(), driver, name]).collect()
    }

    /// What the shell must read before the first command.
    pub fn prelude(self) -> String {
        match self {
            Self::Loop { .. } => String::new(),
            Self::Script => format!("{PREPARE}\n"),
        }
    }

    /// Encodes a command for the shell.
    pub fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Loop { .. } => [text.as_bytes(), b"\0"].concat(),
            // `command` keeps a syntax error in the text from ending the shell. Everything is on one line: if the text
            // turns on `-v`, the shell would show the lines it reads after it. It does not show the text itself, so we
            // print that.
            Self::Script => {
                let quoted = text.replace('\'', r"'\''");
                let line = format!(
                    "_mcpz_t='{quoted}'; \
                     case $_mcpz_o in *' -v'*) command printf '%s\\n' \"$_mcpz_t\" >&2;; esac; \
                     {RESTORE_STATUS}; command eval \"$_mcpz_o$_mcpz_t\"; {{ _mcpz_c=$?; {}; \
                     command {REPORT}/dev/fd/{REPLY_FD}; }} 2>/dev/null\n",
                    self.untrace()
                );
                line.into_bytes()
            }
        }
    }

    /// Turns tracing off after a command, and remembers how to turn it on again, untraced, before the next one. After a
    /// syntax error this does not run, and what was remembered stays.
    fn untrace(self) -> String {
        // `bash` shows each line of a text as it reads it, so ours must be a line of its own. Otherwise it shares the
        // first line, to keep line numbers right.
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
        // The others read none of our code between commands.
        let verbose = match self {
            Self::Loop { .. } => ":".to_owned(),
            Self::Script => note("-v", "; "),
        };
        let (both, trace) = (note("-vx", after_both), note("-x", "; "));
        format!("case $- in *v*x*|*x*v*) {both};; *x*) {trace};; *v*) {verbose};; esac")
    }
}

/// The exit code and the directory of a report.
pub fn parse_report(report: &[u8]) -> Option<(i32, String)> {
    let text = String::from_utf8_lossy(report.strip_suffix(b"\0")?);
    let (code, directory) = text.split_once(' ')?;
    Some((code.parse().ok()?, directory.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_code_and_a_directory_that_may_have_blanks() {
        assert_eq!(parse_report(b"0 /a b\nc\0"), Some((0, "/a b\nc".to_owned())));
        for garbage in [&b""[..], b"0 /a", b"x /a\0", b"\0"] {
            assert_eq!(parse_report(garbage), None);
        }
    }
}
