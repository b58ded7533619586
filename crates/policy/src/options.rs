//! What is known of programs' options, as far as it decides what their sub-command is.

use crate::script::Word;
use crate::words::Words;

/// What an option takes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Flag,
    /// Its value is the next word.
    Valued,
    Unknown,
}

/// Options before the sub-command: those with a value, and those without.
struct Globals {
    programs: Words,
    valued: Words,
    flags: Words,
}

const GLOBALS: &[Globals] = &[
    Globals {
        programs: Words("git"),
        valued: Words(
            "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        ),
        flags: Words(
            "-p -P -h -v --paginate --no-pager --bare --help --version --literal-pathspecs \
             --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path \
             --info-path",
        ),
    },
    Globals {
        programs: Words("docker podman nerdctl"),
        valued: Words("-c -H -l --config --context --host --log-level"),
        flags: Words("-D -v --debug --tls --tlsverify --version --help"),
    },
    Globals {
        programs: Words("kubectl oc helm"),
        valued: Words(
            "-n -s --namespace --context --cluster --kubeconfig --user --server --token --as \
             --kube-context --request-timeout -v",
        ),
        flags: Words("--help --debug --insecure-skip-tls-verify"),
    },
    Globals {
        programs: Words("npm pnpm yarn npx"),
        valued: Words(
            "-C -w --prefix --workspace --registry --loglevel --cache --dir --cwd --filter -F \
             --tag --otp --userconfig",
        ),
        flags: Words(
            "-s -q -d -dd -f -g -l -p -y -v --silent --quiet --verbose --force --global --json \
             --long --parseable --yes --version --help --workspaces -ws -r --recursive \
             --offline",
        ),
    },
    Globals {
        programs: Words("cargo"),
        valued: Words("--color --config -Z -C --manifest-path --target-dir"),
        flags: Words(
            "-v -vv -q -V -h --verbose --quiet --locked --offline --frozen --version --help \
             --list",
        ),
    },
    Globals {
        programs: Words("systemctl journalctl"),
        valued: Words("-H -M -t -p -o -n -s -u --root --host --machine"),
        flags: Words("--user --system --no-pager --no-ask-password -q --quiet --now"),
    },
    Globals {
        programs: Words("gh"),
        valued: Words("-R --repo --hostname"),
        flags: Words("--help --version"),
    },
    Globals {
        programs: Words("apt apt-get"),
        valued: Words("-o -c -t --option --config-file --target-release"),
        flags: Words("-y -q -qq --yes --quiet -s --simulate"),
    },
];

/// Programs whose options are words behind one dash.
const LONG_SINGLE: Words = Words("find go java terraform openssl ffmpeg gcc clang qemu xdotool");

/// Other spellings of letters: long options and capitals that mean the same.
const LETTERS: &[(&str, &str, &str)] = &[
    ("rm", "--recursive", "r"),
    ("rm", "--force", "f"),
    ("rm", "--dir", "d"),
    ("rm", "--verbose", "v"),
    ("cp", "--recursive", "r"),
    ("cp", "--archive", "a"),
    ("cp", "--force", "f"),
    ("chmod", "--recursive", "r"),
    ("chown", "--recursive", "r"),
    ("chgrp", "--recursive", "r"),
    ("mv", "--force", "f"),
    ("ln", "--force", "f"),
    ("ln", "--symbolic", "s"),
    ("git", "--force", "f"),
    ("git", "--all", "a"),
    ("git", "--delete", "d"),
    ("kill", "--signal", "s"),
    ("sed", "--in-place", "i"),
];

fn globals(program: &str) -> Option<&'static Globals> {
    GLOBALS.iter().find(|globals| globals.programs.has(program))
}

/// What an option before the sub-command takes with it.
pub fn meaning(program: &str, option: &str) -> Meaning {
    if option.contains('=') || option.starts_with("--no-") {
        return Meaning::Flag;
    }
    match globals(program) {
        Some(globals) if globals.valued.has(option) => Meaning::Valued,
        Some(globals) if globals.flags.has(option) => Meaning::Flag,
        _ => Meaning::Unknown,
    }
}

/// The words from the sub-command on, if every option before it is known.
pub fn behind_global<'a>(program: &str, words: &'a [Word]) -> Option<&'a [Word]> {
    let mut at = 0;
    while let Some(text) = words.get(at).and_then(Word::literal).filter(|t| t.starts_with('-')) {
        globals(program)?;
        match meaning(program, &text) {
            Meaning::Flag => at += 1,
            Meaning::Valued if words.get(at + 1).is_some_and(Word::is_one) => at += 2,
            Meaning::Valued | Meaning::Unknown => return None,
        }
    }
    words.get(at..)
}

pub fn has_long_single(program: &str) -> bool {
    LONG_SINGLE.has(program)
}

/// The letters an argument stands for if it is options: `-rf`, or `--recursive` of `rm`.
pub fn letters(program: &str, argument: &str) -> String {
    if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
        let same = LETTERS
            .iter()
            .find(|(of, name, _)| *of == program && name.trim_start_matches('-').starts_with(long));
        return same.map_or_else(String::new, |(_, _, letters)| (*letters).to_owned());
    }
    let letters = argument.strip_prefix('-').filter(|_| !has_long_single(program));
    letters.unwrap_or_default().to_owned()
}

/// Sub-commands that have another name.
const SAME: &[(&str, &str, &str)] = &[
    ("npm", "i", "install"),
    ("npm", "in", "install"),
    ("npm", "ins", "install"),
    ("npm", "add", "install"),
    ("npm", "run-script", "run"),
    ("npm", "rum", "run"),
    ("npm", "t", "test"),
    ("npm", "un", "uninstall"),
    ("npm", "rm", "uninstall"),
    ("npm", "remove", "uninstall"),
    ("npm", "x", "exec"),
    ("cargo", "b", "build"),
    ("cargo", "c", "check"),
    ("cargo", "d", "doc"),
    ("cargo", "r", "run"),
    ("cargo", "t", "test"),
    ("cargo", "rm", "remove"),
    ("helm", "delete", "uninstall"),
    ("helm", "del", "uninstall"),
    ("helm", "un", "uninstall"),
    ("apt", "purge", "remove"),
];

/// What a sub-command is called in full. npm takes any beginning of a name for the name.
pub fn whole_name(program: &str, given: &str, wanted: &str) -> String {
    if let Some((_, _, name)) = SAME.iter().find(|(of, other, _)| *of == program && *other == given)
    {
        return (*name).to_owned();
    }
    match program == "npm" && given.len() > 2 && wanted.starts_with(given) {
        true => wanted.to_owned(),
        false => given.to_owned(),
    }
}
