//! Programs that run the command after them: `sudo`, `env`, `timeout`, `nice`.
//!
//! To add one, add a row to [`WRAPPERS`] in `wrappers/table.rs`, and a case to `tests/corpus.jsonl`. Only `su`,
//! `runuser` and `coreutils` need code, as their command is an option; `xargs` and `find` are elsewhere, as they change
//! the command's words.

mod table;

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use table::{WRAPPERS, Wrapper};

/// Whether the program only starts the command after it.
pub fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.names.has(name))
}

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    if name == "runuser" || name == "su" {
        return switch_user(actions, name, call);
    }
    if name == "coreutils" {
        return one_of_many(actions, call);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.has(name)) else {
        return;
    };
    let first = call.arguments().first().and_then(Word::literal);
    if first.is_some_and(|first| wrapper.prints.has(&first)) {
        return;
    }
    let (options, mut rest) = match parse(&wrapper.options, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    let mut split = false;
    for option in options {
        // Behind a text that is split, options belong to the command in it.
        if split {
            return actions.opaque(call.span(), "options after text that is split into words");
        }
        match option {
            Argument::Option { name, value: Some(value), .. } => {
                if wrapper.splits.has(&name) {
                    rest = split_string(actions, &value, &rest);
                    split = true;
                } else if wrapper.enters.has(&name) {
                    actions.push(Action::Enter(value));
                } else if wrapper.writes.has(&name) {
                    match value.prefix().starts_with(['|', '!']) {
                        true => actions.opaque(value.span, "its output goes to a command"),
                        false => actions.push(Action::Write(value)),
                    }
                } else if wrapper.tampers.0.has(&name) {
                    if tampers(&value, wrapper.tampers.1) {
                        return actions.opaque(value.span, "it changes what the command reads");
                    }
                } else if wrapper.sets.has(&name) {
                    set(actions, &value);
                } else if wrapper.scripts.has(&name) {
                    return actions.run_text(&value, Runner::SH);
                }
            }
            Argument::Option { .. } => {}
            Argument::Operand(word) | Argument::Unknown(word) => {
                return actions
                    .unresolved(word.span, "a word that may be an option or the command");
            }
        }
    }
    run_command(actions, wrapper, rest);
}

/// Runs the command in the words after a wrapper's options.
fn run_command(actions: &mut Actions<'_>, wrapper: &Wrapper, mut words: Vec<Word>) {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|_| wrapper.assigns) {
        if assignment(word).is_some() {
            set(actions, word);
        } else if !word.literal().is_some_and(|text| wrapper.skips.has(&text)) {
            break;
        }
        at += 1;
    }
    let operands = words[at..].iter().take(wrapper.operands);
    if let Some(unknown) = operands.into_iter().find(|word| word.literal().is_none()) {
        let what = "a word that may be an option or the command";
        return actions.unresolved(unknown.span.clone(), what);
    }
    words.drain(..(at + wrapper.operands).min(words.len()));
    let number = words.first().filter(|_| wrapper.takes_number).and_then(Word::literal);
    if number.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
        words.remove(0);
    }
    let Some(first) = words.first() else { return };
    if let Some(option) = first.literal().filter(|text| text.starts_with('-')) {
        // `flock file -c script`
        if wrapper.scripts.iter().any(|name| is_spelled(name, &option)) {
            return words.get(1).into_iter().for_each(|text| actions.run_text(text, Runner::SH));
        }
        return actions.opaque(first.span.clone(), "an option where the command is expected");
    }
    match wrapper.joins {
        true => actions.run_joined(&words, Runner::SH),
        false => actions.run(words),
    }
}

/// Whether an argument is the option of this name: `-c` for `c`, `--command` for `command`.
fn is_spelled(name: &str, argument: &str) -> bool {
    let dashes = if name.len() == 1 { "-" } else { "--" };
    argument.strip_prefix(dashes) == Some(name)
}

/// Sets a variable for the command: `NAME=value`.
fn set(actions: &mut Actions<'_>, word: &Word) {
    let Some((name, value)) = assignment(word) else { return };
    let (span, value) = (value.span.clone(), Some(value));
    let (to, passed) = (name.clone(), value.clone());
    actions.push(Action::Assign { name, value, span: span.clone() });
    actions.push(Action::Export { name: to, value: passed, span });
}

/// The name and value of a word `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let prefix = word.prefix();
    let (name, value) = prefix.split_once('=')?;
    let value = match word.text() {
        Some(_) => Word::known(value, word.span.clone()),
        None if word.is_single() => Word::unknown(false, word.span.clone()),
        None => return None,
    };
    Some((name.to_owned(), value))
}

/// The words of `env -S`, which splits a text by rules of its own. Only a text that needs none is understood.
fn split_string(actions: &mut Actions<'_>, text: &Word, rest: &[Word]) -> Vec<Word> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./=:,@%+-".contains(c);
    let Some(words) = text.text().filter(|text| text.chars().all(plain)) else {
        actions.opaque(text.span.clone(), "text with its own quoting rules");
        return Vec::new();
    };
    let words = words.split_whitespace().map(|word| Word::known(word, text.span.clone()));
    let words: Vec<_> = words.chain(rest.iter().cloned()).collect();
    if words.first().and_then(Word::literal).is_some_and(|first| first.starts_with('-')) {
        actions.opaque(text.span.clone(), "an unknown option");
        return Vec::new();
    }
    words
}

/// `su` and `runuser`, which start a shell unless an option gives them a command.
fn switch_user(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let syntax = OptionSyntax {
        valued: "cCgGu",
        attached: "",
        flags: "fmp",
        long_valued: Names("command session-command group supp-group user"),
        long_flags: Names("fast preserve-environment pty"),
        exact: Names(""),
        stops_at_operand: true,
    };
    let Ok((options, rest)) = parse(&syntax, call.arguments()) else {
        return actions.opaque(call.span(), "an unknown option");
    };
    let mut user = false;
    for option in options {
        match option {
            Argument::Option { name, value: Some(text), .. }
                if ["c", "C", "command", "session-command"].contains(&name.as_str()) =>
            {
                return actions.run_text(&text, Runner::SH);
            }
            Argument::Option { name, .. } => user |= name == "u" || name == "user",
            _ => return actions.opaque(call.span(), "a word that may be an option"),
        }
    }
    match user && name == "runuser" && !rest.is_empty() {
        true => actions.run(rest),
        false => actions.opaque(call.span(), "a shell that reads commands from its input"),
    }
}

/// `coreutils`, which is many programs in one file, and is told which of them to be.
fn one_of_many(actions: &mut Actions<'_>, call: &Call<'_>) {
    let Some((first, rest)) = call.arguments().split_first() else { return };
    let told = first.literal().and_then(|option| {
        let value = option.strip_prefix("--coreutils-prog")?;
        let value = value.strip_prefix("-shebang").unwrap_or(value);
        Some(Word::known(value.strip_prefix('=')?, first.span.clone()))
    });
    match (told, first.literal().as_deref()) {
        (Some(program), _) => actions.run([&[program], rest].concat()),
        (None, Some("--help" | "--version" | "--list")) => {}
        (None, Some(name)) if !name.starts_with('-') => actions.run(call.arguments().to_vec()),
        _ => actions.opaque(first.span.clone(), "an unknown option"),
    }
}

/// Whether an expression such as `inject=read:…` has a beginning that is not known.
fn tampers(value: &Word, known: Names) -> bool {
    let Some(text) = value.literal() else { return true };
    match text.split_once('=') {
        Some((kind, _)) => !known.has(&format!("{}=", kind.trim_start_matches('!'))),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Input, Listing};
    use crate::knowledge::Knowledge;
    use crate::script::Shell;

    fn actions(words: &[&str]) -> Vec<Action> {
        let words: Vec<_> = words.iter().map(|word| Word::known(*word, 0..0)).collect();
        let (input, shell) = (Input::Other, Shell::Sh);
        let call = Call { words: &words, input, listing: Listing::No, shell, wrappers: 0 };
        let knowledge = Knowledge::default();
        let mut actions = Actions::new(&knowledge);
        inspect(&mut actions, &call.name().unwrap(), &call);
        actions.into_list()
    }

    #[test]
    fn every_row_runs_the_command_after_its_operands() {
        for wrapper in WRAPPERS {
            for name in wrapper.names.iter() {
                let operands = vec!["1"; wrapper.operands];
                let listed = actions(&[&[name], &*operands, &["rm", "x"]].concat());
                let runs = match listed.as_slice() {
                    [Action::Run(words)] => words[0].text().as_deref() == Some("rm"),
                    [Action::RunScript { text, .. }] => wrapper.joins && text == "rm x",
                    _ => false,
                };
                assert!(runs, "{name}: {listed:?}");
                let odd = actions(&[name, "--no-such-option", "rm", "x"]);
                let is_refused = matches!(odd.as_slice(), [Action::Opaque { .. }]);
                let takes_any = wrapper.options.long_flags.is_empty();
                assert!(is_refused || takes_any, "{name}: {odd:?}");
            }
        }
    }

    #[test]
    fn a_priority_may_be_left_out() {
        for words in [&["chrt", "-o", "rm", "ls"][..], &["chrt", "-v", "-b", "0", "rm", "ls"]] {
            let listed = actions(words);
            let [Action::Run(command)] = listed.as_slice() else { panic!("{listed:?}") };
            assert_eq!(command[0].text().as_deref(), Some("rm"));
        }
    }

    #[test]
    fn no_name_has_two_rows() {
        let mut names: Vec<_> = WRAPPERS.iter().flat_map(|wrapper| wrapper.names.iter()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
