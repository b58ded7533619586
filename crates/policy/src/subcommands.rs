//! Where a program's sub-command stands: its global options, other spellings of options and sub-commands.
//!
//! To add a program with sub-commands, add a row to `subcommands/globals.rs`; without one, its options count as
//! unknown. Other names of its sub-commands are in `subcommands/aliases.rs`, other words for them and for options in
//! `subcommands/equivalents.rs`, programs that run all their operands
//! in `subcommands/goals.rs`, and long options that mean the same as a letter in `subcommands/long_forms.rs`.

mod aliases;
mod equivalents;
mod git;
mod globals;
mod goals;
mod long_forms;

use crate::names::Names;
use crate::script::Word;
pub use aliases::{all_names, default, is_same, main_name, operands_of_prefix};
pub use equivalents::equivalents;
pub use git::{is_alias as is_git_alias, is_mistyped};
use globals::{GLOBALS, GlobalOptions};
pub use goals::{Goals, adds_goals, goals};

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Flag,
    /// Its value is the next word.
    Valued,
    Unknown,
}

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
        others: &[(Names("ls list"), "ps"), (Names("remove"), "rm")],
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
    Group {
        programs: Names("docker"),
        group: "buildx",
        same: Names("build"),
        others: &[(Names("b"), "build")],
    },
    Group { programs: Names("docker"), group: "builder", same: Names("build"), others: &[] },
    Group {
        programs: Names("rustup"),
        group: "toolchain",
        same: Names("install uninstall"),
        others: &[
            (Names("add update upgrade"), "install"),
            (Names("remove rm delete del"), "uninstall"),
        ],
    },
];

/// Where a word stands: in which groups, or in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    pub const NOWHERE: Self = Self(0);
    /// Where the arguments begin, and after a sub-command.
    pub const OUTSIDE: Self = Self(1);

    pub fn is_outside(self) -> bool {
        self.0 & Self::OUTSIDE.0 != 0
    }

    /// Both places, if only the run will know which.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The place after this word, if it is a group.
    pub fn within(self, program: &str, word: &str) -> Self {
        let is_group = |row: &(usize, &Group)| row.1.programs.has(program) && row.1.group == word;
        match GROUPS.iter().enumerate().find(is_group) {
            Some((at, _)) if self.is_outside() => Self(2 << at),
            _ => Self::NOWHERE,
        }
    }

    /// The names outside of their groups that a sub-command has in this place.
    pub fn names(self, program: &str, sub: &str) -> impl Iterator<Item = &'static str> {
        let here = move |at: &usize| self.0 & (2 << *at) != 0;
        let groups = (0..GROUPS.len()).filter(here).map(|at| GROUPS[at].group);
        groups.filter_map(move |group| ungrouped(program, group, sub))
    }
}

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
    Names("find go java terraform tofu openssl ffmpeg gcc clang qemu xdotool");

/// Programs whose first argument may be letters of options without a dash: `tar xf a.tar`.
const UNDASHED: Names = Names("ar ps tar");

/// Programs that run sub-commands of others as programs of their own: `docker-compose` is `docker compose`.
const PLUGGABLE: Names = Names("cargo docker git kubectl");

fn globals(program: &str) -> Option<&'static GlobalOptions> {
    GLOBALS.iter().find(|globals| globals.programs.has(program))
}

/// Whether an option before the sub-command takes a value.
pub fn option_kind(program: &str, option: &str) -> OptionKind {
    let (long, assigns) = (option.starts_with("--"), option.contains('='));
    // `-j4`
    let jobs = option.strip_prefix("-j").unwrap_or_default();
    let counts_jobs = !jobs.is_empty() && jobs.bytes().all(|byte| byte.is_ascii_digit());
    match globals(program) {
        Some(_) if counts_jobs && Names("make gmake").has(program) => OptionKind::Flag,
        Some(_) if assigns || option.starts_with("--no-") => OptionKind::Flag,
        None if long && assigns => OptionKind::Flag,
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

/// Whether the program's flags may be followed by `true` or `false`, which then belongs to them.
pub fn has_truth_values(program: &str) -> bool {
    Names("npm npx pnpm").has(program)
}

/// Whether `--` ends the options after this word: an option may take it as its value.
pub fn ends_options(program: &str, before: Option<&Word>) -> bool {
    const WITHOUT_VALUES: Names = Names("cd echo kill rm rmdir test true");
    let option = before.map(Word::prefix).filter(|word| word.starts_with('-'));
    option.is_none_or(|option| option.contains('=') || WITHOUT_VALUES.has(program))
}

/// The words of a command whose program is a sub-command of another one: `docker compose up` for `docker-compose up`.
pub fn as_subcommand(name: &str, words: &[Word]) -> Option<Vec<Word>> {
    // `cargo-1.70` is a version of cargo.
    let is_plugin = |sub: &str| !sub.starts_with(|first: char| first.is_ascii_digit());
    let (program, sub) = name.split_once('-')?;
    if !PLUGGABLE.has(program) || !is_plugin(sub) {
        return None;
    }
    let span = words.first()?.span.clone();
    let head = [program, sub].map(|text| Word::known(text, span.clone()));
    // Cargo tells its plugins their name: `cargo-nextest nextest run`.
    let repeats = program == "cargo" && words.get(1)?.literal().is_some_and(|word| word == sub);
    Some([&head, &words[1 + usize::from(repeats)..]].concat())
}

pub fn has_single_dash_words(program: &str) -> bool {
    SINGLE_DASH_WORDS.has(program)
}

/// The letters of options without a dash, if a program takes its first argument for that.
pub fn undashed_letters<'a>(program: &str, first: &'a str) -> &'a str {
    let is_letters = UNDASHED.has(program) && first.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_letters { first } else { "" }
}

/// The letters an argument stands for: `rf` for `-rf`, `r` for the `--recursive` of `rm`.
pub fn option_letters(program: &str, argument: &str) -> String {
    if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
        let long = long.split('=').next().unwrap_or(long);
        return long_forms::letters(program, long);
    }
    let letters = argument.strip_prefix('-').filter(|_| !has_single_dash_words(program));
    letters.unwrap_or_default().to_owned()
}
