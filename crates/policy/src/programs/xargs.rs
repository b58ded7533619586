//! `xargs` and `parallel`, which run a command for each item they read.

use std::borrow::Cow;

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Actions, Runner};
use crate::call::{Call, Listing};
use crate::names::Names;
use crate::script::{Origin, Word};

/// `xargs`: the command after its options, with unknown words at its end or in place of a mark.
pub fn xargs(actions: &mut Actions<'_>, call: &Call<'_>) {
    let syntax = OptionSyntax {
        valued: "adEILnPs",
        attached: "eil",
        flags: "0rtpxo",
        long_valued: Names("arg-file delimiter max-args max-procs max-chars process-slot-var"),
        long_flags: Names(
            "null no-run-if-empty verbose interactive exit open-tty replace help version \
             show-limits eof max-lines",
        ),
        exact: Names(""),
        stops_at_operand: true,
    };
    let (options, rest) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    let (mut mark, mut zero) = (None, false);
    for option in options {
        match option {
            Argument::Option { name, value, .. } => match (name.as_str(), value) {
                ("0" | "null", _) => zero = true,
                ("d" | "delimiter", _) => zero = false,
                ("I" | "replace", Some(value)) => match value.text() {
                    Some(text) => mark = Some(text.into_owned()),
                    None => return actions.unresolved(value.span, "an xargs option"),
                },
                ("replace" | "i", None) => mark = Some("{}".to_owned()),
                ("i", Some(value)) => mark = value.text().map(Cow::into_owned),
                _ => {}
            },
            Argument::Operand(word) | Argument::Unknown(word) => {
                return actions
                    .unresolved(word.span, "a word that may be an option or the command");
            }
        }
    }
    // Without zero bytes between them, a name with a blank is two words, and the second may be an option.
    let origin = match call.listing {
        Listing::Names => Origin::Listed,
        Listing::Files => Origin::FileName,
        Listing::Paths if zero => Origin::Listed,
        Listing::Paths | Listing::No => Origin::Other,
    };
    let mut words: Vec<_> = match &mark {
        Some(mark) => rest.iter().map(|word| word.replace_mark(mark, &origin)).collect(),
        None => rest,
    };
    if words.is_empty() {
        words.push(Word::known("echo", call.span()));
    }
    if mark.is_none() {
        words.push(Word::listed(&origin, call.span()));
    }
    actions.run(words);
}

/// GNU parallel: a text for a shell, to which it adds each item.
pub fn parallel(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let end = words.iter().position(|word| word.text().is_some_and(|text| text.starts_with(":::")));
    let template = &words[..end.unwrap_or(words.len())];
    let plain =
        |word: &Word| word.text().is_some_and(|text| !text.starts_with('-') && !text.contains('{'));
    match template {
        [first, ..] if plain(first) && template.iter().all(|word| word.text().is_some()) => {
            actions.run_joined(template, Runner::SH);
            let item = Word::unknown(true, call.span());
            actions.run(template.iter().cloned().chain([item]).collect());
        }
        _ => actions.opaque(call.span(), "commands from its input"),
    }
}
