//! Languages whose programs can do anything a shell can.

use std::borrow::Cow;

use crate::judge::{Call, Input, Judge, Ruling};
use crate::names::Names;
use crate::script::Word;

/// Interpreters, and the options behind which a program stands.
const INTERPRETERS: &[(&str, Names)] = &[
    ("python", Names("-c")),
    ("pypy", Names("-c")),
    ("node", Names("-e --eval -p --print -pe")),
    ("nodejs", Names("-e --eval -p --print")),
    ("deno", Names("eval")),
    ("bun", Names("-e --eval")),
    ("perl", Names("-e -E")),
    ("ruby", Names("-e")),
    ("php", Names("-r")),
    ("lua", Names("-e")),
    ("Rscript", Names("-e")),
    ("julia", Names("-e")),
    ("osascript", Names("-e")),
    ("tclsh", Names("")),
    ("irb", Names("")),
    ("ghci", Names("")),
];

/// Options of interpreters whose value is the next word.
const VALUED: Names = Names("-W -X -Q -r -I -E --require --import");

/// Programs that run whatever is in a file, or elsewhere, where it is not judged.
const RUNNERS: Names =
    Names("sh bash dash zsh fish ksh source . sudo make npx docker ssh gdb vim vi emacs ed screen");

fn interpreter(name: &str) -> Option<Names> {
    // Versions belong to the name: `python3.12`.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == bare).map(|(_, options)| *options)
}

/// Whether allowing the program allows everything.
pub fn runs_anything(name: &str) -> bool {
    interpreter(name).is_some() || RUNNERS.has(name)
}

/// Judges a program for an interpreter.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some(options) = interpreter(name) else { return Ok(()) };
    let words = call.arguments();
    if words.first().is_some_and(|first| Names("-V -v --version --help -h").has(&text(first))) {
        return Ok(());
    }
    let is_file = |at: &usize| {
        let value = at.checked_sub(1).is_some_and(|before| VALUED.has(&text(&words[before])));
        !value && words[*at].text().is_none_or(|text| !text.starts_with('-'))
    };
    let file = (0..words.len()).find(is_file);
    let is_inline = |word: &Word| is_inline(options, &text(word));
    let inline = words[..file.unwrap_or(words.len())].iter().position(is_inline);
    let stands_for_input = |word: &Word| text(word).starts_with("/dev/") || word.is_pipe();
    let reads = inline.is_none() && file.is_none_or(|at| stands_for_input(&words[at]));
    let dash = words.iter().any(|word| text(word) == "-");
    if reads || (dash && inline.is_none()) {
        return match &call.input {
            Input::Text(program) => named(judge, call, &[program.into()]),
            Input::Typed => Ok(()),
            _ => judge.unresolved(call.span(), "an interpreter that reads its program"),
        };
    }
    match (inline, file) {
        (Some(at), _) => named(judge, call, &words[at..].iter().map(text).collect::<Vec<_>>()),
        // The program may be a denied one: `node /usr/bin/npm publish`.
        (None, Some(at)) if words[at].literal().is_some() => judge.denied(&words[at..]),
        (None, _) => Ok(()),
    }
}

/// Whether a program stands in the arguments from this one on: `-c`, `-Bc`, `--eval=…`.
fn is_inline(options: Names, text: &str) -> bool {
    let long = |option: &str| option.starts_with("--") && text.starts_with(option);
    let cluster = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let short = |option: &str| {
        let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
        letter.is_some_and(|letter| cluster.is_some_and(|letters| letters.contains(letter)))
    };
    options.iter().any(|option| option == text || long(option) || short(option))
}

fn text(word: &Word) -> Cow<'_, str> {
    word.text().unwrap_or_default()
}

/// Without a list of what is allowed, at least what is denied must not stand in the program.
fn named(judge: &Judge<'_>, call: &Call<'_>, texts: &[Cow<'_, str>]) -> Ruling {
    let denied =
        |text: &Cow<'_, str>| judge.policy.deny.iter().any(|rule| rule.is_mentioned_in(text));
    match judge.policy.allow.is_empty() && texts.iter().any(denied) {
        true => judge.opaque(call.span(), "its program names a denied command"),
        false => Ok(()),
    }
}
