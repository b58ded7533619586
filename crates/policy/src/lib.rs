//! Which commands may run.
//!
//! Pure: a script's text goes in, a [`Verdict`] comes out; no file, process or environment is
//! looked at. Patterns are matched against a command's first word, so a text that could run more
//! than one command, or a command other than the one it shows, is refused whenever there are
//! patterns at all: what is not understood is not allowed.

mod pattern;
mod words;

pub use pattern::Pattern;

/// What may run. Without patterns, everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// If there are any, a command must match one of them.
    pub allow: Vec<Pattern>,
    /// A command that matches one of them is refused, whatever else matches.
    pub deny: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny(Denial),
}

/// Why a command was refused, in words for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The word matches a pattern of the deny list.
    Denied { word: String, pattern: String },
    /// The word matches no pattern of the allow list.
    NotAllowed { word: String },
    /// This part of the text could hide another command.
    NotUnderstood { part: String },
    /// The word runs the command its arguments name, past the deny list.
    RunsAnother { word: String },
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied { word, pattern } => {
                write!(f, "`{word}` matches the deny pattern `{pattern}`")
            }
            Self::NotAllowed { word } => {
                write!(f, "`{word}` matches no pattern of the allow list")
            }
            Self::NotUnderstood { part } => write!(
                f,
                "`{part}` is shell syntax, which is refused while commands are restricted; \
                 send one plain command"
            ),
            Self::RunsAnother { word } => {
                write!(f, "`{word}` runs other commands, which a deny list cannot see")
            }
        }
    }
}

impl Policy {
    /// Judges a script for a shell.
    pub fn judge(&self, script: &str) -> Verdict {
        match self.objection(script) {
            None => Verdict::Allow,
            Some(denial) => Verdict::Deny(denial),
        }
    }

    fn objection(&self, script: &str) -> Option<Denial> {
        if self.allow.is_empty() && self.deny.is_empty() {
            return None;
        }
        let word = match words::command_word(script) {
            Ok(word) => word,
            Err(part) => return Some(Denial::NotUnderstood { part }),
        };
        let name = base_name(word);
        let denied = |pattern: &&Pattern| pattern.matches(word) || pattern.matches(name);
        if let Some(pattern) = self.deny.iter().find(denied) {
            let (word, pattern) = (word.to_owned(), pattern.to_string());
            return Some(Denial::Denied { word, pattern });
        }
        // Only the word as it stands: `./ls` is not `ls`.
        let allowed = self.allow.iter().any(|pattern| pattern.matches(word));
        if !allowed && !self.allow.is_empty() {
            return Some(Denial::NotAllowed { word: word.to_owned() });
        }
        if !allowed && words::runs_another(name) {
            return Some(Denial::RunsAnother { word: word.to_owned() });
        }
        None
    }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patterns(list: &str) -> Vec<Pattern> {
        Pattern::list(list)
    }

    fn allow(list: &str) -> Policy {
        Policy { allow: patterns(list), ..Policy::default() }
    }

    fn deny(list: &str) -> Policy {
        Policy { deny: patterns(list), ..Policy::default() }
    }

    #[test]
    fn without_patterns_everything_is_allowed() {
        let anything = "rm -rf / ; :(){ :|:& };:";
        assert_eq!(Policy::default().judge(anything), Verdict::Allow);
    }

    #[test]
    fn an_allow_list_refuses_what_is_not_on_it() {
        let policy = allow("ls*, cat*,echo*");
        for fine in [
            "ls",
            "ls -la /tmp",
            "lsblk",
            "  cat file.txt",
            "echo 'a; b' \"c | d\"",
            "ls *.rs ~ ! '$1'",
        ] {
            assert_eq!(policy.judge(fine), Verdict::Allow, "{fine}");
        }
        for bad in ["rm x", "./ls", "/tmp/ls", "sudo ls", "", "   "] {
            assert_ne!(policy.judge(bad), Verdict::Allow, "{bad}");
        }
    }

    #[test]
    fn a_deny_list_refuses_by_name_at_any_path() {
        let policy = deny("rm*,sudo");
        for bad in ["rm x", "rmdir x", "/bin/rm x", "../bin/rm x", "sudo ls", "RM x"] {
            assert_ne!(policy.judge(bad), Verdict::Allow, "{bad}");
        }
        for fine in ["ls rm", "sudoedit x", "git rm x"] {
            assert_eq!(policy.judge(fine), Verdict::Allow, "{fine}");
        }
    }

    #[test]
    fn deny_wins_over_allow() {
        let policy = Policy { allow: patterns("*"), deny: patterns("rm") };
        assert_eq!(
            policy.judge("rm x"),
            Verdict::Deny(Denial::Denied { word: "rm".into(), pattern: "rm".into() })
        );
        assert_eq!(policy.judge("ls"), Verdict::Allow);
    }

    #[test]
    fn nothing_slips_through_as_shell_syntax() {
        let policy = deny("rm*");
        for bad in [
            "ls; rm x",
            "ls\nrm x",
            "ls & rm x",
            "ls | rm x",
            "ls $(rm x)",
            "ls `rm x`",
            "ls \"$(rm x)\"",
            "ls \"`rm x`\"",
            "r\\m x",
            "'r'm x",
            "\"rm\" x",
            "X=1 rm x",
            "{ rm x; }",
            "(rm x)",
            "$X x",
            "/bin/r? x",
            "! rm x",
            "ls > x",
            "ls <(rm x)",
            "ls 'unclosed",
            "test -v 'a[$(rm x)]'",
            "ls {rm,x}",
            "ls # rm",
            "~/rm x",
            "ls\0",
        ] {
            assert!(
                matches!(policy.judge(bad), Verdict::Deny(Denial::NotUnderstood { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_deny_list_refuses_commands_that_run_others() {
        let policy = deny("rm*");
        for bad in ["env rm x", "sh -c 'rm x'", "xargs rm", "eval rm x", "time rm x", "sudo rm x"] {
            let verdict = policy.judge(bad);
            assert!(matches!(verdict, Verdict::Deny(Denial::RunsAnother { .. })), "{bad}");
        }
    }

    #[test]
    fn a_command_that_runs_others_can_be_allowed_by_name() {
        let policy = Policy { allow: patterns("find*"), deny: patterns("rm*") };
        assert_eq!(policy.judge("find . -name '*.rs'"), Verdict::Allow);
    }

    proptest! {
        #[test]
        fn judging_never_panics_and_a_denied_first_word_never_passes(tail in ".*") {
            let policy = deny("rm");
            policy.judge(&tail);
            prop_assert_ne!(policy.judge(&format!("rm {tail}")), Verdict::Allow);
        }
    }
}
