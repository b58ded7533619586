//! `alias`: names that stand for the beginning of a command.
//!
//! A shell puts the text of an alias in place of its name before it parses the line. Only texts that are plain words
//! are understood: they stay words of the same command.

use crate::action::{Action, Actions, Runner};
use crate::names::Names;
use crate::script::{Word, is_listing};

/// Words with which a shell begins something other than a command.
const RESERVED: Names =
    Names("case coproc do done elif else esac fi for function if in select then time until while");

pub fn inspect(actions: &mut Actions<'_>, words: &[Word]) {
    let what = "an alias can be any command; use a function, or write the command out";
    for word in words {
        let text = word.text();
        match text.as_deref().map(|text| text.split_once('=')) {
            Some(None) => {}
            Some(Some((name, value))) if is_listing(name) && !prints_as_before(name, value) => {
                let why = "what this command prints is trusted; choose another name for the alias";
                return actions.opaque(word.span.clone(), why);
            }
            Some(Some((name, value))) if is_plain(name, value) => {
                if actions.knowledge.has_many_aliases() {
                    return actions.opaque(word.span.clone(), "there are too many aliases");
                }
                let span = || word.span.clone();
                let words = value.split(' ').filter(|part| !part.is_empty());
                let words = words.map(|part| Word::known(part, span())).collect();
                actions.push(Action::Alias { name: name.to_owned(), words });
                let (text, by) = (value.to_owned(), Runner::ThisShell);
                actions.push(Action::RunScript { text, span: span(), by });
            }
            _ => return actions.opaque(word.span.clone(), what),
        }
    }
}

/// Whether a command prints the same things by this alias, perhaps with marks or in colour.
fn prints_as_before(name: &str, value: &str) -> bool {
    let marks = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        name == "ls" && !letters.is_empty() && letters.chars().all(|it| "1AFGahl".contains(it))
    };
    let mut words = value.split(' ');
    words.next() == Some(name) && words.all(|word| word == "--color=auto" || marks(word))
}

/// Whether the value is plain words, of which the first names a program.
fn is_plain(name: &str, value: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_part = |c: char| is_letter(c) || " /:,@%+=".contains(c);
    let first = value.split(' ').next().unwrap_or_default();
    let is_name = |name: &str| !name.is_empty() && !RESERVED.has(name);
    is_name(name)
        && name.chars().all(is_letter)
        && is_name(first)
        && !first.contains('=')
        // Behind a blank, the next word of the command may be an alias as well.
        && !value.ends_with(' ')
        && value.chars().all(is_part)
}
