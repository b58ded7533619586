//! Interpreters of other languages, whose programs can do anything a shell can.

use std::borrow::Cow;

use crate::action::{Action, Actions};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::paths::Target;
use crate::script::Word;

/// Interpreters, and the options that take a program.
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

/// Other programs that run commands from somewhere the policy does not look, such as a file.
const RUNNERS: Names =
    Names("sh bash dash zsh fish ksh source . sudo make npx docker ssh gdb vim vi emacs ed screen");

fn interpreter(name: &str) -> Option<Names> {
    // A version may follow the name: `python3.12`.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == bare).map(|(_, options)| *options)
}

/// Whether the program runs what is written in a language of its own.
pub fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

/// Whether a rule that allows the program allows everything.
pub fn runs_anything(name: &str) -> bool {
    interpreter(name).is_some() || RUNNERS.has(name)
}

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let Some(options) = interpreter(name) else { return };
    let words = call.arguments();
    if words.first().is_some_and(|first| Names("-V -v --version --help -h").has(&text(first))) {
        return;
    }
    let is_file = |at: &usize| {
        let value = at.checked_sub(1).is_some_and(|before| VALUED.has(&text(&words[before])));
        !value && words[*at].text().is_none_or(|text| !text.starts_with('-'))
    };
    let file = (0..words.len()).find(is_file);
    let is_inline = |word: &Word| is_inline(options, &text(word));
    let inline = words[..file.unwrap_or(words.len())].iter().position(is_inline);
    let stands_for_input =
        |word: &Word| actions.knowledge.target(word) != Target::File || word.is_pipe();
    let reads = inline.is_none() && file.is_none_or(|at| stands_for_input(&words[at]));
    let dash = words.iter().any(|word| text(word) == "-");
    if reads || (dash && inline.is_none()) {
        return match &call.input {
            Input::Text(program) => {
                let texts = vec![program.clone()];
                actions.push(Action::RunForeign { texts, span: call.span() });
            }
            Input::Typed => {}
            _ => actions
                .unresolved(call.span(), "an interpreter that reads a program from its input"),
        };
    }
    match (inline, file) {
        (Some(at), _) => {
            let texts = words[at..].iter().map(|word| text(word).into_owned()).collect();
            actions.push(Action::RunForeign { texts, span: call.span() });
        }
        (None, Some(at)) if words[at].literal().is_some() => {
            actions.push(Action::Open(words[at..].to_vec()));
        }
        (None, _) => {}
    }
}

/// Whether an argument introduces a program: `-c`, `-Bc`, `--eval=…`.
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
