//! Whether a program may be executed with the arguments that it gets, where it gets them.
//!
//! The arguments have to be what the command says, and the keeper knows more than the policy did: what became of each
//! word, and the directory. So where a rule allows one use of a program that can run anything, it is asked again.

use std::fs;
use std::path::Path;

use mcpz_policy::Reach;

use super::target::Target;
use crate::exec_rules::{AllowedCall, AllowedProgram, Argument, CallLimit};

/// Whether a program may be executed with these arguments, of which the first is its name. By another name or path it
/// may take the others differently.
pub fn takes(program: &AllowedProgram, target: &Target, arguments: &[Vec<u8>]) -> bool {
    let Some(calls) = &program.calls else { return true };
    let Some((name, given)) = arguments.split_first() else { return false };
    let is_its_name =
        name == target.name().as_bytes() || name == target.path.as_os_str().as_encoded_bytes();
    is_its_name && calls.iter().any(|call| fits(call, program, target, given))
}

fn fits(call: &AllowedCall, program: &AllowedProgram, target: &Target, given: &[Vec<u8>]) -> bool {
    let Some(counts) = counts(&call.words, given) else { return false };
    let Some(limit) = &call.limit else { return true };
    let Ok(rule) = mcpz_policy::Limit::new(&limit.rule, &program.name) else { return false };
    let directory = target.directory();
    let is_allowed = |words: &[&str]| {
        let place = rule.place(words);
        place.is_some_and(|place| is_within(&place, limit, &directory))
    };
    let given: Result<Vec<_>, _> = given.iter().map(|word| std::str::from_utf8(word)).collect();
    let Ok(given) = given else { return false };
    // The rule counts what a pattern became as the one word that it was.
    is_allowed(&given) || {
        let most = counts.iter().copied().max().unwrap_or(0);
        most > 1 && (0..most).all(|nth| is_allowed(&reading(&given, &counts, nth)))
    }
}

/// The arguments with only one of those that each word became.
fn reading<'a>(given: &[&'a str], counts: &[usize], nth: usize) -> Vec<&'a str> {
    let (mut at, mut words) = (0, Vec::new());
    for count in counts {
        words.extend(nth.checked_rem(*count).map(|nth| given[at + nth]));
        at += count;
    }
    words
}

/// Whether a directory is where the rule holds, and nothing that the call adds leads out of there by a link.
fn is_within(place: &mcpz_policy::Place, limit: &CallLimit, directory: &Path) -> bool {
    let begin = &limit.directory;
    let is_below = |path: &Path| !begin.as_os_str().is_empty() && path.starts_with(begin);
    let is_there = match place.reach {
        Reach::Anywhere => true,
        Reach::Here => directory == begin,
        Reach::Below => is_below(directory),
    };
    // Each may be meant from the one before.
    let mut last = directory.to_owned();
    is_there
        && place.added.iter().all(|added| {
            last.push(added);
            [&last, &directory.join(added)].iter().all(|path| is_inside(path, &is_below))
        })
}

/// Whether a path leads inside, or nowhere yet but to a new name inside.
fn is_inside(path: &Path, is_below: &impl Fn(&Path) -> bool) -> bool {
    match fs::canonicalize(path) {
        Ok(real) => is_below(&real),
        Err(_) => {
            let is_new = fs::symlink_metadata(path).is_err() && path.file_name().is_some();
            is_new && path.parent().is_some_and(|folder| is_inside(folder, is_below))
        }
    }
}

/// How many of the given words each of the expected ones stands for. `None` if they do not fit.
fn counts(words: &[Argument], given: &[Vec<u8>]) -> Option<Vec<usize>> {
    // For each word, how many of the given ones those before it may stand for.
    let mut all = vec![vec![false; given.len() + 1]];
    all[0][0] = true;
    for word in words {
        let reached = all.last()?;
        let may_be_none = matches!(word, Argument::Many | Argument::Operands);
        let repeats = may_be_none || matches!(word, Argument::AllBegin(_));
        let mut next = if may_be_none { reached.clone() } else { vec![false; reached.len()] };
        for (at, given) in given.iter().enumerate() {
            let before = reached[at] || repeats && next[at];
            next[at + 1] |= before && is(word, given);
        }
        all.push(next);
    }
    let mut end = given.len();
    all.last()?.get(end).filter(|fits| **fits)?;
    let mut counts = vec![0; words.len()];
    for (at, word) in words.iter().enumerate().rev() {
        let count = (0..=end).find(|count| {
            let stands = given[end - count..end].iter().all(|given| is(word, given));
            let allowed = match word {
                Argument::Many | Argument::Operands => true,
                Argument::AllBegin(_) => *count > 0,
                _ => *count == 1,
            };
            allowed && stands && all[at][end - count]
        })?;
        counts[at] = count;
        end -= count;
    }
    Some(counts)
}

/// Whether a word may be this one.
fn is(word: &Argument, given: &[u8]) -> bool {
    let climbs = |path: &[u8]| path.split(|byte| *byte == b'/').filter(|it| it == b"..").count();
    match word {
        Argument::Known(known) => known.as_bytes() == given,
        Argument::Begins(start) => given.starts_with(start.as_bytes()),
        Argument::AllBegin(start) => {
            given.starts_with(start.as_bytes()) && climbs(given) == climbs(start.as_bytes())
        }
        Argument::Any | Argument::Many => true,
        Argument::Operand | Argument::Operands => !given.starts_with(b"-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_path_leads_inside_or_to_a_new_name_there() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let real = fs::canonicalize(inside.path()).unwrap();
        let leads = |path: &str| is_inside(&real.join(path), &|it| it.starts_with(&real));
        std::os::unix::fs::symlink(outside.path(), real.join("out")).unwrap();
        std::os::unix::fs::symlink("nowhere", real.join("dangling")).unwrap();
        assert!(leads(".") && leads("new") && leads("new/newer"));
        for path in ["out", "out/new", "dangling", "..", "new/../../x", "/etc"] {
            assert!(!leads(path), "{path}");
        }
    }

    #[test]
    fn a_pattern_became_words_that_begin_like_it() {
        let words = [Argument::AllBegin("scripts/".to_owned()), Argument::Many];
        assert_eq!(counts(&words, &bytes(&["scripts/a.py"])), Some(vec![1, 0]));
        for given in [&["e.py"][..], &["scripts/../e.py"], &["-m", "scripts/a.py"], &[]] {
            assert_eq!(counts(&words, &bytes(given)), None, "{given:?}");
        }
    }

    #[test]
    fn a_rule_counts_what_a_pattern_became_as_one_word() {
        let words = [Argument::AllBegin("t/".to_owned()), Argument::Known("-v".to_owned())];
        let given = ["t/a", "t/b", "-v"];
        let counts = counts(&words, &bytes(&given)).expect("they fit");
        assert_eq!(counts, [2, 1]);
        assert_eq!(reading(&given, &counts, 1), ["t/b", "-v"]);
    }
}
