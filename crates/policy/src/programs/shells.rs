//! Shells inside of the shell.

use crate::judge::{Call, Input, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Word};

/// Letters that only change how the shell talks, or when it stops.
const LETTERS: &str = "abefhlmnprtuvxBCEPT";

/// Options that are names.
const OPTIONS: Names = Names(
    "allexport braceexpand errexit errtrace functrace hashall ignoreeof monitor noclobber \
     noexec noglob nounset physical pipefail privileged verbose xtrace",
);

/// Settings of `shopt` that do not change how a text is read.
const SETTINGS: Names = Names(
    "autocd cdspell checkjobs checkwinsize dotglob failglob globasciiranges globstar huponexit \
     inherit_errexit lastpipe nocaseglob nocasematch nullglob",
);

const LONG: Names = Names("--login --noediting --noprofile --norc --restricted --verbose");

/// Whether `set -o` may be given the name.
pub fn is_option(name: &str) -> bool {
    OPTIONS.has(name)
}

/// Whether the letters after `set -` are harmless.
pub fn are_letters(letters: &str) -> bool {
    letters.chars().all(|letter| LETTERS.contains(letter))
}

/// Whether `shopt` may be given the name.
pub fn is_setting(name: &str) -> bool {
    SETTINGS.has(name)
}

/// Judges what a shell is told to run.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let shell = if name.ends_with("bash") { Shell::Bash } else { Shell::Sh };
    let words = call.arguments();
    let (mut at, mut text, mut reads) = (0, false, false);
    while let Some(word) = words.get(at) {
        let Some(option) = word.literal() else {
            return judge.unresolved(word.span.clone(), "an argument of a shell");
        };
        if option == "--help" || option == "--version" {
            return Ok(());
        }
        if option == "--" || option == "-" {
            at += 1;
            break;
        }
        let Some(letters) = option.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty())
        else {
            break;
        };
        at += 1;
        if LONG.has(&option) {
            continue;
        }
        for letter in letters.chars() {
            match letter {
                'c' => text = true,
                's' => reads = true,
                'o' | 'O' => {
                    let named = words.get(at).and_then(Word::literal).unwrap_or_default();
                    let known = if letter == 'o' { is_option(&named) } else { is_setting(&named) };
                    if !known {
                        return judge.opaque(word.span.clone(), "an option that is not known");
                    }
                    at += 1;
                }
                letter if LETTERS.contains(letter) => {}
                _ => return judge.opaque(word.span.clone(), "an option that is not known"),
            }
        }
    }
    judge.elsewhere(|judge| match words.get(at) {
        Some(script) if text => judge.text(script, shell),
        Some(_) if !reads => file_of(judge, call, &words[at..], shell),
        _ => input_of(judge, call, shell),
    })
}

/// Judges a file that a shell runs, with its arguments: known by its name, or one that stands for the
/// input.
pub fn file_of(judge: &mut Judge<'_>, call: &Call<'_>, words: &[Word], shell: Shell) -> Ruling {
    // A program that is a script is looked for on the PATH, too.
    judge.denied(words)?;
    let Some(file) = words.first() else { return Ok(()) };
    let Some(path) = file.text() else {
        return judge.unresolved(file.span.clone(), "the file a shell runs");
    };
    if ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&&*path) {
        return input_of(judge, call, shell);
    }
    if path.starts_with("/dev/") || path.starts_with("/proc/") || judge.knowledge.has_written(&path)
    {
        return judge.opaque(file.span.clone(), "what stands in it is not known");
    }
    Ok(())
}

fn input_of(judge: &mut Judge<'_>, call: &Call<'_>, shell: Shell) -> Ruling {
    match &call.input {
        Input::Text(text) => judge.script(text, shell, Some(call.span())),
        Input::Typed => Ok(()),
        _ => judge.unresolved(call.span(), "a shell that reads its commands"),
    }
}
