//! The archive that `tar` makes, the folder that it fills, and what else its options name.

use super::{ELSEWHERE, climbs, rest};
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

/// Letters with a value.
const VALUED: &str = "bCfFgHIKLNTVX";

/// Long options that begin like others that matter, but are themselves.
const OTHERS: Names = Names("file get list");

/// Long options that matter here, with the letters they stand for. Beginnings of them count too.
const LONG: &[(&str, char)] = &[
    ("create", 'c'),
    ("append", 'r'),
    ("update", 'u'),
    ("catenate", 'A'),
    ("concatenate", 'A'),
    ("delete", 'r'),
    ("extract", 'x'),
    ("get", 'x'),
    ("to-stdout", 'O'),
    ("absolute-names", 'P'),
    ("file", 'f'),
    ("directory", 'C'),
    ("files-from", 'T'),
    ("listed-incremental", 'g'),
    ("index-file", INDEX),
    ("volno-file", INDEX),
    ("one-top-level", TOP),
];

/// Stand for long options without a letter: one that names a file to write, and one that may name a folder.
const INDEX: char = '>';
const TOP: char = '/';

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let options = options(call.arguments());
    let has = |letters: &str| options.iter().any(|(letter, ..)| letters.contains(*letter));
    let (makes, extracts) = (has("cruA"), has("x") && !has("O"));
    for (letter, word, value) in &options {
        let writes = match letter {
            'f' | 'g' => makes,
            'C' | &TOP => extracts,
            &INDEX => true,
            'P' | 'T' if extracts => {
                let what = match letter {
                    'P' => "the names in the archive, which may lead anywhere",
                    _ => "the names in a list, in which options may be, such as another folder",
                };
                actions.push(Action::UnclearWrite { span: word.span.clone(), what });
                false
            }
            _ => false,
        };
        if let Some(file) = value.as_ref().filter(|_| writes)
            && file.text().as_deref() != Some("-")
        {
            actions.push(Action::Write(file.clone()));
        }
    }
    let mut folders = options.iter().filter(|(letter, ..)| matches!(letter, 'C' | &TOP));
    let climbing = |(_, _, value): &(char, &Word, Option<Word>)| value.as_ref().is_some_and(climbs);
    if extracts && folders.clone().count() > 1 && folders.any(climbing) {
        actions.push(Action::UnclearWrite { span: call.span(), what: ELSEWHERE });
    }
    if extracts && !has("C") {
        let here = Word::known(".", call.span());
        actions.push(Action::Write(here));
    }
}

/// Options by their letters, each with the word it is in and its value.
fn options(words: &[Word]) -> Vec<(char, &Word, Option<Word>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let prefix = word.prefix();
        let is_first = at == 0 && !prefix.starts_with('-');
        at += 1;
        if let Some(long) = prefix.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(rest(word, value))),
                None => (long, None),
            };
            let is = |known: &str| known == name || (!OTHERS.has(name) && known.starts_with(name));
            let meant = LONG.iter().filter(|(known, _)| name.len() > 1 && is(known));
            found.extend(meant.map(|(_, letter)| {
                let next = words.get(at).filter(|_| *letter != TOP).cloned();
                (*letter, word, value.clone().or(next))
            }));
            continue;
        }
        let Some(letters) = prefix.strip_prefix('-').or(is_first.then_some(&*prefix)) else {
            continue;
        };
        for (place, letter) in letters.char_indices() {
            if !VALUED.contains(letter) {
                found.push((letter, word, None));
                continue;
            }
            let after = &letters[place + letter.len_utf8()..];
            // Without a dash, the values of all letters follow in the same order.
            let is_whole = after.is_empty() && word.text().is_some();
            if !is_first && !is_whole {
                found.push((letter, word, Some(rest(word, after))));
                break;
            }
            found.push((letter, word, words.get(at).cloned()));
            at += 1;
        }
    }
    found
}
