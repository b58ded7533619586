//! Builtins that take the names of variables. A name can have a subscript, which bash evaluates as code.

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::programs::arguments::{Argument, OptionSyntax, parse};
use crate::script::Word;

const NAMES: OptionSyntax = OptionSyntax { stops_at_operand: false, ..OptionSyntax::STRICT };

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let words = call.arguments();
    match name {
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(actions, words),
        "read" => {
            all(actions, words, &OptionSyntax { valued: "adinNptu", flags: "ersE", ..NAMES }, "a")
        }
        "mapfile" | "readarray" => {
            all(actions, words, &OptionSyntax { valued: "dnOsuCc", flags: "t", ..NAMES }, "")
        }
        "getopts" => all(actions, words.get(1..2).unwrap_or_default(), &NAMES, ""),
        "wait" => wait(actions, words),
        "printf" => printf(actions, words),
        "unset" => unset(actions, words),
        "let" => expressions(actions, words),
        "test" | "[" => test(actions, words),
        _ => {}
    }
}

/// Lists the variables a builtin sets: its operands, and the value of one option.
fn all(actions: &mut Actions<'_>, words: &[Word], syntax: &OptionSyntax, naming: &str) {
    let arguments = match parse(syntax, words) {
        Ok((arguments, _)) => arguments,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value: Some(word), .. } if name == naming => {
                one(actions, &word);
            }
            Argument::Option { name, span, .. } if name == "C" => {
                return actions.opaque(span, "its callback is a command");
            }
            Argument::Option { .. } => {}
            Argument::Operand(word) | Argument::Unknown(word) => one(actions, &word),
        }
    }
}

/// Sets a variable to a value that only the run will know.
fn one(actions: &mut Actions<'_>, word: &Word) {
    let Some(text) = word.text() else {
        return actions.unresolved(word.span.clone(), "the name of a variable");
    };
    subscript(actions, &text, word);
    let name = text.split('[').next().unwrap_or_default().to_owned();
    actions.push(Action::Assign { name, value: None, span: word.span.clone() });
}

fn subscript(actions: &mut Actions<'_>, text: &str, word: &Word) {
    if text.contains('[') && text.contains(['$', '`']) {
        evaluate(actions, text, word);
    }
}

fn evaluate(actions: &mut Actions<'_>, text: &str, word: &Word) {
    actions.push(Action::Evaluate { text: text.to_owned(), span: word.span.clone() });
}

/// `export` and the like: assignments as arguments.
fn declare(actions: &mut Actions<'_>, words: &[Word]) {
    for word in words {
        let (prefix, text) = (word.prefix(), word.text());
        if let Some(letters) = prefix.strip_prefix(['-', '+']) {
            if text.is_none() {
                return actions.unresolved(word.span.clone(), "an option of the shell");
            }
            // Functions for other processes, and references to other names.
            if letters.contains(['f', 'F', 'n']) {
                return actions.opaque(word.span.clone(), "a name can stand for another");
            }
            // Bash evaluates numbers, and arrays given as text.
            if letters.contains(['i', 'a', 'A']) {
                actions.push(Action::EvaluateVariables);
            }
            continue;
        }
        if let Some(text) = &text {
            subscript(actions, text, word);
            if text.contains("=(") && text.contains(['$', '`']) {
                evaluate(actions, text, word);
            }
        }
        if word.has_braces() {
            return actions.unresolved(word.span.clone(), "the name of a variable");
        }
        let Some((name, value)) = prefix.split_once('=') else {
            // Without a value it only becomes visible to other processes; its value was judged before.
            match text {
                Some(_) => continue,
                None => return actions.unresolved(word.span.clone(), "the name of a variable"),
            }
        };
        let name = name.split(['[', '+']).next().unwrap_or_default().to_owned();
        let value = text.is_some().then(|| Word::known(value, word.span.clone()));
        actions.push(Action::Assign { name, value, span: word.span.clone() });
    }
}

/// `wait -p name`.
fn wait(actions: &mut Actions<'_>, words: &[Word]) {
    let syntax = OptionSyntax { valued: "p", flags: "fn", ..NAMES };
    let arguments = match parse(&syntax, words) {
        Ok((arguments, _)) => arguments,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    for argument in arguments {
        if let Argument::Option { value: Some(name), .. } = argument {
            one(actions, &name);
        }
    }
}

/// `printf -v name`.
fn printf(actions: &mut Actions<'_>, words: &[Word]) {
    let Some(first) = words.first() else { return };
    let Some(text) = first.text() else {
        let prefix = first.prefix();
        let known = [prefix.clone(), first.suffix()].concat();
        // `-v` takes a name, and no name has such a character.
        let has_other = known.contains(|c: char| !c.is_alphanumeric() && !"-_[]".contains(c));
        let is_format = (first.is_single() && has_other)
            || (!prefix.is_empty() && !prefix.starts_with('-'))
            || (first.is_single() && words.len() == 1);
        if !is_format && actions.may_be_option(first) {
            actions.unresolved(first.span.clone(), "the name of a variable");
        }
        return;
    };
    match text.strip_prefix("-v") {
        Some("") => words.get(1).into_iter().for_each(|name| one(actions, name)),
        Some(name) => one(actions, &Word::known(name, first.span.clone())),
        None => {}
    }
}

/// `unset`: the variable becomes empty, and the name may be a function's.
fn unset(actions: &mut Actions<'_>, words: &[Word]) {
    actions.push(Action::UnsetFunctions);
    for word in words {
        let Some(text) = word.text() else {
            return actions.unresolved(word.span.clone(), "the name of a variable");
        };
        subscript(actions, &text, word);
        actions.push(Action::Unset { name: text.into_owned() });
    }
}

/// `let`: arithmetic in arguments.
fn expressions(actions: &mut Actions<'_>, words: &[Word]) {
    actions.push(Action::EvaluateVariables);
    for word in words {
        let prefix = word.prefix();
        if word.text().is_none() && !prefix.contains('=') {
            return actions.unresolved(word.span.clone(), "the name of a variable");
        }
        let text = word.text().unwrap_or(prefix.into());
        subscript(actions, &text, word);
        for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let (name, span) = (name.to_owned(), word.span.clone());
            actions.push(Action::SetOnly { name, value: None, span });
        }
    }
}

/// `test -v name`.
fn test(actions: &mut Actions<'_>, words: &[Word]) {
    // An unknown word may be the `-v`.
    if words.iter().any(|word| word.text().is_none()) {
        actions.push(Action::EvaluateVariables);
    }
    if let Some(braces) = words.iter().find(|word| word.has_braces()) {
        return actions.unresolved(braces.span.clone(), "it may expand to several words");
    }
    let asks = |word: &Word| word.literal().is_some_and(|text| text == "-v" || text == "-R");
    let named = words.iter().position(asks).and_then(|at| words.get(at + 1));
    match named.map(|word| (word, word.text())) {
        Some((word, Some(text))) => subscript(actions, &text, word),
        Some((word, None)) => actions.unresolved(word.span.clone(), "a name can contain code"),
        None => {}
    }
}
