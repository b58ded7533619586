//! Whether arguments contain what a deny rule names, in any spelling and any reading.

use super::goals::has_goals;
use super::{Match, glob, signals, ungrouped};
use crate::script::Word;
use crate::subcommands::{self, OptionKind, Place};

/// Whether the words contain those of the rule, or others that mean the same.
pub fn covers(rest: &[String], program: &str, words: &[Word]) -> Match {
    let rest = &*ungrouped(rest, program);
    if let Some((signal, others)) = signals::wanted(program, rest) {
        return signals::has_signal(signal, words).min(contains(&others, program, words));
    }
    let others = subcommands::equivalents(program, rest);
    let others = others.iter().map(|other| contains(other, program, words)).max();
    contains(rest, program, words).max(others.unwrap_or(Match::No))
}

/// Whether the words contain those of the rule: sub-commands in order and first, options anywhere.
fn contains(rest: &[String], program: &str, words: &[Word]) -> Match {
    let (wanted, places): (Vec<_>, Vec<_>) =
        rest.iter().partition(|word| is_option(word) || word.contains('=') || is_beginning(word));
    let options = wanted.iter().map(|option| match option.starts_with('-') {
        true if is_letter_with_value(option) => has_value(option, program, words),
        true => has_option(option, program, words),
        false => has_word(option, words),
    });
    let options = options.min().unwrap_or(Match::Yes);
    let words = match words.first().and_then(Word::text) {
        // `cargo +nightly build`
        Some(first) if first.starts_with('+') && subcommands::has_toolchains(program) => {
            &words[1..]
        }
        _ => words,
    };
    let subcommands = match subcommands::goals(program) {
        Some(goals) => has_goals(&places, goals, words),
        None => has_subcommands(&places, program, words),
    };
    options.min(subcommands)
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1
}

/// Whether it stands for operands with a sign before them: `+*`.
fn is_beginning(word: &str) -> bool {
    word.len() == 2 && word.ends_with('*') && word.starts_with(['+', ':'])
}

/// Whether it is a letter with a value, such as `-X=POST`.
fn is_letter_with_value(option: &str) -> bool {
    option.len() > 2 && !option.starts_with("--") && option[2..].starts_with('=')
}

/// Whether an option by its letter, or a long one that means the same, has this value: in the same word or in the next.
fn has_value(wanted: &str, program: &str, words: &[Word]) -> Match {
    let (letter, pattern) = (&wanted[1..2], &wanted[3..]);
    let mut best = Match::No;
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.text() else {
            let beginning = word.prefix();
            if beginning.is_empty() || beginning.starts_with('-') {
                best = best.max(Match::Maybe);
            }
            continue;
        };
        if text == "--" {
            break;
        }
        let value = match text.strip_prefix("--").map(assigned) {
            Some((long, value)) => {
                let letters = subcommands::option_letters(program, &format!("--{long}"));
                if !letters.contains(letter) {
                    continue;
                }
                value.map(str::to_owned)
            }
            None => match text.strip_prefix('-').and_then(|letters| letters.split_once(letter)) {
                Some((_, value)) => Some(value.to_owned()).filter(|value| !value.is_empty()),
                None => continue,
            },
        };
        let next = || words.get(at + 1).map(|next| next.text().map(|text| text.into_owned()));
        match value.map(Some).or_else(next) {
            Some(Some(value)) if glob(pattern, value.strip_prefix('=').unwrap_or(&value)) => {
                return Match::Yes;
            }
            Some(None) => best = Match::Maybe,
            _ => {}
        }
    }
    best
}

/// Whether a word such as `of=/dev/*` is among the arguments.
fn has_word(wanted: &str, words: &[Word]) -> Match {
    let matches = words.iter().map(|word| match word.text() {
        Some(text) if glob(wanted, &text) => Match::Yes,
        Some(_) => Match::No,
        None => Match::Maybe,
    });
    matches.max().unwrap_or(Match::No)
}

fn has_option(wanted: &str, program: &str, words: &[Word]) -> Match {
    let mut letters: Vec<char> = match wanted.strip_prefix("--") {
        // A long option may have a letter with the same meaning.
        Some(_) => subcommands::option_letters(program, wanted).chars().collect(),
        None if !subcommands::has_single_dash_words(program) => wanted[1..].chars().collect(),
        None => vec![],
    };
    let all = letters.clone();
    let (option, wanted_value) = assigned(wanted);
    let (mut unknown, mut ended) = (false, false);
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.text() else {
            let beginning = word.prefix();
            let may_be = beginning.is_empty() || beginning.starts_with('-') || !word.is_single();
            unknown |= may_be && !word.is_listed() && !ended;
            continue;
        };
        if text == "--" {
            let before = at.checked_sub(1).map(|at| &words[at]);
            // The letters of the rule itself take no value.
            let is_wanted = before.and_then(Word::text).is_some_and(|before| {
                let given = before.trim_start_matches('-');
                given.chars().all(|letter| all.iter().any(|it| is_same_letter(*it, letter)))
            });
            if is_wanted || subcommands::ends_options(program, before) {
                break;
            }
            // Most likely the options end here. What is an option for sure still counts.
            ended = true;
            continue;
        }
        let (name, value) = assigned(&text);
        let abbreviates = name.len() > 2 && name.starts_with("--") && option.starts_with(name);
        // Programs with words after a single dash accept two as well.
        let dashed = subcommands::has_single_dash_words(program)
            && name.trim_start_matches('-') == option.trim_start_matches('-');
        if text == *wanted || name == option || abbreviates || dashed {
            let next = || words.get(at + 1).map(Word::text);
            match wanted_value {
                None => return Match::Yes,
                Some(wanted) if value.is_some_and(|value| glob(wanted, value)) => {
                    return Match::Yes;
                }
                Some(_) if value.is_some() => continue,
                Some(wanted) => match next() {
                    Some(Some(next)) if glob(wanted, &next) => return Match::Yes,
                    Some(None) => unknown = true,
                    _ => {}
                },
            }
        }
        let undashed = if at == 0 { subcommands::undashed_letters(program, &text) } else { "" };
        let given = subcommands::option_letters(program, &text) + undashed;
        let had = letters.len();
        // A long option means a letter exactly: `curl --remote-name` is `-O`, not `-o`.
        letters.retain(|letter| match text.starts_with("--") {
            true => !given.contains(*letter),
            false => !given.chars().any(|given| is_same_letter(*letter, given)),
        });
        // Each letter of a long option means all of it: `sed -E` and `-r` are `--regexp-extended`.
        let has_all = letters.is_empty() || (wanted.starts_with("--") && letters.len() < had);
        if had > 0 && has_all {
            return Match::Yes;
        }
    }
    if unknown { Match::Maybe } else { Match::No }
}

/// Whether a letter may be meant by another: a rule may have it in the wrong case.
fn is_same_letter(one: char, other: char) -> bool {
    one.eq_ignore_ascii_case(&other)
}

/// The name and the value of `--name=value`.
fn assigned(option: &str) -> (&str, Option<&str>) {
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

/// Whether the operands begin with these sub-commands. An unknown option may take the next word as its value
/// or not, so both readings count. All of them advance together: one after the other, the time would double with
/// every such option.
fn has_subcommands(wanted: &[&String], program: &str, words: &[Word]) -> Match {
    let nowhere = || vec![Place::NOWHERE; words.len() + 3];
    let mut starts = nowhere();
    starts[0] = Place::OUTSIDE;
    let mut best = Match::No;
    for (nth, wanted) in wanted.iter().enumerate() {
        let wanted = without_dot(wanted).to_lowercase();
        let matches = |name: &str| glob(&wanted, name);
        let mut next = nowhere();
        for (at, word) in words.iter().enumerate() {
            let place = starts[at];
            if place == Place::NOWHERE {
                continue;
            }
            let mut skip = |words: usize, place: Place| {
                let to = (at + words).min(starts.len() - 1);
                starts[to] = starts[to].or(place);
            };
            let Some(text) = word.text() else {
                match word.prefix().starts_with('-') && word.is_single() {
                    true => skip(1, place),
                    false => best = Match::Maybe,
                }
                continue;
            };
            if word.literal().is_none() && !text.starts_with('-') {
                // A pattern may become any file name.
                best = Match::Maybe;
                continue;
            }
            if !text.starts_with('-') || text == "-" {
                let names = subcommands::all_names(program, without_dot(&text), &wanted);
                if (place.is_outside() && names.iter().any(|name| matches(name)))
                    || place.names(program, &text).any(matches)
                {
                    next[at + 1] = Place::OUTSIDE;
                }
                skip(1, place.within(program, &text));
                if let Some(operands) = subcommands::operands_of_prefix(program, &text) {
                    skip(1 + operands, Place::OUTSIDE);
                }
                continue;
            }
            let value = words.get(at + 1);
            let is_truth = |value: &Word| {
                value.text().is_none_or(|text| ["true", "false", "null"].contains(&&*text))
            };
            match subcommands::option_kind(program, &text) {
                OptionKind::Flag => {
                    skip(1, place);
                    if subcommands::has_truth_values(program) && value.is_some_and(is_truth) {
                        skip(2, place);
                    }
                }
                OptionKind::Valued if value.is_some_and(|value| !value.is_single()) => {
                    best = Match::Maybe;
                }
                OptionKind::Valued => skip(2, place),
                OptionKind::Unknown => {
                    skip(1, place);
                    skip(2, place);
                }
            }
        }
        let ends = starts[words.len()..].iter().any(|place| *place != Place::NOWHERE);
        let asks = |word: &Word| word.literal().is_some_and(|it| INFORMATION.contains(&&*it));
        if nth == 0
            && ends
            && !words.iter().any(asks)
            && subcommands::default(program).is_some_and(matches)
        {
            next[words.len()] = Place::OUTSIDE;
        }
        starts = next;
    }
    let found = starts.iter().any(|place| *place != Place::NOWHERE);
    if found { Match::Yes } else { best }
}

/// A path without the `./` before it, which is the same file.
fn without_dot(path: &str) -> &str {
    let rest = path.trim_start_matches("./");
    if rest.is_empty() { path } else { rest }
}

/// Options that make a program print something about itself.
const INFORMATION: [&str; 4] = ["-h", "-v", "--help", "--version"];
