//! Which commands may run.
//!
//! Pure: a script's text and the variables it is to have go in, a [`Verdict`] comes out; no file,
//! process or environment is looked at. Patterns are matched against the first words of each command
//! in a chain, so a text that could run a command other than those it shows is refused whenever there
//! are patterns at all: what is not understood is not allowed.

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The word matches a pattern of the deny list.
    Denied { word: String, pattern: String },
    /// The word matches no pattern of the allow list.
    NotAllowed { word: String },
    /// There is nothing to run.
    Nothing,
    /// The variable could change what the command does, or which command it is.
    Variable { name: String },
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
            Self::Nothing => f.write_str("there is no command in it"),
            Self::Variable { name } => {
                write!(f, "the variable `{name}` could change which command runs")
            }
            Self::NotUnderstood { part } => write!(
                f,
                "`{part}` is shell syntax, which is refused while commands are restricted; \
                 send plain commands, with &&, || or ; between them"
            ),
            Self::RunsAnother { word } => {
                write!(f, "`{word}` runs other commands, which a deny list cannot see")
            }
        }
    }
}

impl Policy {
    /// Judges a script for a shell, and the names of the variables that are set for it.
    pub fn judge<'a>(&self, script: &str, variables: impl IntoIterator<Item = &'a str>) -> Verdict {
        self.verdict(|| words::commands(script), variables)
    }

    /// Judges a program and its arguments, which no shell will read.
    pub fn judge_words<'a>(
        &self,
        words: &[String],
        variables: impl IntoIterator<Item = &'a str>,
    ) -> Verdict {
        self.verdict(|| Ok(vec![words.to_vec()]), variables)
    }

    fn verdict<'a>(
        &self,
        commands: impl FnOnce() -> Result<Vec<Vec<String>>, Denial>,
        variables: impl IntoIterator<Item = &'a str>,
    ) -> Verdict {
        if self.allow.is_empty() && self.deny.is_empty() {
            return Verdict::Allow;
        }
        let check_all =
            |commands: Vec<Vec<String>>| commands.iter().try_for_each(|words| self.check(words));
        let judged = commands().and_then(check_all);
        match judged.and_then(|()| check_variables(variables)) {
            Ok(()) => Verdict::Allow,
            Err(denial) => Verdict::Deny(denial),
        }
    }

    fn check(&self, words: &[String]) -> Result<(), Denial> {
        let word = words::program(words)?;
        let name = words::base_name(word);
        if let Some(pattern) = self.deny.iter().find(|pattern| pattern.covers(words)) {
            let (word, pattern) = (word.to_owned(), pattern.to_string());
            return Err(Denial::Denied { word, pattern });
        }
        // Only the word as it stands: `./ls` is not `ls`.
        let mut allowing = self.allow.iter().filter(|pattern| pattern.matches(words)).peekable();
        if allowing.peek().is_none() && !self.allow.is_empty() {
            return Err(Denial::NotAllowed { word: word.to_owned() });
        }
        let named = allowing.any(Pattern::names_something);
        if !self.deny.is_empty() && !named && words::runs_another(name) {
            return Err(Denial::RunsAnother { word: word.to_owned() });
        }
        Ok(())
    }
}

fn check_variables<'a>(variables: impl IntoIterator<Item = &'a str>) -> Result<(), Denial> {
    match variables.into_iter().find(|name| !words::is_harmless_variable(name)) {
        Some(name) => Err(Denial::Variable { name: name.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judge(policy: &Policy, script: &str) -> Verdict {
        policy.judge(script, [])
    }

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
        assert_eq!(judge(&Policy::default(), anything), Verdict::Allow);
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
            assert_eq!(judge(&policy, fine), Verdict::Allow, "{fine}");
        }
        for bad in ["rm x", "./ls", "/tmp/ls", "sudo ls", "", "   ", "lsdir/../../bin/rm", "ls/x"] {
            assert_ne!(judge(&policy, bad), Verdict::Allow, "{bad}");
        }
    }

    #[test]
    fn a_deny_list_refuses_by_name_at_any_path() {
        let policy = deny("rm*,sudo");
        for bad in ["rm x", "rmdir x", "/bin/rm x", "./bin/rm x", "sudo ls", "RM x"] {
            assert_ne!(judge(&policy, bad), Verdict::Allow, "{bad}");
        }
        for fine in ["ls rm", "sudoedit x", "git rm x"] {
            assert_eq!(judge(&policy, fine), Verdict::Allow, "{fine}");
        }
    }

    #[test]
    fn deny_wins_over_allow() {
        let policy = Policy { allow: patterns("*"), deny: patterns("rm") };
        assert_eq!(
            judge(&policy, "rm x"),
            Verdict::Deny(Denial::Denied { word: "rm".into(), pattern: "rm".into() })
        );
        assert_eq!(judge(&policy, "ls"), Verdict::Allow);
    }

    #[test]
    fn each_command_of_a_chain_is_judged() {
        let policy =
            Policy { allow: patterns("ls,echo,git,printf,hash"), deny: patterns("git push") };
        for fine in [
            "ls && echo done",
            "ls -l || echo 'none; or few && no'",
            "echo a;echo b ; ls;",
            "git status && git log; printf '%s' x",
        ] {
            assert_eq!(judge(&policy, fine), Verdict::Allow, "{fine}");
        }
        for bad in [
            "ls && rm x",
            "rm x || ls",
            "ls;rm x",
            "ls; rm x",
            "git status && git push",
            "ls &&",
            "&& ls",
            "ls;;ls",
            "ls;;",
            ";",
            "ls & ls",
            "ls && if ls",
            "then rm x",
            "ls \"a\\\"; rm x\"",
            "echo 'a; ls",
            "hash -p /bin/rm ls; ls x",
            "printf -v PATH /tmp; ls",
        ] {
            assert_ne!(judge(&policy, bad), Verdict::Allow, "{bad}");
        }
        assert_eq!(judge(&policy, "hash -r"), Verdict::Allow, "it changes nothing later");
    }

    #[test]
    fn nothing_slips_through_as_shell_syntax() {
        let policy = deny("rm*");
        for bad in [
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
            "test -v 'a[$''(rm x)]'",
            "test -v 'a[$'\"(rm x)]\"",
            "test -v 'a[${X@P}]'",
            "../bin/rm x",
            "/usr//bin/rm x",
            "ls {rm,x}",
            "ls # rm",
            "~/rm x",
            "ls\0",
        ] {
            assert!(
                matches!(judge(&policy, bad), Verdict::Deny(Denial::NotUnderstood { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_deny_list_refuses_commands_that_run_others() {
        let policy = deny("rm*");
        for bad in [
            "env rm x",
            "sh -c 'rm x'",
            "xargs rm",
            "eval rm x",
            "time rm x",
            "sudo rm x",
            "python3.12 -c x",
            "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
            "prlimit rm x",
        ] {
            let verdict = judge(&policy, bad);
            assert!(matches!(verdict, Verdict::Deny(Denial::RunsAnother { .. })), "{bad}");
        }
    }

    #[test]
    fn a_pattern_of_several_words_is_about_the_arguments_too() {
        let policy = deny("rm -rf,git push");
        for bad in ["rm -rf x", "rm -fr x", "rm -r -f x", "git push", "git -C . push origin"] {
            assert_ne!(judge(&policy, bad), Verdict::Allow, "{bad}");
        }
        for fine in ["rm -r x", "rm x", "git status", "git log --grep=push"] {
            assert_eq!(judge(&policy, fine), Verdict::Allow, "{fine}");
        }
        let policy = allow("git status,npm");
        assert_eq!(judge(&policy, "git status -s"), Verdict::Allow);
        assert_ne!(judge(&policy, "git push status"), Verdict::Allow);
    }

    #[test]
    fn words_that_no_shell_reads_are_judged_as_they_are() {
        let judge = |policy: &Policy, words: &[&str]| {
            policy.judge_words(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), [])
        };
        assert_eq!(judge(&allow("echo"), &["echo", "$(rm x); `ls`"]), Verdict::Allow);
        assert_ne!(judge(&deny("rm"), &["/bin/rm", "x"]), Verdict::Allow);
        assert_ne!(judge(&deny("rm"), &["env", "rm", "x"]), Verdict::Allow);
        assert_ne!(judge(&deny("rm"), &[]), Verdict::Allow);
    }

    #[test]
    fn a_denied_path_denies_the_program_it_names() {
        let policy = deny("/usr/bin/touch");
        for bad in ["touch x", "/usr/bin/touch x", "/bin/touch x"] {
            assert_ne!(judge(&policy, bad), Verdict::Allow, "{bad}");
        }
    }

    #[test]
    fn allowing_everything_does_not_hide_a_command_from_the_deny_list() {
        let policy = Policy { allow: patterns("*"), deny: patterns("rm") };
        assert_ne!(judge(&policy, "env rm x"), Verdict::Allow);
    }

    #[test]
    fn a_variable_that_could_change_the_command_is_refused() {
        let policy = allow("ls");
        let judge = |name| policy.judge("ls", [name]);
        for fine in ["LANG", "LC_ALL", "TZ", "NO_COLOR"] {
            assert_eq!(judge(fine), Verdict::Allow, "{fine}");
        }
        for bad in ["PATH", "BASH_ENV", "BASH_FUNC_ls%%", "LD_PRELOAD", "ENV", "X"] {
            assert_eq!(judge(bad), Verdict::Deny(Denial::Variable { name: bad.into() }));
        }
        assert_eq!(Policy::default().judge("ls", ["PATH"]), Verdict::Allow);
    }

    #[test]
    fn a_command_that_runs_others_can_be_allowed_by_name() {
        let policy = Policy { allow: patterns("find*"), deny: patterns("rm*") };
        assert_eq!(judge(&policy, "find . -name '*.rs'"), Verdict::Allow);
    }

    proptest! {
        #[test]
        fn judging_never_panics_and_a_denied_first_word_never_passes(tail in ".*") {
            let policy = deny("rm");
            judge(&policy, &tail);
            prop_assert_ne!(judge(&policy, &format!("rm {tail}")), Verdict::Allow);
        }
    }
}
