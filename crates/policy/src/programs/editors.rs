//! Editors, which run commands from their arguments or their input.

use crate::action::Actions;
use crate::call::{Call, Input};
use crate::names::Names;
use crate::script::Word;

const EDITORS: Names = Names(
    "ee elvis emacs emacsclient evim ex gview gvim gvimdiff helix hx jed jmacs joe jove jpico jstar \
     kak mcedit mg micro nano ne neovim nvi nvim pico rgview rgvim rjoe rnano rview rvim vi view \
     vigr vile vim vimdiff vimtutor vipw xemacs zile sudoedit",
);

/// Options that run nothing.
const HARMLESS: Names = Names("--clean --version --help -R -n -N -v -h -d -o -O -p --");

pub fn is_editor(name: &str) -> bool {
    EDITORS.has(name)
}

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let runs = |word: &&Word| {
        word.text().is_none_or(|text| {
            let line =
                text.strip_prefix('+').is_some_and(|line| line.bytes().all(|b| b.is_ascii_digit()));
            text.starts_with(['-', '+', '!']) && !HARMLESS.has(&text) && !line
        })
    };
    if matches!(call.input, Input::Text(_) | Input::Unknown) {
        return actions.opaque(call.span(), "an editor that reads its commands from its input");
    }
    if let Some(word) = call.arguments().iter().find(runs) {
        actions.opaque(word.span.clone(), "a command for the editor");
    }
}

/// `ed`, which runs what follows `!` in its input.
pub fn ed(actions: &mut Actions<'_>, call: &Call<'_>) {
    let bang =
        call.arguments().iter().any(|word| word.text().is_none_or(|text| text.starts_with('!')));
    match &call.input {
        Input::Text(text) if !text.contains('!') && !bang => {}
        _ => actions.opaque(call.span(), "an editor that can run commands"),
    }
}

/// `dc`, which runs what follows `!`, unless it compares.
pub fn dc(actions: &mut Actions<'_>, call: &Call<'_>) {
    let runs = |text: &str| {
        let after = text.match_indices('!').map(|(at, _)| text[at + 1..].chars().next());
        after.into_iter().any(|next| !next.is_some_and(|next| "=<>".contains(next)))
    };
    let arguments = call.arguments().iter().map(|word| word.text().map(String::from));
    let input = match &call.input {
        Input::Text(text) => Some(Some(text.clone())),
        Input::Unknown => Some(None),
        Input::Typed | Input::Other => None,
    };
    if arguments.chain(input).any(|text| text.is_none_or(|text| runs(&text))) {
        actions.opaque(call.span(), "a calculator that can run commands");
    }
}
