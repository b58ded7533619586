//! Builtins that run their arguments as code, or change what the shell does later.

mod aliases;
mod variables;

use super::shells;
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let words = call.arguments();
    let dashes = words.first().and_then(Word::literal).as_deref() == Some("--");
    let lists = words.first().and_then(Word::literal).as_deref() == Some("-l");
    match name {
        "eval" => {
            let words = &words[usize::from(dashes)..];
            if let Some(word) = words.iter().find(|word| word.text().is_none()) {
                let what = "text that becomes a script; run the program that prints it, and write \
                            out what you need of it";
                actions.unresolved(word.span.clone(), what);
            } else if !words.is_empty() {
                actions.run_joined(words, Runner::ThisShell);
            }
        }
        "jobs" => jobs(actions, words),
        "trap" => trap(actions, words),
        "source" | "." => {
            shells::run_file(actions, call, &words[usize::from(dashes)..], Runner::ThisShell);
        }
        "set" => set(actions, words),
        "shift" => actions.push(Action::ShiftArguments),
        "alias" => aliases::inspect(actions, words),
        "hash" => only(actions, words, "a name can stand for any program", |text| {
            !text.starts_with('-') || ["-r", "-l", "-t", "-d"].contains(&text)
        }),
        "enable" => {
            only(actions, words, "it can load builtins", |text| text == "-a" || text == "-p")
        }
        "bind" => only(actions, words, "a key can be bound to any command", |text| {
            ["-l", "-p", "-P", "-v"].contains(&text)
        }),
        "complete" | "compgen" | "compopt" => {
            only(actions, words, "completions run commands", |text| text == "-p" || text == "-r")
        }
        "fc" if !lists => actions.opaque(call.span(), "it runs commands again"),
        "shopt" => {
            only(actions, words, "it changes how commands are read", |text| {
                ["-s", "-u", "-q", "-p"].contains(&text) || shells::is_setting(text)
            });
            let has = |is: &dyn Fn(&str) -> bool| {
                words.iter().any(|word| word.text().is_some_and(|it| is(&it)))
            };
            if has(&|text| text == "-s") && has(&shells::changes_patterns) {
                actions.push(Action::ChangePatterns { span: call.span() });
            }
        }
        _ => variables::inspect(actions, name, call),
    }
}

/// Refuses all arguments that are not known to be fine.
fn only(actions: &mut Actions<'_>, words: &[Word], why: &'static str, fine: impl Fn(&str) -> bool) {
    let is_fine = |word: &Word| word.text().is_some_and(|text| fine(&text));
    if let Some(word) = words.iter().find(|word| !is_fine(word)) {
        actions.opaque(word.span.clone(), why);
    }
}

fn trap(actions: &mut Actions<'_>, words: &[Word]) {
    let words = match words.first().and_then(Word::literal).as_deref() {
        Some("-p" | "-l" | "-P") => return,
        Some("--") => &words[1..],
        _ => words,
    };
    if let Some(several) = words.iter().find(|word| !word.is_single()) {
        return actions.unresolved(several.span.clone(), "it may expand to several words");
    }
    if let [code, _, ..] = words
        && code.literal().as_deref() != Some("-")
    {
        actions.push(Action::RunLater);
        actions.run_text(code, Runner::ThisShell);
    }
}

/// `jobs -x`, which runs the command after it.
fn jobs(actions: &mut Actions<'_>, words: &[Word]) {
    for (at, word) in words.iter().enumerate() {
        match word.literal().as_deref() {
            Some(text) if text.starts_with('-') && text.contains('x') => {
                return actions.run(words[at + 1..].to_vec());
            }
            None if actions.may_be_option(word) => {
                return actions.unresolved(word.span.clone(), "an option of the shell");
            }
            _ => {}
        }
    }
}

/// `set`: some options change how the shell reads the rest.
/// Whether `set` only switches on or off how the shell checks and shows what it runs: `set -euo pipefail`.
pub fn sets_only_checks(words: &[Word]) -> bool {
    const NAMES: Names = Names("errexit nounset pipefail xtrace");
    let mut words = words.iter().map(Word::literal);
    let mut has_option = false;
    while let Some(word) = words.next() {
        let Some(letters) = word.as_deref().and_then(|word| word.strip_prefix(['-', '+'])) else {
            return false;
        };
        let mut named = letters.matches('o').map(|_| words.next().flatten());
        let names_are_known = named.all(|name| name.is_some_and(|name| NAMES.has(&name)));
        if letters.is_empty() || !letters.chars().all(|it| "euxo".contains(it)) || !names_are_known
        {
            return false;
        }
        has_option = true;
    }
    has_option
}

fn set(actions: &mut Actions<'_>, words: &[Word]) {
    let arguments = |rest: &[Word]| Action::SetArguments(rest.to_vec());
    let mut words = words.iter();
    loop {
        let rest = words.as_slice();
        let Some(word) = words.next() else { return };
        let Some(text) = word.text() else {
            // An unknown word becomes a positional parameter, unless it is an option.
            let prefix = word.prefix();
            if !word.is_single() || prefix.is_empty() || prefix.starts_with(['-', '+']) {
                actions.unresolved(word.span.clone(), "an option of the shell");
            }
            return actions.push(arguments(rest));
        };
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            return actions.push(arguments(rest));
        };
        if text == "--" || letters.is_empty() {
            return actions.push(arguments(words.as_slice()));
        }
        let options = letters.matches('o').count();
        let named: Vec<_> = (0..options).filter_map(|_| words.next()).collect();
        let known = |word: &&Word| word.literal().is_some_and(|name| shells::is_option(&name));
        if !shells::are_letters(&letters.replace('o', "")) || !named.iter().all(known) {
            return actions.opaque(word.span.clone(), "it changes how commands are read");
        }
        let all = |word: &&Word| word.literal().as_deref() == Some("allexport");
        if text.starts_with('-') && (letters.contains('a') || named.iter().any(all)) {
            actions.push(Action::ExportAll);
        }
    }
}
