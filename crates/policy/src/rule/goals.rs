//! Whether the operands of a program that runs them all contain those that a deny rule names.

use super::{Match, glob, may_end};
use crate::script::Word;
use crate::subcommands::Goals;

/// Whether every goal of the rule is, or may be, among the operands, in any order.
pub fn has_goals(wanted: &[&String], goals: &Goals, words: &[Word]) -> Match {
    let mut given = operands(goals, words);
    let mut added = Vec::new();
    for word in words {
        let beginning = word.prefix();
        match goals.added(&beginning) {
            None if !wanted.is_empty() => return Match::Yes,
            Some(_) if word.text().is_none() && goals.sets_goals(&beginning) => {
                return Match::Maybe;
            }
            Some(more) => added.extend(more.into_iter().map(|goal| Word::known(goal, 0..0))),
            None => {}
        }
    }
    given.extend(&added);
    if given.len() < wanted.len() && given.iter().all(|word| word.is_single()) {
        return Match::No;
    }
    let has = |wanted: &&String| given.iter().map(|word| is_goal(wanted, goals, word)).max();
    let each = wanted.iter().map(|wanted| has(wanted).unwrap_or(Match::No));
    each.min().unwrap_or(Match::Yes)
}

/// The words that may be goals: all but options and their values.
fn operands<'a>(goals: &Goals, words: &'a [Word]) -> Vec<&'a Word> {
    let (mut operands, mut at, mut ended) = (Vec::new(), 0, false);
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text().unwrap_or_default();
        match () {
            () if text == "--" => ended = true,
            () if ended || !text.starts_with('-') => operands.push(word),
            // Its value, if that is one word.
            () if goals.takes_value(&text) && words.get(at).is_some_and(Word::is_single) => at += 1,
            () => {}
        }
    }
    operands
}

fn is_goal(wanted: &str, goals: &Goals, word: &Word) -> Match {
    let pattern = goals.plain(wanted);
    let Some(text) = word.text() else {
        return if may_become(&pattern, goals, word) { Match::Maybe } else { Match::No };
    };
    let given = goals.plain(&text);
    if goals.stands_for_another(&text)
        || glob(&pattern, &given)
        || glob(&pattern, goals.without_project(&given))
        || goals.abbreviate(&text, wanted)
    {
        return Match::Yes;
    }
    // A pattern may become any file name with its end.
    let may_be = word.literal().is_none() && may_become(&pattern, goals, word);
    if may_be { Match::Maybe } else { Match::No }
}

/// Whether a word that only the run will know may be a goal.
fn may_become(pattern: &str, goals: &Goals, word: &Word) -> bool {
    if !word.is_single() && !word.is_pattern() {
        return true;
    }
    let beginning = word.beginning();
    if beginning.starts_with('-') || beginning.contains('=') {
        return false;
    }
    let beginning = beginning.trim_start_matches("./").to_lowercase();
    let head = pattern.split(['*', '?']).next().unwrap_or_default();
    let may_begin =
        !goals.are_plain() || head.starts_with(&beginning) || beginning.starts_with(head);
    may_begin && may_end(pattern, &word.suffix().to_lowercase())
}
