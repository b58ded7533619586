//! Builtins whose arguments are code, or which change what the shell does later.

mod variables;

use super::{shells, wrappers};
use crate::judge::{Call, Judge, Ruling};
use crate::script::Word;

/// Judges a builtin's arguments.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let lists = words.first().and_then(Word::literal).as_deref() == Some("-l");
    match name {
        "eval" if !words.is_empty() => wrappers::joined_here(judge, words, judge.shell),
        "trap" => trap(judge, words),
        "source" | "." => source(judge, call),
        "set" => set(judge, words),
        "alias" => only(judge, words, "an alias can be any command", |text| !text.contains('=')),
        "hash" => only(judge, words, "a name can stand for any program", |text| {
            !text.starts_with('-') || ["-r", "-l", "-t", "-d"].contains(&text)
        }),
        "enable" => {
            only(judge, words, "builtins can be loaded", |text| text == "-a" || text == "-p")
        }
        "bind" => only(judge, words, "keys can be any command", |text| {
            ["-l", "-p", "-P", "-v"].contains(&text)
        }),
        "complete" | "compgen" | "compopt" => {
            only(judge, words, "completions run commands", |text| text == "-p" || text == "-r")
        }
        "fc" => only(judge, words, "it runs commands again", |_| lists),
        "shopt" => only(judge, words, "it changes how commands are read", |text| {
            ["-s", "-u", "-q", "-p"].contains(&text) || shells::is_setting(text)
        }),
        _ => variables::inspect(judge, name, call),
    }
}

/// Refuses all arguments but some.
fn only(
    judge: &Judge<'_>,
    words: &[Word],
    why: &'static str,
    fine: impl Fn(&str) -> bool,
) -> Ruling {
    match words.iter().find(|word| !word.text().is_some_and(|text| fine(&text))) {
        Some(word) => judge.opaque(word.span.clone(), why),
        None => Ok(()),
    }
}

fn trap(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let words = match words.first().and_then(Word::literal).as_deref() {
        Some("-p" | "-l" | "-P") => return Ok(()),
        Some("--") => &words[1..],
        _ => words,
    };
    if let Some(several) = words.iter().find(|word| !word.is_single()) {
        return judge.unresolved(several.span.clone(), "words that only the run will know");
    }
    match words {
        [code, _, ..] if code.literal().as_deref() != Some("-") => {
            judge.knowledge.runs_out_of_order = true;
            judge.text_here(code, judge.shell)
        }
        _ => Ok(()),
    }
}

fn source(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let dashes = words.first().and_then(Word::literal).is_some_and(|word| word == "--");
    shells::file_of(judge, call, &words[usize::from(dashes)..], judge.shell)
}

/// Options of the shell: some change how the rest is read.
fn set(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            // What is unknown here becomes a positional parameter, unless it is an option.
            return match word.is_single()
                && !word.prefix().is_empty()
                && !word.prefix().starts_with(['-', '+'])
            {
                true => Ok(()),
                false => judge.unresolved(word.span.clone(), "an option of the shell"),
            };
        };
        let Some(letters) = text.strip_prefix(['-', '+']) else { return Ok(()) };
        if text == "--" || letters.is_empty() {
            return Ok(());
        }
        let options = letters.matches('o').count();
        let named: Vec<_> = (0..options).filter_map(|_| words.next()).collect();
        let known = |word: &&Word| word.literal().is_some_and(|name| shells::is_option(&name));
        if !shells::are_letters(&letters.replace('o', "")) || !named.iter().all(known) {
            return judge.opaque(word.span.clone(), "it changes how commands are read");
        }
    }
    Ok(())
}
