//! make: its makefile, its options and the values of its variables become commands.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use crate::variables::{is_flags, is_inert, is_make_command};

const SYNTAX: OptionSyntax = OptionSyntax {
    valued: "CfIoWE",
    // A number after `-j` may also be the next word, which is then an operand here.
    attached: "jlO",
    flags: "",
    long_valued: Names(
        "directory file makefile eval include-dir old-file assume-old what-if new-file assume-new \
         shuffle",
    ),
    long_flags: Names(""),
    exact: Names("silent"),
    stops_at_operand: false,
};

/// Variables of make itself, with which it runs something else.
const OWN: Names = Names(".SHELLFLAGS SHELL MAKEFLAGS MAKE MAKEFILES MAKEFILE_LIST .SHELLSTATUS");

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    if actions.knowledge.has_make_code() {
        return actions.opaque(call.span(), "a variable that make runs as code");
    }
    let (arguments, _) = match parse(&SYNTAX, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not spelled out"),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => match (name.as_str(), value) {
                ("E" | "eval", _) => {
                    return actions.opaque(span, "an option that can run a program");
                }
                ("f" | "file" | "makefile", file)
                    if file
                        .as_ref()
                        .is_none_or(|file| actions.knowledge.has_unknown_content(file)) =>
                {
                    return actions.push(Action::UnknownGoals { span });
                }
                _ => {}
            },
            Argument::Unknown(word) if actions.may_be_option(&word) => {
                let what = "a word that may be an option; put ./ or -- before it";
                return actions.unresolved(word.span, what);
            }
            Argument::Operand(word) | Argument::Unknown(word) => variable(actions, &word),
        }
    }
}

/// `NAME=value`, which recipes insert into their commands.
fn variable(actions: &mut Actions<'_>, word: &Word) {
    let prefix = word.prefix();
    let Some((name, value)) = prefix.split_once('=') else { return };
    let (runs, is_known) = (name.ends_with('!'), word.text().is_some());
    let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']);
    let value = value.trim();
    // Make reads it from the environment only.
    if name == "GNUMAKEFLAGS" {
        return;
    }
    // Alternatives in a pattern, such as `TEST='a|b'`, are common; options for compilers have none.
    let is_pattern = !is_flags(name) && value.split('|').all(is_plain_word);
    if runs || !is_known || OWN.has(name) || !(is_inert(value) || is_pattern) {
        return actions.opaque(word.span.clone(), "make can run a variable as code");
    }
    let (known, span) = (Word::known(value, word.span.clone()), word.span.clone());
    let text = value.to_owned();
    let (name, value) = (name.to_owned(), Some(known.clone()));
    match is_make_command(&name) {
        // The environment does not set variables such as `LINK.c`.
        true if name.contains('.') && !text.is_empty() => actions.run_text(&known, Runner::SH),
        true => actions.push(Action::Export { name, value, span }),
        false => {
            actions.push(Action::RunForeign { texts: vec![text], span: span.clone() });
            actions.push(Action::SetOnly { name, value, span });
        }
    }
}

fn is_plain_word(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_^.".contains(&byte))
}
