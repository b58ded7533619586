//! One order to the shell of a session: a command, and how to report its end.
//!
//! An order is text that the shell reads as its script, and the command is a quoted word in it. Nothing of it is kept
//! in the shell: the last exit code, and whether commands are traced, come back with the report and are written into
//! the next order. So nothing that a command sets, from variables to traps, is part of the text that runs next.
//!
//!     \builtin \eval 'the command' </dev/null; { … report …; } 2>/dev/null
//!
//! Replies begin with the token of their order, which nobody can know before. So no reply is taken for one to another
//! order.
//!
//! Between commands `-x` and `-v` are off, so that our own code is not traced. A command whose session had them on
//! turns them on again by itself. A trace that goes elsewhere, by `BASH_XTRACEFD`, still shows our code.

use super::dialect::Dialect;
use crate::resolved::quoted;

/// What a command leaves behind in its shell for the next one, as far as we have to restore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShellState {
    /// The exit code.
    pub code: u8,
    /// Whether `-x` is on.
    pub traced: bool,
    /// Whether `-v` is on.
    pub verbose: bool,
}

/// A command to run in a shell that the one before left in this state.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub text: &'a str,
    pub token: &'a str,
    pub before: ShellState,
}

/// What a shell replies.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command's tracing is on again.
    TracesAgain,
    /// The command has ended.
    Ended { after: ShellState, directory: String },
}

impl ShellState {
    pub fn shows_commands(self) -> bool {
        self.traced || self.verbose
    }
}

impl Order<'_> {
    /// The text for the shell, which is one line of its script: if the command turns on `-v`, the shell would show the
    /// lines that it reads after it.
    pub fn encode(&self, dialect: Dialect) -> String {
        let Self { text, before, .. } = *self;
        let eval = dialect.builtin("eval");
        let report = self.report(dialect);
        if !before.shows_commands() {
            let restore = self.restore_code(dialect);
            return format!("{restore}{eval} {} </dev/null; {report}\n", quoted(text));
        }
        let shown = match before.verbose && dialect.hides_evaluated_text() {
            true => format!("{} '%s\\n' {} >&2; ", dialect.builtin("printf"), quoted(text)),
            false => String::new(),
        };
        let text = quoted(&format!("{}{text}", self.trace_again(dialect)));
        format!("{shown}{eval} {text} </dev/null; {report}\n")
    }

    /// Restores `$?` without triggering a trap or `set -e`.
    fn restore_code(&self, dialect: Dialect) -> String {
        let (exit, nothing) = (dialect.special_builtin("exit"), dialect.special_builtin(":"));
        match self.before.code {
            0 => String::new(),
            // The most common one needs no other process.
            1 => format!("{} && {nothing}; ", dialect.builtin("false")),
            code => format!("({exit} {code}) && {nothing}; "),
        }
    }

    /// Turns tracing on again, untraced, and says so: after a syntax error in the command this does not run.
    fn trace_again(&self, dialect: Dialect) -> String {
        let (printf, set) = (dialect.builtin("printf"), dialect.special_builtin("set"));
        let (reply, restore) = (dialect.reply(), self.restore_code(dialect));
        // A line of its own shifts the command's line numbers.
        let (options, after) = match (self.before.traced, self.before.verbose) {
            (true, true) => ("-vx", dialect.after_verbose()),
            (false, true) => ("-v", dialect.after_verbose()),
            _ => ("-x", "; "),
        };
        let token = self.token;
        format!(
            "{{ {printf} '\\0{token}\\0' {reply}; {set} {options}; {restore}}} 2>/dev/null{after}"
        )
    }

    /// Reports the end of the command, and turns tracing off. A shell that cannot report has to end.
    fn report(&self, dialect: Dialect) -> String {
        let (printf, exit) = (dialect.builtin("printf"), dialect.special_builtin("exit"));
        let (set, reply, token) = (dialect.special_builtin("set"), dialect.reply(), self.token);
        format!(
            r#"{{ {printf} '\0{token} %d %s %s\0' "$?" "$-" "${{PWD-}}" {reply} || {exit}; {set} +vx; }} 2>/dev/null"#
        )
    }

    /// What a message of the shell means, if it is a reply to this order.
    pub fn read_reply(&self, message: &[u8]) -> Option<Reply> {
        let text = String::from_utf8_lossy(message.strip_prefix(self.token.as_bytes())?);
        if text.is_empty() {
            return Some(Reply::TracesAgain);
        }
        let mut fields = text.strip_prefix(' ')?.splitn(3, ' ');
        let (code, options) = (fields.next()?.parse().ok()?, fields.next()?);
        let (traced, verbose) = (options.contains('x'), options.contains('v'));
        let directory = fields.next()?.to_owned();
        Some(Reply::Ended { after: ShellState { code, traced, verbose }, directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: Order<'_> = Order {
        text: "it's",
        token: "t7",
        before: ShellState { code: 0, traced: false, verbose: false },
    };

    #[test]
    fn a_report_has_a_code_options_and_a_directory_that_may_have_blanks() {
        let after = ShellState { code: 3, traced: true, verbose: false };
        let ended = Reply::Ended { after, directory: "/a b\nc".to_owned() };
        assert_eq!(ORDER.read_reply(b"t7 3 hxB /a b\nc"), Some(ended));
        assert_eq!(ORDER.read_reply(b"t7"), Some(Reply::TracesAgain));
        for garbage in [&b""[..], b"0 h /a", b"t6 0 h /a", b"t7 x h /a", b"t7 0", b"t70 h /a"] {
            assert_eq!(ORDER.read_reply(garbage), None);
        }
    }

    #[test]
    fn a_command_is_one_word_of_its_order() {
        for (dialect, expected) in [
            (Dialect::Bash, r"\builtin \eval 'it'\''s' </dev/null; { \builtin \printf "),
            (Dialect::Posix, r"\command \eval 'it'\''s' </dev/null; { \command \printf "),
        ] {
            assert!(ORDER.encode(dialect).starts_with(expected), "{}", ORDER.encode(dialect));
        }
    }
}
