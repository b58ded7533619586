//! Programs that run the command behind them.

use std::borrow::Cow;

use super::arguments::{Argument, OptionSyntax, parse};
use crate::judge::{Call, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Word};

struct Wrapper {
    names: Names,
    syntax: OptionSyntax,
    /// Arguments before the command: a time, a file.
    before: usize,
    /// Whether `NAME=value` may come before the command.
    sets: bool,
    /// Whether the command is a text for a shell once its words are joined.
    joins: bool,
}

const fn wrapper(names: Names, syntax: OptionSyntax) -> Wrapper {
    Wrapper { names, syntax, before: 0, sets: false, joins: false }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        Names(
            "nohup unbuffer catchsegv eatmydata builtin torsocks busybox toybox \
             nocache",
        ),
        OptionSyntax::STRICT,
    ),
    wrapper(
        Names("setsid"),
        OptionSyntax { flags: "cfw", long_flags: Names("ctty fork wait"), ..OptionSyntax::STRICT },
    ),
    wrapper(
        Names("nice"),
        OptionSyntax {
            valued: "n",
            flags: "0123456789",
            long_valued: Names("adjustment"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("ionice"),
        OptionSyntax {
            valued: "cn",
            flags: "t",
            long_valued: Names("class classdata"),
            long_flags: Names("ignore"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("stdbuf"),
        OptionSyntax {
            valued: "ioe",
            long_valued: Names("input output error"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(Names("exec"), OptionSyntax { valued: "a", flags: "cl", ..OptionSyntax::STRICT }),
    wrapper(Names("command"), OptionSyntax { flags: "p", ..OptionSyntax::STRICT }),
    wrapper(
        Names("time"),
        OptionSyntax {
            valued: "fo",
            flags: "apvq",
            long_valued: Names("format output"),
            long_flags: Names("append portability verbose quiet"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("setpriv"),
        OptionSyntax {
            flags: "d",
            long_valued: Names(
                "reuid regid ruid euid rgid egid groups inh-caps ambient-caps bounding-set \
                 securebits pdeathsig selinux-label",
            ),
            long_flags: Names("no-new-privs nnp clear-groups keep-groups init-groups reset-env"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("strace ltrace"),
        OptionSyntax {
            valued: "aeEIPsSuUX",
            flags: "bcCdDfFhiknNqrtTvwxyYzZ",
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(Names("fakeroot dbus-run-session"), OptionSyntax::STRICT),
    wrapper(
        Names("choom"),
        OptionSyntax { valued: "np", long_valued: Names("adjust pid"), ..OptionSyntax::STRICT },
    ),
    wrapper(
        Names("xvfb-run"),
        OptionSyntax { valued: "efnpsw", flags: "acl", ..OptionSyntax::STRICT },
    ),
    wrapper(Names("cgexec"), OptionSyntax { valued: "g", ..OptionSyntax::STRICT }),
    wrapper(
        Names("proxychains proxychains4"),
        OptionSyntax { valued: "f", flags: "q", ..OptionSyntax::STRICT },
    ),
    wrapper(
        Names("tini dumb-init"),
        OptionSyntax { valued: "pe", flags: "gsvcwV", ..OptionSyntax::STRICT },
    ),
    wrapper(
        Names("valgrind"),
        OptionSyntax { flags: "vqd", long_flags: Names(""), ..OptionSyntax::STRICT },
    ),
    wrapper(
        Names("prlimit"),
        OptionSyntax {
            attached: "acdefilmnqrstuvxy",
            long_flags: Names(
                "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio \
                 rttime sigpending stack",
            ),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("pkexec"),
        OptionSyntax {
            long_valued: Names("user"),
            long_flags: Names("keep-cwd disable-internal-agent"),
            ..OptionSyntax::STRICT
        },
    ),
    wrapper(
        Names("numactl"),
        OptionSyntax {
            valued: "CNmipl",
            flags: "sHab",
            long_valued: Names("cpunodebind membind physcpubind interleave preferred"),
            ..OptionSyntax::STRICT
        },
    ),
    Wrapper {
        sets: true,
        ..wrapper(
            Names("env"),
            OptionSyntax {
                valued: "uCS",
                flags: "i0v-",
                long_valued: Names("unset chdir split-string"),
                long_flags: Names(
                    "ignore-environment null debug block-signal default-signal ignore-signal \
                     list-signal-handling",
                ),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        sets: true,
        ..wrapper(
            Names("sudo"),
            OptionSyntax {
                valued: "CDghpRrTtuU",
                flags: "AbBEHnPSkKN",
                long_valued: Names(
                    "user group host prompt chdir chroot role type close-from other-user \
                     command-timeout",
                ),
                long_flags: Names(
                    "non-interactive preserve-env set-home stdin background reset-timestamp \
                     askpass bell preserve-groups",
                ),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        sets: true,
        ..wrapper(Names("doas"), OptionSyntax { valued: "uC", flags: "n", ..OptionSyntax::STRICT })
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Names("timeout"),
            OptionSyntax {
                valued: "ks",
                flags: "fpv",
                long_valued: Names("kill-after signal"),
                long_flags: Names("foreground preserve-status verbose"),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Names("chrt"),
            OptionSyntax {
                valued: "TPD",
                flags: "bdfiorRv",
                long_valued: Names("sched-runtime sched-period sched-deadline"),
                long_flags: Names("batch deadline fifo idle other rr reset-on-fork"),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Names("taskset"),
            OptionSyntax {
                flags: "ac",
                long_flags: Names("all-tasks cpu-list"),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Names("chroot"),
            OptionSyntax {
                long_valued: Names("userspec groups"),
                long_flags: Names("skip-chdir"),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper { before: 1, ..wrapper(Names("gosu su-exec"), OptionSyntax::STRICT) },
    Wrapper {
        before: 1,
        ..wrapper(Names("faketime"), OptionSyntax { flags: "fmp", ..OptionSyntax::STRICT })
    },
    Wrapper {
        joins: true,
        ..wrapper(
            Names("watch"),
            OptionSyntax {
                valued: "nq",
                flags: "bcdegprtwx",
                long_valued: Names("interval equexit"),
                long_flags: Names(
                    "beep color differences errexit chgexit precise no-rerun no-title no-wrap \
                     exec",
                ),
                ..OptionSyntax::STRICT
            },
        )
    },
    Wrapper {
        before: 1,
        ..wrapper(
            Names("flock"),
            OptionSyntax {
                valued: "wEc",
                flags: "sexnuoFv",
                long_valued: Names("wait timeout conflict-exit-code command"),
                long_flags: Names("shared exclusive nonblock nb unlock close no-fork verbose"),
                ..OptionSyntax::STRICT
            },
        )
    },
];

/// Options that make the program print something and run nothing.
const TELLING: Names = Names("--help --version --list -h -V");

/// Judges the command behind a wrapper.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
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
    let (options, mut rest) = match parse(&wrapper.syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not known"),
    };
    let mut split_text = false;
    for option in options {
        // What stands behind a text that is split are its command's arguments.
        if split_text {
            return judge.opaque(call.span(), "options behind a text that becomes words");
        }
        match option {
            Argument::Option { name: letter, value: Some(value), .. } if name == "env" => {
                match letter.as_str() {
                    "S" | "split-string" => {
                        rest = split_string(judge, &value, &rest)?;
                        split_text = true;
                    }
                    "C" | "chdir" => judge.directories.enter(Some(&value), true),
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
            Argument::Operand(word) | Argument::Unknown(word) => {
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
            judge.knowledge.add_value(&variable, value.text().map(Cow::into_owned));
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
        return judge.opaque(first.span.clone(), "an option where the command is expected");
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
    let text: Option<Vec<_>> = words.iter().map(Word::text).collect();
    let span = words[0].span.start..words.iter().map(|word| word.span.end).max().unwrap_or(0);
    match text {
        Some(text) => judge.script(&text.join(" "), shell, Some(span)),
        None => judge.unresolved(span, "a text that becomes a script"),
    }
}

/// `NAME=value` as an argument.
fn setting(word: &Word) -> Option<(String, Word)> {
    let beginning = word.prefix();
    let (name, value) = beginning.split_once('=')?;
    let value = match word.text() {
        Some(_) => Word::known(value, word.span.clone()),
        None if word.is_single() => Word::unknown(false, word.span.clone()),
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
    match text.text().filter(|text| text.chars().all(plain)) {
        Some(words) => {
            let words = words.split_whitespace().map(|word| Word::known(word, text.span.clone()));
            let words: Vec<_> = words.chain(rest.iter().cloned()).collect();
            match words.first().and_then(Word::literal) {
                Some(first) if first.starts_with('-') => {
                    judge.opaque(text.span.clone(), "an option that is not known").map(|()| vec![])
                }
                _ => Ok(words),
            }
        }
        None => judge.opaque(text.span.clone(), "text with rules of its own").map(|()| vec![]),
    }
}

/// `su` and `runuser`, which start a shell unless they are given a command.
fn switch_user(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let syntax = OptionSyntax {
        valued: "cCgGu",
        attached: "",
        flags: "fmp",
        long_valued: Names("command session-command group supp-group user"),
        long_flags: Names("fast preserve-environment pty"),
        exact: Names(""),
        stops_at_operand: true,
    };
    let Ok((options, rest)) = parse(&syntax, call.arguments()) else {
        return judge.opaque(call.span(), "an option that is not known");
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
            _ => return judge.opaque(call.span(), "a word that may be an option"),
        }
    }
    match user && name == "runuser" && !rest.is_empty() {
        true => judge.call(&Call { words: &rest, wrappers: call.wrappers + 1, ..call.clone() }),
        false => judge.opaque(call.span(), "a shell that reads its commands"),
    }
}
