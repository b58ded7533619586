//! Words that may turn out to be an option which names a file to write: `git log $x` with `x=--output=/etc/motd`.
//!
//! Names of files are not among them: they have no slash, so a pattern leads nowhere else.

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use crate::subcommands::after_global_options;

/// Sub-commands of git with an option `--output`.
const GIT: Names = Names(
    "archive blame cherry-pick diff diff-files diff-index diff-pairs diff-tree format-patch log \
     merge-tree range-diff reflog rev-list show stash whatchanged",
);

/// Programs of which any operand may name a folder or file to write.
const WRITERS: Names = Names("cp csplit install ln mv split uniq");

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let words = match name {
        "git" => match after_global_options("git", call.arguments()) {
            Some([sub, rest @ ..]) if sub.literal().is_some_and(|sub| GIT.has(&sub)) => rest,
            _ => return,
        },
        name if WRITERS.has(name) => call.arguments(),
        _ => return,
    };
    let is_end = |word: &&Word| word.literal().is_none_or(|text| text != "--");
    let may_be = |word: &&Word| {
        let is_other = name == "git" && is_other_option(word);
        word.text().is_none() && !is_other && actions.may_be_option(word)
    };
    if let Some(word) = words.iter().take_while(is_end).find(may_be) {
        actions.push(Action::HiddenWrite { span: word.span.clone() });
    }
}

/// Whether it is certainly another option of git than `--output`, with a value: `--author=$x`.
fn is_other_option(word: &Word) -> bool {
    let beginning = word.prefix();
    let option = beginning.split_once('=').map(|(option, _)| option);
    word.is_single()
        && option.is_some_and(|it| it.starts_with("--") && !"--output-directory".starts_with(it))
}
