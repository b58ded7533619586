//! Builtins whose arguments are code, or which change what the shell does later.

use super::arguments::{Argument, Form, split};
use super::{shells, wrappers};
use crate::judge::{Call, Judge, Ruling};
use crate::script::{Shell, Word};
use crate::words::Words;

/// Judges a builtin's arguments.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let first = words.first().and_then(Word::literal);
    let first = first.as_deref();
    match name {
        "eval" if !words.is_empty() => wrappers::joined(judge, words),
        "trap" => trap(judge, words),
        "source" | "." => source(judge, call),
        "alias" => match words.iter().find(|word| !is_plain(word, |text| !text.contains('='))) {
            Some(word) => judge.hides(word.span.clone(), "an alias can be any command"),
            None => Ok(()),
        },
        "hash" => only(judge, words, "a name can stand for any program", |text| {
            !text.starts_with('-') || ["-r", "-l", "-t", "-d"].contains(&text)
        }),
        "enable" => {
            only(judge, words, "builtins can be loaded", |text| ["-a", "-p"].contains(&text))
        }
        "bind" => only(judge, words, "keys can be any command", |text| {
            ["-l", "-p", "-P", "-v"].contains(&text)
        }),
        "complete" | "compgen" | "compopt" => {
            only(judge, words, "completions run commands", |text| text == "-p" || text == "-r")
        }
        "fc" => only(judge, words, "it runs commands again", |text| {
            text == "-l" || !text.starts_with('-') && first == Some("-l")
        }),
        "shopt" => only(judge, words, "it changes how commands are read", |text| {
            ["-s", "-u", "-q", "-p"].contains(&text) || shells::is_setting(text)
        }),
        "set" => set(judge, words),
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(judge, words),
        "read" => names(judge, words, &Form { valued: "adinNptu", flags: "ersE", ..NAMES }, &["a"]),
        "mapfile" | "readarray" => {
            match words.iter().find(|word| !is_plain(word, |t| !t.starts_with("-C"))) {
                Some(word) => judge.hides(word.span.clone(), "a callback is a command"),
                None => names(judge, words, &Form { valued: "dnOsuCc", flags: "t", ..NAMES }, &[]),
            }
        }
        "getopts" => names(judge, words.get(1..2).unwrap_or_default(), &NAMES, &[]),
        "printf"
            if first.is_some_and(|first| first.starts_with("-v"))
                || first.is_none() && !words.is_empty() =>
        {
            printf(judge, words)
        }
        "wait" => match words.iter().position(|word| {
            word.literal()
                .is_some_and(|t| t.starts_with("-p") || t.starts_with("-n") && t.contains('p'))
        }) {
            Some(at) => names(judge, words.get(at + 1..at + 2).unwrap_or_default(), &NAMES, &[]),
            None => Ok(()),
        },
        "unset" | "let" => Ok(()),
        "test" | "[" => {
            let at = words
                .iter()
                .position(|word| word.literal().is_some_and(|text| text == "-v" || text == "-R"));
            match at.and_then(|at| words.get(at + 1)) {
                Some(word) if word.data().is_none() => {
                    judge.unresolved(word.span.clone(), "a name can have code in it")
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

const NAMES: Form = Form {
    valued: "",
    attached: "",
    flags: "",
    long_valued: Words(""),
    long_flags: Words("-"),
    stops: false,
};

fn is_plain(word: &Word, fine: impl Fn(&str) -> bool) -> bool {
    word.data().is_some_and(|text| fine(&text))
}

/// Refuses all arguments but some.
fn only(
    judge: &Judge<'_>,
    words: &[Word],
    why: &'static str,
    fine: impl Fn(&str) -> bool,
) -> Ruling {
    match words.iter().find(|word| !is_plain(word, &fine)) {
        Some(word) => judge.hides(word.span.clone(), why),
        None => Ok(()),
    }
}

fn trap(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let words = match words.first().and_then(Word::literal).as_deref() {
        Some("-p" | "-l" | "-P") => return Ok(()),
        Some("--") => &words[1..],
        _ => words,
    };
    match words {
        [code, _, ..] if code.literal().as_deref() != Some("-") => judge.text(code, Shell::Bash),
        _ => Ok(()),
    }
}

fn source(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let mut words = call.arguments();
    if words.first().and_then(Word::literal).is_some_and(|word| word == "--") {
        words = &words[1..];
    }
    match words.first() {
        Some(file) => shells::file_of(judge, call, file, Shell::Bash),
        None => Ok(()),
    }
}

/// Options of the shell: some change how the rest is read.
fn set(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.data() else {
            // What is unknown here becomes a positional parameter, unless it is an option.
            return match word.is_one()
                && !word.beginning().is_empty()
                && !word.beginning().starts_with(['-', '+'])
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
            return judge.hides(word.span.clone(), "it changes how commands are read");
        }
    }
    Ok(())
}

fn declare(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    for word in words {
        let beginning = word.beginning();
        if let Some(letters) = beginning.strip_prefix(['-', '+']) {
            // Functions for others, and names for other names.
            if letters.contains(['f', 'F', 'n']) && letters != "p" {
                return judge.hides(word.span.clone(), "a name can stand for another");
            }
            continue;
        }
        match word.assignment() {
            Some(assignment) => {
                judge.variable(&assignment.name, Some(&assignment.value), &word.span)?;
            }
            None => match beginning.split_once('=') {
                Some((name, _)) => {
                    let name = name.split(['[', '+']).next().unwrap_or_default().to_owned();
                    let value = word
                        .data()
                        .and_then(|text| text.split_once('=').map(|(_, value)| value.to_owned()));
                    let value = value.map(|value| Word::known(value, word.span.clone()));
                    judge.variable(&name, value.as_ref(), &word.span)?;
                }
                None if word.data().is_none() => {
                    return judge.unresolved(word.span.clone(), "the name of a variable");
                }
                // Without a value it only gets known to others; the value was judged before.
                None => {}
            },
        }
    }
    Ok(())
}

/// Judges the variables a builtin sets: its operands, and the values of some options.
fn names(judge: &mut Judge<'_>, words: &[Word], form: &Form, naming: &[&str]) -> Ruling {
    let Ok((arguments, _)) = split(form, words) else {
        return judge.hides(words[0].span.clone(), "an option that is not known");
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value: Some(word), .. } if naming.contains(&name.as_str()) => {
                name_of(judge, &word)?;
            }
            Argument::Option { .. } => {}
            Argument::Other(word) | Argument::Unknown(word) => name_of(judge, &word)?,
        }
    }
    Ok(())
}

fn name_of(judge: &mut Judge<'_>, word: &Word) -> Ruling {
    match word.data() {
        Some(name) => judge.variable(name.split('[').next().unwrap_or_default(), None, &word.span),
        None => judge.unresolved(word.span.clone(), "the name of a variable"),
    }
}

fn printf(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let Some(first) = words.first().and_then(Word::literal) else {
        // A format that begins with something unknown could be the option.
        let beginning = words.first().map(Word::beginning).unwrap_or_default();
        let sure = !beginning.is_empty() && !beginning.starts_with('-') || words.len() < 3;
        return match sure {
            true => Ok(()),
            false => judge.unresolved(words[0].span.clone(), "the name of a variable"),
        };
    };
    match first.strip_prefix("-v").filter(|name| !name.is_empty()) {
        Some(name) => {
            judge.variable(name.split('[').next().unwrap_or_default(), None, &words[0].span)
        }
        None => match words.get(1) {
            Some(name) => name_of(judge, name),
            None => Ok(()),
        },
    }
}
