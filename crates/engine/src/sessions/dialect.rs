//! What differs between shells: how they are started, and the words of our own code.
//!
//! Every name is quoted, so that no alias replaces it, and stands behind the builtin that ignores functions of that
//! name.

use std::path::Path;

use mcpz_agent::REPLY_FD;

/// A kind of shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Bash,
    Zsh,
    /// `dash` and the like.
    Posix,
}

impl Dialect {
    /// The dialect of a shell, with links resolved.
    pub fn of(shell: &Path) -> Self {
        let real = std::fs::canonicalize(shell).unwrap_or_else(|_| shell.to_owned());
        match real.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            "bash" => Self::Bash,
            name if name.starts_with("zsh") => Self::Zsh,
            _ => Self::Posix,
        }
    }

    /// The shell and its arguments. It reads from its standard input what to do.
    pub fn command(self, shell: &Path) -> Vec<String> {
        let quiet: &[&str] = match self {
            Self::Bash => &["--norc", "--noprofile"],
            Self::Zsh => &["-f"],
            Self::Posix => &[],
        };
        let words = quiet.iter().chain(&["-s"]).map(ToString::to_string);
        [shell.to_string_lossy().into_owned()].into_iter().chain(words).collect()
    }

    /// How to call a builtin. In `sh`, `command` also keeps mistakes in an `eval` from ending the shell.
    pub fn builtin(self, name: &str) -> String {
        match self {
            Self::Bash | Self::Zsh => format!(r"\builtin \{name}"),
            Self::Posix => format!(r"\command \{name}"),
        }
    }

    /// How to call one of the builtins that no function can replace in `sh`.
    pub fn special_builtin(self, name: &str) -> String {
        match self {
            Self::Bash | Self::Zsh => self.builtin(name),
            Self::Posix => format!(r"\{name}"),
        }
    }

    /// The redirection of a reply. Most shells accept only one digit after `>&`.
    pub fn reply(self) -> String {
        match self {
            Self::Bash | Self::Zsh => format!(">&{REPLY_FD}"),
            Self::Posix => format!(">/dev/fd/{REPLY_FD}"),
        }
    }

    /// What separates code that turns on `-v` from the text to show. `bash` shows a text line by line.
    pub fn after_verbose(self) -> &'static str {
        match self {
            Self::Bash => "\n",
            Self::Zsh | Self::Posix => "; ",
        }
    }

    /// Whether `-v` does not show the text of an `eval`.
    pub fn hides_evaluated_text(self) -> bool {
        self == Self::Posix
    }
}
