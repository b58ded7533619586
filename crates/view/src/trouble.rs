//! Whether a line reports trouble, rather than having a word in it that could.
//!
//! `error: x` and `TypeError: x` do; `0 errors`, `error_handling`, `errors.rs` and `test fails ... ok` do not.

use std::ops::Range;

use memchr::{memchr, memmem};

use crate::words::{Word, troubling_words};

/// What may follow the beginning of a word: `fail` is also in `failure`, but not in `failover`.
const ENDINGS: &[&str] =
    &["", "s", "ed", "ing", "ings", "ure", "ures", "ion", "ions", "ked", "king", "error"];

/// What says that there is none of what follows.
const NONE: &[&str] = &["0", "no", "zero", "without", "not", "never"];

/// Values that mean no trouble: `errors: []`.
const HARMLESS: &[&str] = &["0", "none", "null", "nil", "false", "no", "[]", "{}", "\"\"", "''"];

/// How bad a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Warning,
    /// An error or a failure.
    Error,
}

/// Whether a line reports an error, a failure or a warning.
pub fn level(line: &[u8]) -> Option<Level> {
    let mut words = troubling_words(line).peekable();
    if words.peek().is_some()
        && !reports_success(line)
        && let Some(word) = words.find(|word| is_meant(line, word))
    {
        let is_warning = is_warning(line, &word) || form_of_error(line) == Some(Level::Warning);
        return Some(if is_warning { Level::Warning } else { Level::Error });
    }
    form_of_error(line)
}

/// Whether the first word that tells of trouble says that it is a warning. `3 warnings, 1 error` says more.
fn is_warning(line: &[u8], word: &Word) -> bool {
    let Word::Stem(at) = word else { return false };
    let word = line.get(at.clone()).unwrap_or_default();
    let after = line.get(at.end..).unwrap_or_default();
    word.eq_ignore_ascii_case(b"warn") && !after.to_ascii_lowercase().starts_with(b"ings")
}

/// The word by which a line reports an error, a failure or a warning, if there is one.
pub fn trouble(line: &[u8]) -> Option<Range<usize>> {
    if reports_success(line) {
        return None;
    }
    let (Word::Stem(at) | Word::Phrase(at)) =
        troubling_words(line).find(|word| is_meant(line, word))?;
    let before = line.get(..at.start)?.iter().rev().take_while(|byte| is_in_name(**byte)).count();
    let after = line.get(at.end..)?.iter().take_while(|byte| is_in_name(**byte)).count();
    Some(at.start - before..at.end + after)
}

/// Tests that passed may have any name.
fn reports_success(line: &[u8]) -> bool {
    const BEGINNINGS: &[&str] = &["ok ", "✓", "✔", "√", "--- PASS", "PASS ", "PASS\t", "# Subtest"];
    const ENDS: &[&str] = &["... ok", " PASSED", " ok", "✓", "✔"];
    let line = line.trim_ascii();
    // After a result may come its duration, or how far the tests are.
    let end = line.strip_suffix(b"]").or(line.strip_suffix(b")"));
    let result = end.and_then(|end| end.rsplitn(2, |byte| matches!(byte, b'[' | b'(')).nth(1));
    let result = result.unwrap_or(line).trim_ascii();
    BEGINNINGS.iter().any(|it| line.starts_with(it.as_bytes()))
        || ENDS.iter().any(|it| result.ends_with(it.as_bytes()))
}

/// Errors that programs mark in other ways than with a word.
fn form_of_error(line: &[u8]) -> Option<Level> {
    let is_error = match line {
        // pytest, apt, and Go programs that log as Kubernetes does.
        [b'E', b' ', b' ', b' ', ..] | [b'E' | b'W', b':', b' ', ..] => true,
        [b'E' | b'F' | b'W', b'0' | b'1', rest @ ..] => {
            matches!(rest, [b'0'..=b'9', b'0'..=b'3', b'0'..=b'9', b' ', ..])
        }
        _ => is_compiler_message(line),
    };
    let level = if line.first() == Some(&b'W') && !is_compiler_message(line) {
        Level::Warning
    } else {
        Level::Error
    };
    is_error.then_some(level)
}

/// Whether a line is like `main.go:12:5: undefined: x`, and not a note.
fn is_compiler_message(line: &[u8]) -> bool {
    let Some(space) = memchr(b' ', line.get(..256).unwrap_or(line)) else { return false };
    let (place, message) = line.split_at(space);
    let mut parts = place.rsplit(|byte| *byte == b':');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    parts.next().is_some_and(<[u8]>::is_empty)
        && parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_number)
        && parts.next().is_some_and(|file| memchr(b'.', file).is_some())
        && !message.starts_with(b" note:")
        && !message.starts_with(b" help:")
}

fn is_meant(line: &[u8], word: &Word) -> bool {
    match word {
        Word::Phrase(at) => {
            let is_tap = line.get(at.clone()).is_some_and(|it| it.eq_ignore_ascii_case(b"not ok"));
            !is_tap || line.trim_ascii_start().starts_with(b"not ok") && !has(line, b"# TODO")
        }
        Word::Stem(at) => {
            let (before, rest) = line.split_at_checked(at.start).unwrap_or_default();
            let (stem, after) = rest.split_at_checked(at.len()).unwrap_or_default();
            let ending = after.iter().take_while(|byte| is_in_name(**byte)).count();
            let (ending, after) = after.split_at_checked(ending).unwrap_or_default();
            ENDINGS.iter().any(|it| ending.eq_ignore_ascii_case(it.as_bytes()))
                && is_level(before, stem)
                && begins_word(before, stem)
                && ends_word(after)
                && !is_none(before)
                && !has_harmless_value(after)
        }
    }
}

fn has(line: &[u8], what: &[u8]) -> bool {
    memmem::find(line, what).is_some()
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Some words are harmless, unless they are the level of a message.
fn is_level(before: &[u8], stem: &[u8]) -> bool {
    let is_one = stem.eq_ignore_ascii_case(b"critical") || stem.eq_ignore_ascii_case(b"severe");
    !is_one
        || stem.iter().all(u8::is_ascii_uppercase)
        || before.ends_with(b"=")
        || before.ends_with(b"\"")
}

/// Whether a word begins after a text that is not a path, an option or another word.
fn begins_word(before: &[u8], stem: &[u8]) -> bool {
    let is_capital = stem.first().is_some_and(u8::is_ascii_uppercase);
    match before {
        [] => true,
        _ if ends_with_colour(before) => true,
        [.., b'-' | b'/' | b'\\' | b'@' | b'$'] => false,
        [.., b'.'] => is_capital,
        [b':', b':'] => true,
        [.., b':', b':'] => false,
        // `TypeError`, but not `myerror` or `NO_ERROR`.
        [.., letter] if is_in_name(*letter) => {
            is_capital
                && letter.is_ascii_alphabetic()
                && stem.get(1).is_some_and(u8::is_ascii_lowercase)
        }
        _ => true,
    }
}

/// Whether a text ends with a sequence that changes the colour.
fn ends_with_colour(text: &[u8]) -> bool {
    let Some(text) = text.strip_suffix(b"m") else { return false };
    let numbers = text.iter().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
    text.get(..text.len() - numbers).is_some_and(|text| text.ends_with(b"\x1b["))
}

/// Whether a word ends before a text: it is not part of a file's name, a path, a longer word or a call.
fn ends_word(after: &[u8]) -> bool {
    match after {
        [b'-', next, ..] => !next.is_ascii_alphanumeric(),
        [b'.', next, ..] => !is_in_name(*next),
        [b'/' | b'\\', ..] | [b':', b':', ..] | [b'(', b')', ..] | [b'!', b'(', ..] => false,
        _ => true,
    }
}

/// Whether the words before say that there is none: `0 tests failed`, `without any errors`.
fn is_none(before: &[u8]) -> bool {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'(' | b'[' | b'"');
    let Some(before) = before.strip_suffix(b" ") else { return false };
    let mut words = before.rsplit(is_between);
    let says_none = |word: &[u8]| NONE.iter().any(|it| word.eq_ignore_ascii_case(it.as_bytes()));
    match words.next() {
        Some(word) if says_none(word) || word.ends_with(b"n't") => true,
        Some(word) if !word.is_empty() && word.iter().all(u8::is_ascii_alphabetic) => {
            words.next().is_some_and(says_none)
        }
        _ => false,
    }
}

/// Whether what comes after is a value that means none: `errors: 0`, `"error":null`, `failed=0`.
fn has_harmless_value(after: &[u8]) -> bool {
    let after = after.strip_prefix(b"(s)").unwrap_or(after);
    let after = after.trim_ascii_start();
    let after = after.strip_prefix(b"\"").unwrap_or(after).trim_ascii_start();
    let Some((sign @ (b':' | b'='), value)) = after.split_first() else { return false };
    let value = value.trim_ascii_start();
    let harmless = HARMLESS.iter().find_map(|it| {
        let (start, rest) = value.split_at_checked(it.len())?;
        start.eq_ignore_ascii_case(it.as_bytes()).then_some(rest)
    });
    match harmless {
        Some([] | [b',' | b';' | b')' | b']' | b'}' | b'|', ..]) => true,
        Some([b'.', rest @ ..]) => rest.is_empty(),
        Some([b' ' | b'\t', rest @ ..]) => *sign == b'=' || is_next_value(rest),
        _ => false,
    }
}

/// Whether a text begins with the name of another value, such as `passed: 3`.
fn is_next_value(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let name = text.iter().take_while(|byte| is_in_name(**byte)).count();
    text.is_empty() || matches!(text.get(name), Some(b':' | b'='))
}
