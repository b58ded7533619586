//! Package managers, which run commands that come with packages.

use std::borrow::Cow;

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use crate::subcommands;

/// `npm` and the like: settings can name programs, and reading them is harmless.
pub fn npm(actions: &mut Actions<'_>, program: &str, call: &Call<'_>) {
    let words =
        subcommands::after_global_options(program, call.arguments()).unwrap_or(call.arguments());
    let word = |at: usize| word(words, at);
    let asks_shell = |word: &Word| ["-c", "--shell-mode"].contains(&&*word.prefix());
    if program == "pnpm" && call.arguments().iter().any(asks_shell) {
        return actions.opaque(call.span(), "text for a shell");
    }
    if ["exec", "x", "dlx"].contains(&&*word(0)) {
        run_package(actions, &words[1..]);
    }
    let sets = match &*word(0) {
        "config" | "c" => !["", "get", "list", "ls"].contains(&&*word(1)),
        "set" | "explore" | "edit" => true,
        _ => false,
    };
    if sets {
        actions.opaque(call.span(), "a setting that can run a program");
    }
}

/// Programs that run others in an environment: `uv run`, `bundle exec`.
const RUNNERS: Names = Names(
    "asdf bun bundle conda deno devbox hatch mamba micromamba mise nodenv pdm pipenv pipx pixi \
     poetry pyenv rbenv rye uv",
);

pub fn is_runner(name: &str) -> bool {
    RUNNERS.has(name)
}

/// `uv run` and the like.
pub fn runner(actions: &mut Actions<'_>, program: &str, call: &Call<'_>) {
    let words = call.arguments();
    let words = subcommands::after_global_options(program, words).unwrap_or(words);
    let verb = word(words, 0);
    match &*verb {
        "run" | "exec" | "x" | "dlx" => run_package(actions, &words[1..]),
        // `uv pip install` is `pip install`, `uv tool run` is `uvx`.
        "pip" => actions.push(Action::Open(words.to_vec())),
        "tool" if word(words, 1) == "run" => run_package(actions, &words[2..]),
        _ => {}
    }
}

fn word(words: &[Word], at: usize) -> Cow<'_, str> {
    words.get(at).and_then(Word::text).unwrap_or_default()
}

/// Runs the command after options that do not matter.
pub fn run_package(actions: &mut Actions<'_>, words: &[Word]) {
    let is_option = |word: &&Word| word.text().is_some_and(|text| text.starts_with('-'));
    let command = &words[words.iter().take_while(is_option).count()..];
    if !command.is_empty() {
        actions.push(Action::RunOwn(command.to_vec()));
    }
}

/// `pip config`, which can start an editor and name programs.
pub fn pip(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let words = subcommands::after_global_options("pip", words).unwrap_or(words);
    let verb = words[words.len().min(1)..].iter().find(|word| !word.prefix().starts_with('-'));
    let reads = |verb: &Word| verb.text().is_some_and(|verb| READS.has(&verb));
    if word(words, 0) == "config" && !verb.is_none_or(reads) {
        actions.opaque(call.span(), "a setting that can run a program");
    }
}

/// Sub-commands that only read settings.
const READS: Names = Names("list get debug");

/// `corepack yarn …`, which runs a package manager.
pub fn corepack(actions: &mut Actions<'_>, call: &Call<'_>) {
    const OWN: Names = Names("enable disable prepare use up cache install pack hydrate");
    let words = call.arguments();
    if !words.is_empty() && !OWN.has(&word(words, 0)) && !word(words, 0).starts_with('-') {
        actions.run(words.to_vec());
    }
}

/// Settings of apt that run nothing, by the beginnings of their names.
const APT: Names = Names(
    "acquire::retries acquire::http::timeout acquire::https::timeout acquire::forceipv \
     acquire::check-valid-until acquire::languages apt::install- apt::get:: apt::color debug:: \
     dpkg::lock::timeout dpkg::options::=--force-conf dpkg::progress-fancy dpkg::use-pty quiet",
);

/// `apt-get -o`, whose settings can name programs.
pub fn apt(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    for (at, word) in words.iter().enumerate() {
        let text = word.prefix();
        let long = text.strip_prefix("--").and_then(|long| long.split_once('='));
        let setting = match (&*text, long) {
            ("-o" | "--option", _) => words.get(at + 1).map(Word::prefix),
            (_, Some((name, value))) if "option".starts_with(name) => Some(value.to_owned()),
            (option, None) if option.starts_with("-o") => Some(option[2..].to_owned()),
            _ => continue,
        };
        let setting = setting.unwrap_or_default().to_lowercase();
        if !APT.iter().any(|known| setting.trim_start_matches('=').starts_with(known)) {
            return actions.opaque(word.span.clone(), "a setting that can run a program");
        }
    }
}
