//! Editors, which run commands from their arguments or their input.

use crate::action::Actions;
use crate::call::{Call, Input};
use crate::names::Names;
use crate::script::Word;

const EDITORS: Names = Names("vim vi nvim ex view vimdiff emacs nano pico gvim");

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
            (text.starts_with('-') || text.starts_with('+')) && !HARMLESS.has(&text) && !line
        })
    };
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
