//! `tmux`, which runs a command in a new window as a text for a shell.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

/// Commands of tmux that run nothing.
const HARMLESS: Names = Names(
    "a attach attach-session capture-pane capturep detach detach-client display display-message \
     has has-session kill-pane kill-server kill-session kill-window list-clients list-panes \
     list-sessions list-windows ls lsw lsp select-pane select-window show-options wait-for",
);

/// Commands of tmux that start a program.
const STARTING: Names = Names("new new-session new-window neww split-window splitw respawn-pane");

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    const GLOBAL: OptionSyntax =
        OptionSyntax { valued: "cfLST", flags: "2CDlNquUvV", ..OptionSyntax::STRICT };
    let (options, words) = match parse(&GLOBAL, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    for option in options {
        match option {
            Argument::Option { name, value: Some(text), .. } if name == "c" => {
                return actions.run_text(&text, Runner::SH);
            }
            Argument::Option { name, span, .. } if name == "f" => {
                return actions.opaque(span, "a file that can name programs");
            }
            Argument::Option { name, .. } if name == "V" => return,
            Argument::Option { .. } => {}
            Argument::Operand(word) | Argument::Unknown(word) => {
                return actions.unresolved(word.span, "a word that may be an option");
            }
        }
    }
    let runs = |word: &&Word| word.text().is_none_or(|text| text.contains("#("));
    if let Some(format) = words.iter().find(runs) {
        return actions.opaque(format.span.clone(), "a format can run a command");
    }
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
        Ok((options, _)) if options.iter().any(sets_variable) => {
            actions.opaque(call.span(), "a variable for the command");
        }
        Ok((_, rest)) if rest.is_empty() => actions.opaque(call.span(), "a shell in a terminal"),
        Ok((_, rest)) => actions.run_joined(&rest, Runner::SH),
        Err(span) => actions.opaque(span, "an unknown option"),
    }
}

fn sets_variable(argument: &Argument) -> bool {
    matches!(argument, Argument::Option { name, .. } if name == "e")
}
