//! Package managers, which run commands that come with packages.

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::script::Word;
use crate::subcommands;

/// `npm` and the like: settings can name programs, and reading them is harmless.
pub fn npm(actions: &mut Actions<'_>, program: &str, call: &Call<'_>) {
    let words =
        subcommands::after_global_options(program, call.arguments()).unwrap_or(call.arguments());
    let word = |at: usize| words.get(at).and_then(Word::text).unwrap_or_default();
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

/// `uv run` and the like.
pub fn runner(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let verb = words.first().and_then(Word::text).unwrap_or_default();
    if ["run", "exec", "x"].contains(&&*verb) {
        run_package(actions, &words[1..]);
    }
}

/// Runs the command after options that do not matter.
pub fn run_package(actions: &mut Actions<'_>, words: &[Word]) {
    let is_option = |word: &&Word| word.text().is_some_and(|text| text.starts_with('-'));
    let command = &words[words.iter().take_while(is_option).count()..];
    if !command.is_empty() {
        actions.push(Action::RunOwn(command.to_vec()));
    }
}
