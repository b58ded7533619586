//! Languages whose programs can do anything a shell can.

use crate::judge::{Call, Input, Judge, Ruling};
use crate::script::Word;
use crate::words::Words;

/// Interpreters, and the options behind which a program stands.
const INTERPRETERS: &[(&str, Words)] = &[
    ("python", Words("-c")),
    ("pypy", Words("-c")),
    ("node", Words("-e --eval -p --print -pe")),
    ("nodejs", Words("-e --eval -p --print")),
    ("deno", Words("eval")),
    ("bun", Words("-e --eval")),
    ("perl", Words("-e -E")),
    ("ruby", Words("-e")),
    ("php", Words("-r")),
    ("lua", Words("-e")),
    ("Rscript", Words("-e")),
    ("julia", Words("-e")),
    ("osascript", Words("-e")),
    ("tclsh", Words("")),
    ("irb", Words("")),
    ("ghci", Words("")),
];

/// Programs that are there to run whatever they are told, besides interpreters.
const RUNNERS: Words = Words(
    "sh bash dash zsh fish ksh eval source . env xargs sudo find make npx docker ssh gdb vim vi \
     emacs ed screen",
);

fn interpreter(name: &str) -> Option<Words> {
    // Versions belong to the name: `python3.12`.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == bare).map(|(_, options)| *options)
}

/// Whether allowing the program allows everything.
pub fn runs_anything(name: &str) -> bool {
    interpreter(name).is_some()
        || (RUNNERS.has(name) && name != "find" && name != "env" && name != "xargs")
}

/// Judges a program for an interpreter.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some(options) = interpreter(name) else { return Ok(()) };
    let words = call.arguments();
    let is_file = |word: &Word| word.data().is_none_or(|text| !text.starts_with('-'));
    let dash = words.iter().any(|word| word.data().as_deref() == Some("-"));
    let inline = words.iter().position(|word| {
        word.data().is_some_and(|text| {
            let glued = options.iter().any(|option| option.len() == 2 && text.starts_with(option));
            glued || options.has(&text)
        })
    });
    let asks = words.iter().any(|word| {
        word.data()
            .is_some_and(|text| ["-V", "-v", "--version", "--help", "-h"].contains(&text.as_str()))
    });
    // Somebody else's output as a program.
    let reads = inline.is_none() && !asks && (dash || !words.iter().any(is_file));
    if reads && call.input == Input::Unknown {
        return judge.unresolved(call.span(), "an interpreter that reads its program");
    }
    // The program may be a denied one: `node /usr/bin/npm publish`.
    if let Some(at) = words.iter().position(is_file).filter(|_| inline.is_none()) {
        judge.denied(&words[at..])?;
    }
    if !judge.policy.allow.is_empty() {
        return Ok(());
    }
    // Without a list of what is allowed, at least what is denied must not stand in the program.
    let texts = inline.map(|at| &words[at..]).unwrap_or_default().iter().filter_map(Word::data);
    let input = match &call.input {
        Input::Text(text) if reads => Some(text.clone()),
        _ => None,
    };
    for text in texts.chain(input) {
        if judge.policy.deny.iter().any(|rule| rule.is_named_in(&text)) {
            return judge.hides(call.span(), "its program names a denied command");
        }
    }
    Ok(())
}
