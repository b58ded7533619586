//! Variables that change what programs run, load or write.
//!
//! Programs only see the variables that are exported to them. Of those, [`table`] lists the ones that are known to
//! matter and the ones that are known to be harmless; with an allow list, all others need a rule (`NAME=*`).

mod compilers;
mod table;

use table::{
    BEGINNINGS, CARELESS_BEGINNINGS, COMMAND_ENDS, COMMANDS, DANGEROUS, EXPORTED_BEGINNINGS,
    EXPORTED_COMMAND_ENDS, EXPORTED_COMMANDS, FILE_ENDS, FLAGS, HARMLESS, HARMLESS_BEGINNINGS,
    HARMLESS_ENDS, JAVA_OPTIONS, MAKE_OPTIONS, NODE_OPTIONS, NPM, SOURCES, SWITCHES,
};

use crate::names::Names;
pub use compilers::are_harmless_to_rustc;
use compilers::{are_harmless_to_go, are_harmless_to_rustc_encoded};

/// What setting a variable does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Harmless,
    /// Something runs its value as a command.
    Command,
    /// It makes programs load, run or write something else.
    Dangerous,
    /// Some program may do anything with it.
    Unknown,
}

/// Whether programs get the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    ByPrograms,
    /// Unless it was exported before the request.
    ByTheShell,
}

const OWN_ADDRESSES: Names = Names("0.0.0.0 127.0.0.1 localhost :: ::1");

/// Whether a variable with this value changes nothing that a program runs.
pub fn is_harmless(name: &str, value: &str) -> bool {
    effect(name, Some(value), Seen::ByPrograms) == Effect::Harmless
}

/// What setting a variable does. The value is `None` if only the run will know it.
pub fn effect(name: &str, value: Option<&str>, seen: Seen) -> Effect {
    let exported = seen == Seen::ByPrograms;
    if HARMLESS.has(name) || begins(HARMLESS_BEGINNINGS, name) {
        return Effect::Harmless;
    }
    if SOURCES.has(&name.to_lowercase()) {
        return if exported { Effect::Unknown } else { Effect::Harmless };
    }
    if let Some(fine) = checked(name, value) {
        return if fine { Effect::Harmless } else { Effect::Dangerous };
    }
    if COMMANDS.has(name) || ends(COMMAND_ENDS, name) {
        return Effect::Command;
    }
    if DANGEROUS.has(name) || begins(BEGINNINGS, name) {
        return Effect::Dangerous;
    }
    let is_setting = |start: &str| {
        let rest = name.strip_prefix(start);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    match exported {
        false => Effect::Harmless,
        true if EXPORTED_COMMANDS.has(name) || ends(EXPORTED_COMMAND_ENDS, name) => Effect::Command,
        true if begins(EXPORTED_BEGINNINGS, name) => Effect::Dangerous,
        true if CARELESS_BEGINNINGS.iter().any(is_setting) => Effect::Dangerous,
        true if ends(HARMLESS_ENDS, name) => Effect::Harmless,
        // `1` is the name of a file as well.
        true if ends(FILE_ENDS, name) => Effect::Unknown,
        true if value.is_some_and(is_plain) => Effect::Harmless,
        // Where a server listens.
        true if name == "HOST" && value.is_some_and(|it| OWN_ADDRESSES.has(it)) => Effect::Harmless,
        true => Effect::Unknown,
    }
}

/// Whether make inserts the variable into commands as a program.
pub fn is_make_command(name: &str) -> bool {
    // `COMPILE.c`, `LINK.o`, `YACC.y`
    let is_rule = name.split_once('.').is_some_and(|(verb, _)| {
        !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_uppercase())
    });
    is_rule || COMMANDS.has(name) || EXPORTED_COMMANDS.has(name)
}

/// Whether make puts the variable among the options of a compiler.
pub fn is_flags(name: &str) -> bool {
    FLAGS.has(name) || name.ends_with("FLAGS")
}

/// Whether a shell that gets the text within a command finds no other command in it.
pub fn is_inert(text: &str) -> bool {
    !text.contains([';', '|', '&', '$', '`', '<', '>', '(', ')', '\n'])
}

/// Whether a value changes nothing that a makefile or a script of a project runs, whatever these do with it: a
/// switch, a number, a level or a locale, in a variable that is known to be harmless.
pub fn is_settled(name: &str, value: &str) -> bool {
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_.,+@-".contains(c));
    let is_locale =
        |text: &str| Names("C POSIX").has(text) || text.contains(['.', '_']) && is_name(text);
    let is_known = HARMLESS.has(name)
        || SWITCHES.has(name)
        || begins(HARMLESS_BEGINNINGS, name)
        || ends(HARMLESS_ENDS, name);
    // Whom to trust, and by way of whom to connect.
    const TRUST: Names = Names("proxy cert ssl tls ca_bundle cafile cainfo capath sumdb insecure");
    let lower = name.to_lowercase();
    if TRUST.iter().any(|part| lower.contains(part)) {
        return false;
    }
    match name {
        "GOFLAGS" => are_harmless_to_go(value),
        _ if is_for_rustc(name) => are_harmless_to_rustc_encoded(value),
        // A word such as `test` is a folder as well. Some shells take over how they split words.
        _ if ends(FILE_ENDS, name) || Names("IFS TMP TEMP").has(name) => value.is_empty(),
        "LANG" | "LANGUAGE" => is_locale(value),
        _ if name.starts_with("LC_") => is_locale(value),
        "TZ" => {
            is_name(&value.replace('/', "")) && !value.contains("..") && !value.starts_with('/')
        }
        "TERM" => Names("dumb linux vt100 xterm xterm-256color screen tmux").has(value),
        _ => is_known && (value.is_empty() || is_switch(value)),
    }
}

fn is_java_option(option: &str) -> bool {
    let is_size = |size: &str| {
        size.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && size.starts_with(|c: char| c.is_ascii_digit())
    };
    let sizes = ["-Xmx", "-Xms", "-Xmn", "-Xss", "-XX:MaxMetaspaceSize=", "-XX:MaxPermSize="];
    sizes.iter().any(|name| option.strip_prefix(name).is_some_and(is_size))
        || Names("-ea -esa -server -XX:+UseG1GC -XX:+UseParallelGC -XX:+UseSerialGC -XX:+UseZGC")
            .has(option)
}

fn begins(beginnings: Names, name: &str) -> bool {
    beginnings.iter().any(|start| name.starts_with(start))
}

fn ends(ends: Names, name: &str) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

/// For variables whose value decides: whether it is harmless.
fn checked(name: &str, value: Option<&str>) -> Option<bool> {
    let lower = name.to_lowercase().replace('-', "_");
    if let Some(setting) = lower.strip_prefix("npm_config_") {
        return Some(NPM.has(setting));
    }
    let without = |signs: &[&str]| {
        let value = value.map(|value| value.replace('_', "-"));
        value.is_some_and(|value| !signs.iter().any(|sign| value.contains(sign)))
    };
    let all_of = |known: Names| {
        let bare = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        value.is_some_and(|value| value.split_whitespace().all(|word| known.has(&bare(word))))
    };
    Some(match name {
        _ if is_for_rustc(name) => value.is_some_and(are_harmless_to_rustc_encoded),
        "NODE_OPTIONS" => all_of(NODE_OPTIONS),
        "MAKEFLAGS" | "MFLAGS" | "GNUMAKEFLAGS" => {
            let is_jobs = |word: &str| {
                let jobs = word.strip_prefix("-j").or(word.strip_prefix("-l")).unwrap_or("x");
                jobs.bytes().all(|byte| byte.is_ascii_digit())
            };
            value.is_some_and(|value| {
                value.split_whitespace().all(|word| is_jobs(word) || MAKE_OPTIONS.has(word))
            })
        }
        "GOFLAGS" => value.is_some_and(are_harmless_to_go),
        _ if FLAGS.has(name) => {
            let loads = [
                "-fplugin", "-B", "-prefix", "-wrapper", "-specs", "@", "-plugin", "-load",
                "-fuse-ld",
            ];
            without(&loads) && value.is_some_and(is_inert)
        }
        "LESS" | "MORE" => without(&["+", "!", "k", "-o", "-O", "\n", "lesskey", "LOG", "log"]),
        _ if JAVA_OPTIONS.has(name) => {
            value.is_some_and(|value| value.split_whitespace().all(is_java_option))
        }
        // Other values name a file to write to.
        _ if name.starts_with("GIT_TRACE") => {
            Names("0 1 2 true false").has(value.unwrap_or_default()) || value == Some("")
        }
        "DEBIAN_FRONTEND" => {
            value.is_some_and(|value| value.bytes().all(|b| b.is_ascii_alphabetic()))
        }
        _ if name.ends_with("SAN_OPTIONS") => without(&["path", "file", "coverage"]),
        "JAVA_HOME" => value.is_some_and(|path| {
            !path.contains("..") && (path.starts_with("/usr/") || path.starts_with("/opt/"))
        }),
        "TZ" => value.is_none_or(|value| !value.contains("..")),
        _ => return None,
    })
}

/// Whether cargo passes the variable on to the compiler.
fn is_for_rustc(name: &str) -> bool {
    Names("RUSTFLAGS RUSTDOCFLAGS").has(name)
        || name.starts_with("CARGO_") && name.ends_with("FLAGS")
}

/// Whether a value is a number, a switch or a level, or an address on the network: nothing that can be run.
fn is_plain(value: &str) -> bool {
    is_switch(value) || is_address(value)
}

fn is_address(value: &str) -> bool {
    const SCHEMES: Names = Names(
        "amqp amqps grpc http https mariadb mongodb mongodb+srv mqtt mysql nats pg postgres postgresql redis rediss \
         smtp ssh tcp udp ws wss",
    );
    value.split_once("://").is_some_and(|(scheme, rest)| {
        SCHEMES.has(scheme)
            && rest.starts_with(|first: char| first.is_alphanumeric() || "[:".contains(first))
            && rest.chars().all(|c| c.is_alphanumeric() || "_.:/@?=%+,[]-".contains(c))
            && !rest.contains("..")
    })
}

/// Whether a value is a number, a switch or a level.
fn is_switch(value: &str) -> bool {
    const WORDS: Names = Names(
        "true false yes no on off always never auto none all full debug info warn warning error \
         trace verbose quiet silent test testing development production staging local dev prod \
         release ci utf-8 UTF-8",
    );
    // With more dots it would be an address.
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte))
        && value.bytes().filter(|byte| *byte == b'.').count() <= 1
        && (value.is_empty() || value.bytes().any(|byte| byte.is_ascii_digit()));
    is_number || WORDS.has(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_what_they_do() {
        for seen in [Seen::ByPrograms, Seen::ByTheShell] {
            for name in [
                "PATH",
                "GTK_MODULES",
                "LD_PRELOAD",
                "BASH_FUNC_ls%%",
                "NPM_CONFIG_SCRIPT_SHELL",
                "npm_config_call",
                "PS4",
                "GIT_TRACE2_EVENT",
                "GNUMAKEFLAGS",
                "CARGO_BUILD_RUSTFLAGS",
                "DEPENDENCIES_OUTPUT",
            ] {
                assert_eq!(effect(name, Some("linker=x"), seen), Effect::Dangerous, "{name}");
            }
            for name in ["PAGER", "GIT_SSH_COMMAND", "CARGO_TARGET_X86_RUNNER", "CC"] {
                assert_eq!(effect(name, Some("x"), seen), Effect::Command, "{name}");
            }
            for name in ["RUST_LOG", "GIT_SHA", "CI", "npm_config_loglevel", "PYTHONUNBUFFERED"] {
                assert_eq!(effect(name, None, seen), Effect::Harmless, "{name}");
            }
            assert_eq!(effect("RUSTFLAGS", Some("-C target-cpu=native"), seen), Effect::Harmless);
            assert_eq!(effect("RUSTFLAGS", Some("-C linker=./x"), seen), Effect::Dangerous);
            assert_eq!(effect("RUSTFLAGS", None, seen), Effect::Dangerous);
        }
    }

    #[test]
    fn programs_get_only_what_is_known_or_cannot_be_run() {
        for (name, value) in
            [("X", "1"), ("PORT", "80"), ("APP_ENV", "test"), ("DB_URL", "pg://h/x")]
        {
            assert_eq!(effect(name, Some(value), Seen::ByPrograms), Effect::Harmless, "{name}");
        }
        for (name, value) in [("X", "evil"), ("X", "file:///x"), ("X", "a b"), ("U", "x://a;b")] {
            assert_eq!(effect(name, Some(value), Seen::ByPrograms), Effect::Unknown, "{name}");
            assert_eq!(effect(name, Some(value), Seen::ByTheShell), Effect::Harmless, "{name}");
        }
        assert_eq!(effect("X", None, Seen::ByPrograms), Effect::Unknown);
        assert_eq!(effect("GREP", Some("x"), Seen::ByPrograms), Effect::Command);
        assert_eq!(effect("GREP", Some("x"), Seen::ByTheShell), Effect::Harmless);
        for name in ["GIT_FUTURE", "PIP_PYTHON", "CARGO_BUILD_FUTURE"] {
            assert_eq!(effect(name, Some("x"), Seen::ByPrograms), Effect::Dangerous, "{name}");
            assert_eq!(effect(name, Some("x"), Seen::ByTheShell), Effect::Harmless, "{name}");
        }
        assert_eq!(effect("PYTHONFUTURE", Some("1"), Seen::ByPrograms), Effect::Dangerous);
    }
}
