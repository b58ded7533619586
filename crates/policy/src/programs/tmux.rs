//! `tmux`, which runs a command in a new window as a text for a shell.

use super::arguments::{OptionSyntax, parse};
use crate::action::{Actions, Runner};
use crate::call::Call;
use crate::names::Names;

/// Commands of tmux that run nothing.
const HARMLESS: Names = Names(
    "a attach attach-session capture-pane capturep detach detach-client display display-message \
     has has-session kill-pane kill-server kill-session kill-window list-clients list-panes \
     list-sessions list-windows ls lsw lsp select-pane select-window show-options wait-for",
);

/// Commands of tmux that start a program.
const STARTING: Names = Names("new new-session new-window neww split-window splitw respawn-pane");

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let Some(command) = words.first() else {
        return actions.opaque(call.span(), "a shell in a terminal");
    };
    let text = command.literal().unwrap_or_default();
    let several = words.iter().any(|word| word.text().is_some_and(|text| text.ends_with(';')));
    if HARMLESS.has(&text) && !several {
        return;
    }
    if !STARTING.has(&text) || several {
        return actions.opaque(command.span.clone(), "a tmux command that can run any other");
    }
    let syntax =
        OptionSyntax { valued: "cefFnstxylp", stops_at_operand: true, ..OptionSyntax::default() };
    match parse(&syntax, &words[1..]) {
        Ok((_, rest)) if rest.is_empty() => actions.opaque(call.span(), "a shell in a terminal"),
        Ok((_, rest)) => actions.run_joined(&rest, Runner::SH),
        Err(span) => actions.opaque(span, "an unknown option"),
    }
}
