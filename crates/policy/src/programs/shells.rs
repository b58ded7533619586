//! Shells that the script starts: what `sh -c`, `sh file` and `… | sh` run.

use crate::action::{Action, Actions, Runner};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::paths::Target;
use crate::script::{Shell, Word};

/// Shells whose scripts are understood.
const UNDERSTOOD: Names = Names("sh bash dash ash rbash");

/// Shells whose scripts are not.
const OTHERS: Names = Names(
    "bash-static csh elvish es fish ion ksh ksh93 ksh2020 lksh loksh mksh mksh-static mrsh murex nu oil oksh osh pdksh \
     posh pwsh rc rksh rksh93 sash tcsh xonsh yash ysh zsh zsh5 zsh-static",
);

/// Letters that only change what the shell reports, or when it stops.
const LETTERS: &str = "abefhlmnprtuvxBCEPT";

/// Names for `set -o` that do not change how a text is read.
const OPTIONS: Names = Names(
    "allexport braceexpand errexit errtrace functrace hashall ignoreeof monitor noclobber \
     noexec noglob nounset physical pipefail privileged verbose xtrace",
);

/// Names for `shopt` that do not change how a text is read.
const SETTINGS: Names = Names(
    "autocd cdspell checkjobs checkwinsize dotglob failglob globasciiranges globstar huponexit inherit_errexit \
     lastpipe nocaseglob nocasematch nullglob",
);

/// Those after which a pattern may become other words than file names with its beginning, or none at all.
const PATTERN_SETTINGS: Names = Names("failglob nocaseglob nullglob");

const LONG: Names = Names("--login --noediting --noprofile --norc --restricted --verbose");

/// What login shells run when they begin and end.
const START_FILES: [&str; 5] =
    [".profile", ".bash_profile", ".bash_login", ".bash_logout", ".bashrc"];

pub fn is_shell(name: &str) -> bool {
    UNDERSTOOD.has(name) || OTHERS.has(name)
}

/// Whether `set -o` with this name is harmless.
pub fn is_option(name: &str) -> bool {
    OPTIONS.has(name)
}

/// Whether `set` with these letters is harmless.
pub fn are_letters(letters: &str) -> bool {
    letters.chars().all(|letter| LETTERS.contains(letter))
}

/// Whether `shopt` with this name is harmless.
pub fn is_setting(name: &str) -> bool {
    SETTINGS.has(name)
}

/// Whether `shopt` with this name changes which words become of a pattern.
pub fn changes_patterns(name: &str) -> bool {
    PATTERN_SETTINGS.has(name)
}

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    if OTHERS.has(name) {
        return actions.opaque(call.span(), "only sh and bash are understood");
    }
    let by = Runner::NewShell(if name.ends_with("bash") { Shell::Bash } else { Shell::Sh });
    let words = call.arguments();
    let (mut at, mut text, mut reads) = (0, false, false);
    while let Some(word) = words.get(at) {
        let Some(option) = word.literal() else {
            return actions.unresolved(word.span.clone(), "an argument of a shell");
        };
        if option == "--help" || option == "--version" {
            return;
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
        let is_login = option == "--login" || (!option.starts_with("--") && letters.contains('l'));
        if is_login && START_FILES.iter().any(|file| actions.knowledge.has_written(file)) {
            return actions
                .opaque(word.span.clone(), "a login shell runs files that the command wrote");
        }
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
                        return actions.opaque(word.span.clone(), "an unknown option");
                    }
                    if letter == 'O' && changes_patterns(&named) {
                        actions.push(Action::ChangePatterns { span: word.span.clone() });
                    }
                    if named == "allexport" {
                        actions.push(Action::ExportAll);
                    }
                    at += 1;
                }
                'a' => actions.push(Action::ExportAll),
                letter if LETTERS.contains(letter) => {}
                _ => return actions.opaque(word.span.clone(), "an unknown option"),
            }
        }
    }
    match words.get(at) {
        Some(script) if text => {
            let arguments = words.get(at + 2..).unwrap_or_default();
            actions.push(Action::SetArguments(arguments.to_vec()));
            actions.run_text(script, by);
        }
        Some(_) if !reads => run_file(actions, call, &words[at..], by),
        Some(_) => {
            actions.push(Action::SetArguments(words[at..].to_vec()));
            run_input(actions, call, by);
        }
        None => run_input(actions, call, by),
    }
}

/// Runs a file with its arguments. Its content is not judged, unless it is the input, or the request wrote it.
pub fn run_file(actions: &mut Actions<'_>, call: &Call<'_>, words: &[Word], by: Runner) {
    // A shell also looks for the file on the PATH, so it may be a denied program.
    actions.push(Action::Open(words.to_vec()));
    let Some(file) = words.first() else { return };
    let Some(path) = file.text() else {
        return actions.unresolved(file.span.clone(), "the file a shell runs");
    };
    match actions.knowledge.target(file) {
        Target::Input => {
            actions.push(Action::SetArguments(words[1..].to_vec()));
            run_input(actions, call, by);
        }
        Target::File if !actions.knowledge.has_written(&path) => {
            if by == Runner::ThisShell {
                actions.push(Action::Source);
            }
        }
        Target::File => {
            let texts = actions.knowledge.texts_of_file(file);
            if texts.is_empty() {
                return actions.opaque(file.span.clone(), UNKNOWN);
            }
            actions.push(Action::SetArguments(words[1..].to_vec()));
            for text in texts {
                actions.push(Action::RunScript { text, span: file.span.clone(), by });
            }
        }
        Target::Special => actions.opaque(file.span.clone(), "its content is unknown"),
    }
}

/// Runs a file that the request wrote, as the kernel does: by the program that its first line names, or by the shell.
pub fn run_written(actions: &mut Actions<'_>, call: &Call<'_>) {
    let file = &call.words[0];
    let texts = actions.knowledge.texts_of_file(file);
    if texts.is_empty() {
        return actions.opaque(file.span.clone(), UNKNOWN);
    }
    for text in texts {
        let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        let Some(first) = first else {
            run_file(actions, call, call.words, Runner::NewShell(call.shell));
            continue;
        };
        let words: Vec<_> = first.split_whitespace().collect();
        // The kernel passes everything behind the program as one argument.
        if words.is_empty() || words.len() > 2 {
            return actions
                .opaque(file.span.clone(), "its first line; name a program and an option");
        }
        let words = words.into_iter().map(|word| Word::known(word, file.span.clone()));
        actions.run(words.chain(call.words.iter().cloned()).collect());
    }
}

const UNKNOWN: &str = "the script wrote this file itself; run it in a call of its own, or write it with cat and a \
     quoted here-document, and with nothing else";

fn run_input(actions: &mut Actions<'_>, call: &Call<'_>, by: Runner) {
    match &call.input {
        Input::Text(text) => {
            actions.push(Action::RunScript { text: text.clone(), span: call.span(), by });
        }
        Input::Typed => {}
        _ => actions.unresolved(
            call.span(),
            "a shell that reads commands from its input; run a file by its name",
        ),
    }
}
