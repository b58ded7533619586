//! Programs that run the command behind them.

use std::borrow::Cow;

use super::arguments::{Argument, Form, split};
use crate::judge::{Call, Judge, Ruling};
use crate::script::{Shell, Word};
use crate::words::Words;

struct Wrapper {
    names: Words,
    form: Form,
    /// Arguments before the command: a time, a file.
    before: usize,
    /// Whether `NAME=value` may come before the command.
    sets: bool,
    /// Whether the command is a text for a shell once its words are joined.
    joins: bool,
}

const fn wrapper(names: Words, form: Form) -> Wrapper {
    Wrapper { names, form, before: 0, sets: false, joins: false }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        Words(
            "nohup unbuffer catchsegv eatmydata builtin torsocks busybox toybox \
             nocache",
        ),
        Form::STRICT,
    ),
    wrapper(
        Words("setsid"),
        Form { flags: "cfw", long_flags: Words("ctty fork wait"), ..Form::STRICT },
    ),
    wrapper(
        Words("nice"),
        Form { valued: "n", flags: "0123456789", long_valued: Words("adjustment"), ..Form::STRICT },
    ),
    wrapper(
        Words("ionice"),
        Form {
            valued: "cn",
            flags: "t",
            long_valued: Words("class classdata"),
            long_flags: Words("ignore"),
            ..Form::STRICT
        },
    ),
    wrapper(
        Words("stdbuf"),
        Form { valued: "ioe", long_valued: Words("input output error"), ..Form::STRICT },
    ),
    wrapper(Words("exec"), Form { valued: "a", flags: "cl", ..Form::STRICT }),
    wrapper(Words("command"), Form { flags: "p", ..Form::STRICT }),
    wrapper(
        Words("time"),
        Form {
            valued: "fo",
            flags: "apvq",
            long_valued: Words("format output"),
            long_flags: Words("append portability verbose quiet"),
            ..Form::STRICT
        },
    ),
    wrapper(
        Words("setpriv"),
        Form {
            flags: "d",
            long_valued: Words(
                "reuid regid ruid euid rgid egid groups inh-caps ambient-caps bounding-set \
                 securebits pdeathsig selinux-label",
            ),
            long_flags: Words("no-new-privs nnp clear-groups keep-groups init-groups reset-env"),
            ..Form::STRICT
        },
    ),
    wrapper(
        Words("strace ltrace"),
        Form { valued: "aeEIPsSuUX", flags: "bcCdDfFhiknNqrtTvwxyYzZ", ..Form::STRICT },
    ),
    wrapper(Words("fakeroot dbus-run-session"), Form::STRICT),
    wrapper(
        Words("choom"),
        Form { valued: "np", long_valued: Words("adjust pid"), ..Form::STRICT },
    ),
    wrapper(Words("xvfb-run"), Form { valued: "efnpsw", flags: "acl", ..Form::STRICT }),
    wrapper(Words("cgexec"), Form { valued: "g", ..Form::STRICT }),
    wrapper(Words("proxychains proxychains4"), Form { valued: "f", flags: "q", ..Form::STRICT }),
    wrapper(Words("tini dumb-init"), Form { valued: "pe", flags: "gsvcwV", ..Form::STRICT }),
    wrapper(Words("valgrind"), Form { flags: "vqd", long_flags: Words(""), ..Form::STRICT }),
    wrapper(
        Words("prlimit"),
        Form {
            attached: "acdefilmnqrstuvxy",
            long_flags: Words(
                "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio \
                 rttime sigpending stack",
            ),
            ..Form::STRICT
        },
    ),
    wrapper(
        Words("pkexec"),
        Form {
            long_valued: Words("user"),
            long_flags: Words("keep-cwd disable-internal-agent"),
            ..Form::STRICT
        },
    ),
    wrapper(
        Words("numactl"),
        Form {
            valued: "CNmipl",
            flags: "sHab",
            long_valued: Words("cpunodebind membind physcpubind interleave preferred"),
            ..Form::STRICT
        },
    ),
    Wrapper {
        sets: true,
        ..wrapper(
            Words("env"),
            Form {
                valued: "uCS",
                flags: "i0v-",
                long_valued: Words("unset chdir split-string"),
                long_flags: Words(
                    "ignore-environment null debug block-signal default-signal ignore-signal \
                     list-signal-handling",
                ),
                ..Form::STRICT
            },
        )
    },
    Wrapper {
        sets: true,
        ..wrapper(
            Words("sudo"),
            Form {
                valued: "CDghpRrTtuU",
                flags: "AbBEHnPSkKN",
                long_valued: Words(
                    "user group host prompt chdir chroot role type close-from other-user \
                     command-timeout",
                ),
                long_flags: Words(
                    "non-interactive preserve-env set-home stdin background reset-timestamp \
                     askpass bell preserve-groups",
                ),
                ..Form::STRICT
            },
        )
    },
    Wrapper {
        sets: true,
        ..wrapper(Words("doas"), Form { valued: "uC", flags: "n", ..Form::STRICT })
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Words("timeout"),
            Form {
                valued: "ks",
                flags: "fpv",
                long_valued: Words("kill-after signal"),
                long_flags: Words("foreground preserve-status verbose"),
                ..Form::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Words("chrt"),
            Form {
                valued: "TPD",
                flags: "bdfiorRv",
                long_valued: Words("sched-runtime sched-period sched-deadline"),
                long_flags: Words("batch deadline fifo idle other rr reset-on-fork"),
                ..Form::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Words("taskset"),
            Form { flags: "ac", long_flags: Words("all-tasks cpu-list"), ..Form::STRICT },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Words("chroot"),
            Form {
                long_valued: Words("userspec groups"),
                long_flags: Words("skip-chdir"),
                ..Form::STRICT
            },
        )
    },
    Wrapper { before: 1, ..wrapper(Words("gosu su-exec"), Form::STRICT) },
    Wrapper { before: 1, ..wrapper(Words("faketime"), Form { flags: "fmp", ..Form::STRICT }) },
    Wrapper {
        joins: true,
        ..wrapper(
            Words("watch"),
            Form {
                valued: "nq",
                flags: "bcdegprtwx",
                long_valued: Words("interval equexit"),
                long_flags: Words(
                    "beep color differences errexit chgexit precise no-rerun no-title no-wrap \
                     exec",
                ),
                ..Form::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Words("flock"),
            Form {
                valued: "wEc",
                flags: "sexnuoFv",
                long_valued: Words("wait timeout conflict-exit-code command"),
                long_flags: Words("shared exclusive nonblock nb unlock close no-fork verbose"),
                ..Form::STRICT
            },
        )
    },
];

/// Options that make the program print something and run nothing.
const TELLING: Words = Words("--help --version --list -h -V");

/// Judges the command behind a wrapper.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    if name == "runuser" || name == "su" {
        return switch_user(judge, name, call);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.has(name)) else {
        return Ok(());
    };
    let first = call.arguments().first().and_then(Word::literal);
    let asks = first.as_deref().is_some_and(|first| TELLING.has(first));
    let finds =
        name == "command" && first.as_deref().is_some_and(|first| ["-v", "-V"].contains(&first));
    if (asks && !["command", "exec", "builtin"].contains(&name)) || finds {
        return Ok(());
    }
    let (options, mut rest) = match split(&wrapper.form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not known"),
    };
    let mut split_text = false;
    for option in options {
        // What stands behind a text that is split are its command's arguments.
        if split_text {
            return judge.hides(call.span(), "options behind a text that becomes words");
        }
        match option {
            Argument::Option { name: letter, value: Some(value), .. } if name == "env" => {
                match letter.as_str() {
                    "S" | "split-string" => {
                        rest = split_string(judge, &value, &rest)?;
                        split_text = true;
                    }
                    "C" | "chdir" => judge.places.enter(Some(&value), true),
                    _ => {}
                }
            }
            Argument::Option { name: letter, value: Some(file), .. }
                if name == "time" && (letter == "o" || letter == "output") =>
            {
                judge.file(&file)?;
            }
            Argument::Option { name: letter, value: Some(text), .. }
                if name == "flock" && (letter == "c" || letter == "command") =>
            {
                return judge.text(&text, Shell::Sh);
            }
            Argument::Option { .. } => {}
            Argument::Other(word) | Argument::Unknown(word) => {
                return judge.unresolved(word.span, "a word that may be an option or the command");
            }
        }
    }
    command_behind(judge, wrapper, name, call, &rest)
}

fn command_behind(
    judge: &mut Judge<'_>,
    wrapper: &Wrapper,
    name: &str,
    call: &Call<'_>,
    rest: &[Word],
) -> Ruling {
    let mut rest = rest;
    while let Some(first) = rest.first().filter(|_| wrapper.sets) {
        if let Some((variable, value)) = setting(first) {
            judge.knowledge.note(&variable, value.data().map(Cow::into_owned));
            judge.variable(&variable, Some(&value), &value.span)?;
        } else if name != "env" || first.literal().as_deref() != Some("-") {
            break;
        }
        rest = &rest[1..];
    }
    let before = rest.iter().take(wrapper.before).find(|word| word.literal().is_none());
    if let Some(unknown) = before {
        return judge
            .unresolved(unknown.span.clone(), "a word that may be an option or the command");
    }
    rest = rest.get(wrapper.before..).unwrap_or_default();
    let Some(first) = rest.first() else { return Ok(()) };
    let option = first.literal().filter(|text| text.starts_with('-'));
    if name == "flock" && option.as_deref().is_some_and(|text| ["-c", "--command"].contains(&text))
    {
        return match rest.get(1) {
            Some(text) => judge.text(text, Shell::Sh),
            None => Ok(()),
        };
    }
    if option.is_some() {
        return judge.hides(first.span.clone(), "an option where the command is expected");
    }
    if wrapper.joins {
        return joined(judge, rest, Shell::Sh);
    }
    let call = Call { words: rest, wrappers: call.wrappers + 1, ..call.clone() };
    judge.elsewhere(|judge| judge.call(&call))
}

/// Judges words that are joined to a text for another shell.
pub fn joined(judge: &mut Judge<'_>, words: &[Word], shell: Shell) -> Ruling {
    judge.elsewhere(|judge| joined_here(judge, words, shell))
}

/// Judges words that are joined to a text for this shell.
pub fn joined_here(judge: &mut Judge<'_>, words: &[Word], shell: Shell) -> Ruling {
    let text: Option<Vec<_>> = words.iter().map(Word::data).collect();
    let span = words[0].span.start..words.iter().map(|word| word.span.end).max().unwrap_or(0);
    match text {
        Some(text) => judge.script(&text.join(" "), shell, Some(span)),
        None => judge.unresolved(span, "a text that becomes a script"),
    }
}

/// `NAME=value` as an argument.
fn setting(word: &Word) -> Option<(String, Word)> {
    let beginning = word.beginning();
    let (name, value) = beginning.split_once('=')?;
    let value = match word.data() {
        Some(_) => Word::known(value, word.span.clone()),
        None if word.is_one() => Word::unknown(false, word.span.clone()),
        None => return None,
    };
    Some((name.to_owned(), value))
}

/// `env -S`, which splits a text by rules of its own. Only what needs none of them is understood.
fn split_string(
    judge: &mut Judge<'_>,
    text: &Word,
    rest: &[Word],
) -> Result<Vec<Word>, crate::Denial> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./=:,@%+-".contains(c);
    match text.data().filter(|text| text.chars().all(plain)) {
        Some(words) => {
            let words = words.split_whitespace().map(|word| Word::known(word, text.span.clone()));
            let words: Vec<_> = words.chain(rest.iter().cloned()).collect();
            match words.first().and_then(Word::literal) {
                Some(first) if first.starts_with('-') => {
                    judge.hides(text.span.clone(), "an option that is not known").map(|()| vec![])
                }
                _ => Ok(words),
            }
        }
        None => judge.hides(text.span.clone(), "text with rules of its own").map(|()| vec![]),
    }
}

/// `su` and `runuser`, which start a shell unless they are given a command.
fn switch_user(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let form = Form {
        valued: "cCgGu",
        attached: "",
        flags: "fmp",
        long_valued: Words("command session-command group supp-group user"),
        long_flags: Words("fast preserve-environment pty"),
        whole: Words(""),
        stops: true,
    };
    let Ok((options, rest)) = split(&form, call.arguments()) else {
        return judge.hides(call.span(), "an option that is not known");
    };
    let mut user = false;
    for option in options {
        match option {
            Argument::Option { name, value: Some(text), .. }
                if ["c", "C", "command", "session-command"].contains(&name.as_str()) =>
            {
                return judge.text(&text, Shell::Sh);
            }
            Argument::Option { name, .. } => user |= name == "u" || name == "user",
            _ => return judge.hides(call.span(), "a word that may be an option"),
        }
    }
    match user && name == "runuser" && !rest.is_empty() {
        true => judge.call(&Call { words: &rest, wrappers: call.wrappers + 1, ..call.clone() }),
        false => judge.hides(call.span(), "a shell that reads its commands"),
    }
}
