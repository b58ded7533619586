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
