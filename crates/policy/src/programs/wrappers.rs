//! Programs that run the command behind them.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

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

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    if name == "runuser" || name == "su" {
        return switch_user(actions, name, call);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.has(name)) else {
        return;
    };
    let first = call.arguments().first().and_then(Word::literal);
    let asks = first.as_deref().is_some_and(|first| TELLING.has(first));
    let finds =
        name == "command" && first.as_deref().is_some_and(|first| ["-v", "-V"].contains(&first));
    if (asks && !["command", "exec", "builtin"].contains(&name)) || finds {
        return;
    }
    let (options, mut rest) = match parse(&wrapper.syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not known"),
    };
    let mut split_text = false;
    for option in options {
        // What stands behind a text that is split are its command's arguments.
        if split_text {
            return actions.opaque(call.span(), "options behind a text that becomes words");
        }
        match option {
            Argument::Option { name: letter, value: Some(value), .. } if name == "env" => {
                match letter.as_str() {
                    "S" | "split-string" => {
                        rest = split_string(actions, &value, &rest);
                        split_text = true;
                    }
                    "C" | "chdir" => actions.push(Action::Enter(value)),
                    _ => {}
                }
            }
            Argument::Option { name: letter, value: Some(file), .. }
                if name == "time" && (letter == "o" || letter == "output") =>
            {
                actions.push(Action::Write(file));
            }
            Argument::Option { name: letter, value: Some(text), .. }
                if name == "flock" && (letter == "c" || letter == "command") =>
            {
                return actions.run_text(&text, Runner::SH);
            }
            Argument::Option { .. } => {}
            Argument::Operand(word) | Argument::Unknown(word) => {
                return actions
                    .unresolved(word.span, "a word that may be an option or the command");
            }
        }
    }
    command_behind(actions, wrapper, name, &rest);
}

fn command_behind(actions: &mut Actions<'_>, wrapper: &Wrapper, name: &str, mut rest: &[Word]) {
    while let Some(first) = rest.first().filter(|_| wrapper.sets) {
        if let Some((name, value)) = setting(first) {
            let span = value.span.clone();
            actions.push(Action::Assign { name, value: Some(value), span });
        } else if name != "env" || first.literal().as_deref() != Some("-") {
            break;
        }
        rest = &rest[1..];
    }
    let before = rest.iter().take(wrapper.before).find(|word| word.literal().is_none());
    if let Some(unknown) = before {
        return actions
            .unresolved(unknown.span.clone(), "a word that may be an option or the command");
    }
    rest = rest.get(wrapper.before..).unwrap_or_default();
    let Some(first) = rest.first() else { return };
    let option = first.literal().filter(|text| text.starts_with('-'));
    if name == "flock" && option.as_deref().is_some_and(|text| ["-c", "--command"].contains(&text))
    {
        return rest.get(1).into_iter().for_each(|text| actions.run_text(text, Runner::SH));
    }
    if option.is_some() {
        return actions.opaque(first.span.clone(), "an option where the command is expected");
    }
    if wrapper.joins {
        return actions.run_joined(rest, Runner::SH);
    }
    actions.run(rest.to_vec());
}

/// `NAME=value` as an argument.
fn setting(word: &Word) -> Option<(String, Word)> {
    let prefix = word.prefix();
    let (name, value) = prefix.split_once('=')?;
    let value = match word.text() {
        Some(_) => Word::known(value, word.span.clone()),
        None if word.is_single() => Word::unknown(false, word.span.clone()),
        None => return None,
    };
    Some((name.to_owned(), value))
}

/// `env -S`, which splits a text by rules of its own. Only what needs none of them is understood.
fn split_string(actions: &mut Actions<'_>, text: &Word, rest: &[Word]) -> Vec<Word> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./=:,@%+-".contains(c);
    let Some(words) = text.text().filter(|text| text.chars().all(plain)) else {
        actions.opaque(text.span.clone(), "text with rules of its own");
        return Vec::new();
    };
    let words = words.split_whitespace().map(|word| Word::known(word, text.span.clone()));
    let words: Vec<_> = words.chain(rest.iter().cloned()).collect();
    if words.first().and_then(Word::literal).is_some_and(|first| first.starts_with('-')) {
        actions.opaque(text.span.clone(), "an option that is not known");
        return Vec::new();
    }
    words
}

/// `su` and `runuser`, which start a shell unless they are given a command.
fn switch_user(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
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
        return actions.opaque(call.span(), "an option that is not known");
    };
    let mut user = false;
    for option in options {
        match option {
            Argument::Option { name, value: Some(text), .. }
                if ["c", "C", "command", "session-command"].contains(&name.as_str()) =>
            {
                return actions.run_text(&text, Runner::SH);
            }
            Argument::Option { name, .. } => user |= name == "u" || name == "user",
            _ => return actions.opaque(call.span(), "a word that may be an option"),
        }
    }
    match user && name == "runuser" && !rest.is_empty() {
        true => actions.run(rest),
        false => actions.opaque(call.span(), "a shell that reads its commands"),
    }
}
