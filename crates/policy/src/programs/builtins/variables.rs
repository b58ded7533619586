//! Builtins that take the names of variables: a name can have a subscript, and that is code.

use std::borrow::Cow;

use crate::judge::{Call, Judge, Ruling};
use crate::programs::arguments::{Argument, OptionSyntax, parse};
use crate::script::Word;

const NAMES: OptionSyntax = OptionSyntax { stops_at_operand: false, ..OptionSyntax::STRICT };

/// Judges the names a builtin is given.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    match name {
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(judge, words),
        "read" => {
            all(judge, words, &OptionSyntax { valued: "adinNptu", flags: "ersE", ..NAMES }, "a")
        }
        "mapfile" | "readarray" => {
            all(judge, words, &OptionSyntax { valued: "dnOsuCc", flags: "t", ..NAMES }, "")
        }
        "getopts" => all(judge, words.get(1..2).unwrap_or_default(), &NAMES, ""),
        "wait" => wait(judge, words),
        "printf" => printf(judge, words),
        "unset" => unset(judge, words),
        "let" => expressions(judge, words),
        "test" | "[" => test(judge, words),
        _ => Ok(()),
    }
}

/// Judges the variables a builtin sets: its operands, and the values of one of its options.
fn all(judge: &mut Judge<'_>, words: &[Word], syntax: &OptionSyntax, naming: &str) -> Ruling {
    let arguments = match parse(syntax, words) {
        Ok((arguments, _)) => arguments,
        Err(span) => return judge.opaque(span, "an option that is not known"),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value: Some(word), .. } if name == naming => {
                one(judge, &word)?;
            }
            Argument::Option { name, span, .. } if name == "C" => {
                return judge.opaque(span, "a callback is a command");
            }
            Argument::Option { .. } => {}
            Argument::Operand(word) | Argument::Unknown(word) => one(judge, &word)?,
        }
    }
    Ok(())
}

/// Judges a variable that gets a value nobody knows.
fn one(judge: &mut Judge<'_>, word: &Word) -> Ruling {
    let Some(text) = word.text() else {
        return judge.unresolved(word.span.clone(), "the name of a variable");
    };
    subscript(judge, &text, word)?;
    let name = text.split('[').next().unwrap_or_default();
    judge.knowledge.add_value(name, None);
    judge.variable(name, None, &word.span)
}

fn subscript(judge: &mut Judge<'_>, text: &str, word: &Word) -> Ruling {
    match text.contains('[') && text.contains(['$', '`']) {
        true => judge.evaluate(text, &word.span),
        false => Ok(()),
    }
}

/// `export` and its kin: assignments as arguments.
fn declare(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    for word in words {
        let (beginning, text) = (word.prefix(), word.text());
        if let Some(letters) = beginning.strip_prefix(['-', '+']) {
            if text.is_none() {
                return judge.unresolved(word.span.clone(), "an option of the shell");
            }
            // Functions for others, and names for other names.
            if letters.contains(['f', 'F', 'n']) {
                return judge.opaque(word.span.clone(), "a name can stand for another");
            }
            // Numbers, and arrays from text, are evaluated.
            judge.knowledge.evaluates |= letters.contains(['i', 'a', 'A']);
            continue;
        }
        if let Some(text) = &text {
            subscript(judge, text, word)?;
            if text.contains("=(") && text.contains(['$', '`']) {
                judge.evaluate(text, &word.span)?;
            }
        }
        if word.has_braces() {
            return judge.unresolved(word.span.clone(), "the name of a variable");
        }
        let Some((name, value)) = beginning.split_once('=') else {
            // Without a value it only gets known to others; the value was judged before.
            match text {
                Some(_) => continue,
                None => return judge.unresolved(word.span.clone(), "the name of a variable"),
            }
        };
        let name = name.split(['[', '+']).next().unwrap_or_default();
        let value = text.is_some().then(|| Word::known(value, word.span.clone()));
        judge.knowledge.add_value(name, value.as_ref().and_then(Word::text).map(Cow::into_owned));
        judge.variable(name, value.as_ref(), &word.span)?;
    }
    Ok(())
}

/// `wait -p name`.
fn wait(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let syntax = OptionSyntax { valued: "p", flags: "fn", ..NAMES };
    let arguments = match parse(&syntax, words) {
        Ok((arguments, _)) => arguments,
        Err(span) => return judge.opaque(span, "an option that is not known"),
    };
    for argument in arguments {
        if let Argument::Option { value: Some(name), .. } = argument {
            one(judge, &name)?;
        }
    }
    Ok(())
}

/// `printf -v name`.
fn printf(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let Some(first) = words.first() else { return Ok(()) };
    let Some(text) = first.text() else {
        let beginning = first.prefix();
        let known = [beginning.clone(), first.suffix()].concat();
        // No name has such a sign in it.
        let sure = first.is_single()
            && known.contains(|c: char| !c.is_alphanumeric() && !"-_[]".contains(c));
        let sure = sure || (!beginning.is_empty() && !beginning.starts_with('-'));
        let alone = words.len() == 1 && first.is_single();
        return match sure || alone || !judge.may_be_option(first) {
            true => Ok(()),
            false => judge.unresolved(first.span.clone(), "the name of a variable"),
        };
    };
    match text.strip_prefix("-v") {
        Some("") => words.get(1).map_or(Ok(()), |name| one(judge, name)),
        Some(name) => one(judge, &Word::known(name, first.span.clone())),
        None => Ok(()),
    }
}

/// `unset`: what is gone is empty, and may have been a function.
fn unset(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    judge.knowledge.unsets_functions = true;
    judge.knowledge.has_changed = true;
    for word in words {
        let Some(text) = word.text() else {
            return judge.unresolved(word.span.clone(), "the name of a variable");
        };
        subscript(judge, &text, word)?;
        judge.knowledge.add_value(&text, Some(String::new()));
    }
    Ok(())
}

/// `let`: arithmetic in arguments.
fn expressions(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    judge.knowledge.evaluates = true;
    for word in words {
        let beginning = word.prefix();
        if word.text().is_none() && !beginning.contains('=') {
            return judge.unresolved(word.span.clone(), "the name of a variable");
        }
        let text = word.text().unwrap_or(beginning.into());
        subscript(judge, &text, word)?;
        for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            judge.variable(name, None, &word.span)?;
        }
    }
    Ok(())
}

/// `test -v name`.
fn test(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    // What only the run will know can be the option.
    judge.knowledge.evaluates |= words.iter().any(|word| word.text().is_none());
    if let Some(braces) = words.iter().find(|word| word.has_braces()) {
        return judge.unresolved(braces.span.clone(), "words that only the run will know");
    }
    let asks = |word: &Word| word.literal().is_some_and(|text| text == "-v" || text == "-R");
    let named = words.iter().position(asks).and_then(|at| words.get(at + 1));
    match named.map(|word| (word, word.text())) {
        Some((word, Some(text))) => subscript(judge, &text, word),
        Some((word, None)) => judge.unresolved(word.span.clone(), "a name can have code in it"),
        None => Ok(()),
    }
}
