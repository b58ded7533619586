//! Builtins that take the names of variables. A name can have a subscript, which bash evaluates as code.

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::programs::arguments::{Argument, OptionSyntax, parse};
use crate::script::{Piece, Word};

const NAMES: OptionSyntax = OptionSyntax { stops_at_operand: false, ..OptionSyntax::STRICT };

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let words = call.arguments();
    match name {
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(actions, name, call),
        "read" => {
            all(actions, words, &OptionSyntax { valued: "adinNptu", flags: "ersE", ..NAMES }, "a")
        }
        "mapfile" | "readarray" => {
            let names = words.iter().filter_map(Word::literal);
            names.for_each(|name| actions.push(Action::MakeArray { name: name.into_owned() }));
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
                let array = word.literal().unwrap_or_default().into_owned();
                actions.push(Action::MakeArray { name: array });
                one(actions, &word);
            }
            Argument::Option { name, span, .. } if name == "C" => {
                return actions.opaque(span, "its callback is a command");
            }
            Argument::Option { name, span, .. } if name == "e" => {
                return actions.opaque(span, "keys of its line editor run commands");
            }
            Argument::Option { name, value: Some(word), .. }
                if name == "u" && actions.knowledge.may_be_shells_descriptor(&word) =>
            {
                actions.unresolved(word.span, "a descriptor that the command did not open");
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
    actions.push(Action::UseName(word.clone()));
    let name = text.split('[').next().unwrap_or_default().to_owned();
    actions.push(Action::Assign { name, value: None, span: word.span.clone() });
}

/// The subscript of a name: the shell evaluates it.
fn subscript(actions: &mut Actions<'_>, text: &str, word: &Word) {
    let Some((_, inside)) = text.split_once('[') else { return };
    if text.contains(['$', '`']) {
        return evaluate(actions, text, word);
    }
    // It is arithmetic, which can set variables: `x[HOME=5]`.
    let inside = inside.split_once(']').map_or(inside, |(inside, _)| inside);
    if inside.contains('=') || inside.contains("++") || inside.contains("--") {
        evaluate(actions, &format!("$(({inside}))"), word);
    }
}

fn evaluate(actions: &mut Actions<'_>, text: &str, word: &Word) {
    actions.push(Action::Evaluate { text: text.to_owned(), span: word.span.clone() });
}

/// `export` and the like: assignments as arguments.
fn declare(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    // Behind another builtin or in quotes, its arguments are split like those of any command.
    let splits = call.wrappers > 0 || !call.words[0].is_plain();
    let (mut attributes, mut exports) = (String::new(), name == "export");
    for word in call.arguments() {
        let (prefix, text) = (word.prefix(), word.text());
        if let Some(letters) = prefix.strip_prefix(['-', '+']) {
            if text.is_none() {
                return actions.unresolved(word.span.clone(), "an option of the shell");
            }
            // Functions for other processes, and references to other names.
            if letters.contains(['f', 'F', 'n']) {
                return actions.opaque(word.span.clone(), "a name can stand for another");
            }
            exports |= letters.contains('x') && prefix.starts_with('-');
            // Bash evaluates numbers, and arrays given as text.
            if letters.contains(['i', 'a', 'A']) {
                actions.push(Action::EvaluateVariables);
            }
            if letters.contains('A') {
                actions.push(Action::AllowTextKeys);
            }
            attributes.push_str(letters);
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
        if splits && actions.knowledge.may_split(word) {
            return actions.unresolved(word.span.clone(), "it may become several words");
        }
        let Some((name, _)) = prefix.split_once('=') else {
            let Some(text) = text else {
                return actions.unresolved(word.span.clone(), "the name of a variable");
            };
            attribute(actions, &attributes, &text, word);
            if exports {
                let (name, span) = (text.into_owned(), word.span.clone());
                actions.push(Action::Export { name, value: None, span });
            }
            continue;
        };
        let value = after_equals(word).filter(|_| !name.ends_with('+') && !name.contains('['));
        let name = name.split(['[', '+']).next().unwrap_or_default().to_owned();
        attribute(actions, &attributes, &name, word);
        if (attributes.contains(['a', 'A']) || actions.knowledge.is_array(&name))
            && let Some(value) = &value
        {
            fill(actions, value);
        }
        if exports {
            let (name, value) = (name.clone(), value.clone());
            actions.push(Action::Export { name, value, span: word.span.clone() });
        }
        actions.push(Action::Assign { name, value, span: word.span.clone() });
    }
}

/// Lists what an attribute does to all values of a variable, present and future.
fn attribute(actions: &mut Actions<'_>, letters: &str, name: &str, word: &Word) {
    let span = word.span.clone();
    if letters.contains(['a', 'A']) {
        actions.push(Action::MakeArray { name: name.to_owned() });
    }
    if letters.contains('i') {
        actions.push(Action::EvaluateNumber(Word::variable(name, span.clone())));
    }
    // Upper and lower case make another text of each value.
    if letters.contains(['u', 'l', 'c']) {
        actions.push(Action::Assign { name: name.to_owned(), value: None, span });
    }
}

/// Assigns a word to an array: bash reads a text in parentheses as its elements, with keys that it evaluates.
fn fill(actions: &mut Actions<'_>, value: &Word) {
    match value.text() {
        _ if value.is_array() => {}
        Some(text) if text.starts_with('(') => {
            actions.push(Action::EvaluateNumber(Word::known(text, value.span.clone())));
        }
        Some(_) => {}
        None if actions.knowledge.is_inert(value) => {}
        None => actions.unresolved(value.span.clone(), "a text that bash reads as an array"),
    }
}

/// The value in a word `name=value`.
fn after_equals(word: &Word) -> Option<Word> {
    let mut pieces = word.pieces.clone();
    let Some(Piece::Text { text, .. }) = pieces.first_mut() else { return None };
    *text = text.split_once('=')?.1.to_owned();
    pieces.retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
    if pieces.is_empty() {
        return Some(Word::known("", word.span.clone()));
    }
    Some(Word { pieces, span: word.span.clone() })
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
    let rest = match text.strip_prefix("-v") {
        Some("") => {
            words.get(1).into_iter().for_each(|name| one(actions, name));
            words.get(2..)
        }
        Some(name) => {
            one(actions, &Word::known(name, first.span.clone()));
            words.get(1..)
        }
        None => return,
    };
    printf(actions, rest.unwrap_or_default());
}

/// `unset`: the variable becomes empty, and the name may be a function's.
fn unset(actions: &mut Actions<'_>, words: &[Word]) {
    actions.push(Action::UnsetFunctions);
    for word in words {
        let Some(text) = word.text() else {
            return actions.unresolved(word.span.clone(), "the name of a variable");
        };
        subscript(actions, &text, word);
        if text.contains('[') {
            actions.push(Action::UseName(word.clone()));
        }
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
        actions.push(Action::EvaluateNumber(word.clone()));
        for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let (name, span) = (name.to_owned(), word.span.clone());
            actions.push(Action::SetOnly { name, value: None, span });
        }
    }
}

/// `test -v name`.
fn test(actions: &mut Actions<'_>, words: &[Word]) {
    if let Some(braces) = words.iter().find(|word| word.has_braces()) {
        return actions.unresolved(braces.span.clone(), "it may expand to several words");
    }
    if let Some(several) = words.iter().find(|word| actions.knowledge.may_split(word)) {
        let what = "it may become several words, and `-v` can run code; put it in quotes";
        return actions.unresolved(several.span.clone(), what);
    }
    for (at, word) in words.iter().enumerate() {
        let Some(next) = words.get(at + 1) else { return };
        let asks = match word.literal() {
            Some(text) => text == "-v" || text == "-R",
            // An unknown word may be the `-v`.
            None => actions.may_be_option(word),
        };
        if asks && next.text().is_none_or(|text| text.contains('[')) {
            actions.push(Action::UseName(next.clone()));
            next.text().into_iter().for_each(|text| subscript(actions, &text, next));
        }
    }
}
