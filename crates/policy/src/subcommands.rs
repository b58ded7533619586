//! Where a program's sub-command stands: its global options, other spellings of options and sub-commands.
//!
//! To add a program with sub-commands, add a row to [`GLOBALS`]; without one, its options count as unknown.

use crate::names::Names;
use crate::script::Word;

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Flag,
    /// Its value is the next word.
    Valued,
    Unknown,
}

/// The options that programs accept before the sub-command.
struct GlobalOptions {
    programs: Names,
    valued: Names,
    flags: Names,
}

const GLOBALS: &[GlobalOptions] = &[
    GlobalOptions {
        programs: Names("git"),
        valued: Names(
            "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        ),
        flags: Names(
            "-p -P -h -v --paginate --no-pager --bare --help --version --literal-pathspecs \
             --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path \
             --info-path",
        ),
    },
    GlobalOptions {
        programs: Names("docker podman nerdctl"),
        valued: Names("-c -H -l --config --context --host --log-level"),
        flags: Names("-D -v --debug --tls --tlsverify --version --help"),
    },
    GlobalOptions {
        programs: Names("kubectl oc helm"),
        valued: Names(
            "-n -s --namespace --context --cluster --kubeconfig --user --server --token --as \
             --kube-context --request-timeout -v",
        ),
        flags: Names("--help --debug --insecure-skip-tls-verify"),
    },
    GlobalOptions {
        programs: Names("npm pnpm yarn npx"),
        valued: Names(
            "-C -w --prefix --workspace --registry --loglevel --cache --dir --cwd --filter -F \
             --tag --otp --userconfig",
        ),
        flags: Names(
            "-s -q -d -dd -f -g -l -p -y -v --silent --quiet --verbose --force --global --json \
             --long --parseable --yes --version --help --workspaces -ws -r --recursive \
             --offline",
        ),
    },
    GlobalOptions {
        programs: Names("cargo"),
        valued: Names("--color --config -Z -C --manifest-path --target-dir"),
        flags: Names(
            "-v -vv -q -V -h --verbose --quiet --locked --offline --frozen --version --help \
             --list",
        ),
    },
    GlobalOptions {
        programs: Names("systemctl journalctl"),
        valued: Names("-H -M -t -p -o -n -s -u --root --host --machine"),
        flags: Names("--user --system --no-pager --no-ask-password -q --quiet --now"),
    },
    GlobalOptions {
        programs: Names("gh glab"),
        valued: Names("-R --repo --hostname"),
        flags: Names("--help --version"),
    },
    GlobalOptions {
        programs: Names("aws"),
        valued: Names("--region --profile --output --color --query"),
        flags: Names("--debug --no-cli-pager --no-paginate --no-verify-ssl --no-sign-request"),
    },
    GlobalOptions {
        programs: Names("gcloud"),
        valued: Names("--project --account --format --verbosity --region --zone"),
        flags: Names("--quiet -q"),
    },
    GlobalOptions {
        programs: Names("pip"),
        valued: Names("--proxy --retries --timeout --cache-dir --log --cert --index-url -i"),
        flags: Names(
            "-q -qq -v -vv --quiet --verbose --isolated --no-input --no-color --require-virtualenv \
             --disable-pip-version-check --version -V --help -h",
        ),
    },
    GlobalOptions {
        programs: Names("uv poetry"),
        valued: Names("--directory --project -C -P --color"),
        flags: Names("-q --quiet -v --verbose --offline -n --no-interaction --no-ansi"),
    },
    GlobalOptions { programs: Names("go"), valued: Names("-C"), flags: Names("") },
    GlobalOptions { programs: Names("terraform tofu"), valued: Names(""), flags: Names("-help") },
    GlobalOptions {
        programs: Names("svn hg jj"),
        valued: Names("--username --password -R --repository --cwd"),
        flags: Names("-q -v --quiet --verbose --non-interactive"),
    },
    GlobalOptions {
        programs: Names("brew dotnet rustup bundle composer gem conda mamba"),
        valued: Names("--working-dir -d"),
        flags: Names("-q -v --quiet --verbose -n --no-interaction --no-ansi"),
    },
    GlobalOptions {
        programs: Names("apt apt-get"),
        valued: Names("-o -c -t --option --config-file --target-release"),
        flags: Names("-y -q -qq --yes --quiet -s --simulate"),
    },
];

/// Sub-commands that are also in a group: `docker container run` is `docker run`.
struct Group {
    programs: Names,
    group: &'static str,
    /// The ones with the same name outside of the group.
    same: Names,
    /// The ones with another name, and that name.
    others: &'static [(Names, &'static str)],
}

const GROUPS: &[Group] = &[
    Group {
        programs: Names("docker podman nerdctl"),
        group: "container",
        same: Names(
            "attach checkpoint cleanup clone commit cp create diff exec exists export init inspect \
             kill logs mount pause port ps rename restart restore rm run start stats stop top \
             unmount unpause update wait",
        ),
        others: &[(Names("ls list"), "ps")],
    },
    Group {
        programs: Names("docker podman nerdctl"),
        group: "image",
        same: Names("build diff history import inspect load mount pull push save search sign tag"),
        others: &[(Names("ls list"), "images"), (Names("rm remove"), "rmi")],
    },
    Group {
        programs: Names("docker podman nerdctl"),
        group: "system",
        same: Names("events info"),
        others: &[],
    },
    Group { programs: Names("docker"), group: "buildx", same: Names("build"), others: &[] },
    Group { programs: Names("docker"), group: "builder", same: Names("build"), others: &[] },
];

/// The name outside of its group, if this is a group and one of its sub-commands.
pub fn ungrouped(program: &str, group: &str, sub: &str) -> Option<&'static str> {
    let is_group = |row: &&Group| row.programs.has(program) && row.group == group;
    let row = GROUPS.iter().find(is_group)?;
    let other = row.others.iter().find(|(names, _)| names.has(sub)).map(|(_, other)| *other);
    other.or_else(|| row.same.iter().find(|same| *same == sub))
}

/// The words with the first sub-command of a group by its other name, if there is one.
pub fn without_group(program: &str, words: &[Word]) -> Option<Vec<Word>> {
    GROUPS.iter().find(|row| row.programs.has(program))?;
    let name =
        |at: usize| ungrouped(program, &words[at].literal()?, &words.get(at + 1)?.literal()?);
    let (at, name) = (0..words.len()).find_map(|at| name(at).map(|name| (at, name)))?;
    let plain = Word::known(name, words[at + 1].span.clone());
    Some([&words[..at], &[plain], &words[at + 2..]].concat())
}

/// Programs whose long options begin with a single dash.
const SINGLE_DASH_WORDS: Names =
    Names("find go java terraform openssl ffmpeg gcc clang qemu xdotool");

/// Long options, and the letters with the same meaning.
const LONG_FORMS: &[(&str, &str, &str)] = &[
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

fn globals(program: &str) -> Option<&'static GlobalOptions> {
    GLOBALS.iter().find(|globals| globals.programs.has(program))
}

/// Whether an option before the sub-command takes a value.
pub fn option_kind(program: &str, option: &str) -> OptionKind {
    if option.contains('=') || option.starts_with("--no-") {
        return OptionKind::Flag;
    }
    match globals(program) {
        Some(globals) if globals.valued.has(option) => OptionKind::Valued,
        Some(globals) if globals.flags.has(option) => OptionKind::Flag,
        _ => OptionKind::Unknown,
    }
}

/// The words from the sub-command on, if all options before it are known.
pub fn after_global_options<'a>(program: &str, words: &'a [Word]) -> Option<&'a [Word]> {
    // `cargo +nightly build`
    let toolchain = words.first().and_then(Word::literal).filter(|first| first.starts_with('+'));
    let mut at = usize::from(toolchain.is_some() && has_toolchains(program));
    while let Some(text) = words.get(at).and_then(Word::literal).filter(|t| t.starts_with('-')) {
        globals(program)?;
        match option_kind(program, &text) {
            OptionKind::Flag => at += 1,
            OptionKind::Valued if words.get(at + 1).is_some_and(Word::is_single) => at += 2,
            OptionKind::Valued | OptionKind::Unknown => return None,
        }
    }
    words.get(at..)
}

/// Whether the first argument of a program may be a toolchain: `+nightly`.
pub fn has_toolchains(program: &str) -> bool {
    Names("cargo rustc rustdoc").has(program)
}

pub fn has_single_dash_words(program: &str) -> bool {
    SINGLE_DASH_WORDS.has(program)
}

/// The letters an argument stands for: `rf` for `-rf`, `r` for the `--recursive` of `rm`.
pub fn option_letters(program: &str, argument: &str) -> String {
    if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
        let same = LONG_FORMS
            .iter()
            .find(|(of, name, _)| *of == program && name.trim_start_matches('-').starts_with(long));
        return same.map_or_else(String::new, |(_, _, letters)| (*letters).to_owned());
    }
    let letters = argument.strip_prefix('-').filter(|_| !has_single_dash_words(program));
    letters.unwrap_or_default().to_owned()
}

/// Other names of sub-commands.
const ALIASES: &[(&str, &str, &str)] = &[
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

/// The full name of a sub-command. npm accepts any abbreviation.
pub fn full_name(program: &str, given: &str, wanted: &str) -> String {
    if let Some((_, _, name)) =
        ALIASES.iter().find(|(of, other, _)| *of == program && *other == given)
    {
        return (*name).to_owned();
    }
    match program == "npm" && given.len() > 2 && wanted.starts_with(given) {
        true => wanted.to_owned(),
        false => given.to_owned(),
    }
}
