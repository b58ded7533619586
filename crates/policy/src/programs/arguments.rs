//! Parses a program's arguments into options and operands.
//!
//! What cannot be parsed for certain is an error, or [`Argument::Unknown`]: whether a word is an option, its
//! value or the command decides what runs.

use crate::names::Names;
use crate::script::{Span, Word};

/// How a program's options are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct OptionSyntax {
    /// Letters that take a value.
    pub valued: &'static str,
    /// Letters with an optional value, which is the rest of the word.
    pub attached: &'static str,
    /// Letters without a value. If this is empty, every other letter is one.
    pub flags: &'static str,
    /// Long options that take a value.
    pub long_valued: Names,
    /// Long options without a value. If this is empty, every other long option is one.
    pub long_flags: Names,
    /// Long options without a value that are also the beginning of one with a value.
    pub exact: Names,
    /// Whether the first operand ends the options.
    pub stops_at_operand: bool,
}

impl OptionSyntax {
    /// No option at all, up to the first operand. A program's syntax adds the options it has.
    pub const STRICT: Self = Self {
        valued: "",
        attached: "",
        flags: "-",
        long_valued: Names(""),
        long_flags: Names("-"),
        exact: Names(""),
        stops_at_operand: true,
    };

    /// The long option that a name stands for. An abbreviation counts as the first known option it may mean, even if
    /// it is a single letter.
    fn full_name<'a>(&self, given: &'a str) -> &'a str {
        let is_whole =
            self.long_valued.has(given) || self.exact.has(given) || self.long_flags.has(given);
        let meant = self.long_valued.iter().find(|known| known.starts_with(given));
        meant.filter(|_| !is_whole).unwrap_or(given)
    }
}

/// An argument as the program understands it.
#[derive(Debug, Clone)]
pub enum Argument {
    /// An option by its letter or long name.
    Option {
        name: String,
        value: Option<Word>,
        span: Span,
    },
    Operand(Word),
    /// A word that may be an option, or several.
    Unknown(Word),
}

/// Parses arguments. If the first operand ends the options, it and all that follows is in the second list.
/// The error is the span of an unknown option.
pub fn parse(syntax: &OptionSyntax, words: &[Word]) -> Result<(Vec<Argument>, Vec<Word>), Span> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let known = word.text().filter(|_| !word.is_pattern() || !word.beginning().is_empty());
        let Some(text) = known else {
            // A file that a pattern finds may have the name of an option.
            let beginning = word.beginning();
            if beginning.starts_with("--") && beginning.contains('=') && word.is_single() {
                found.push(long(syntax, &beginning, word));
            } else if let Some(name) = valued_letter(syntax, &beginning) {
                // The unknown part is the value: `-j$(nproc)`.
                let value = Some(Word::unknown(false, word.span.clone()));
                found.push(Argument::Option { name, value, span: word.span.clone() });
                if !word.is_single() {
                    found.push(Argument::Unknown(Word::unknown(true, word.span.clone())));
                }
            } else if beginning.is_empty() || beginning.starts_with('-') || !word.is_single() {
                found.push(Argument::Unknown(word.clone()));
            } else if syntax.stops_at_operand {
                return Ok((found, words[at - 1..].to_vec()));
            } else {
                found.push(Argument::Operand(word.clone()));
            }
            continue;
        };
        if text == "--" {
            if syntax.stops_at_operand {
                return Ok((found, words[at..].to_vec()));
            }
            found.extend(words[at..].iter().cloned().map(Argument::Operand));
            break;
        }
        if let Some(name) = text.strip_prefix("--") {
            let bare = name.split('=').next().unwrap_or_default();
            if text.contains('=') {
                let known = syntax.long_valued.has(bare) || syntax.long_flags.has(bare);
                if !known && !syntax.long_flags.is_empty() {
                    return Err(word.span.clone());
                }
                found.push(long(syntax, &text, word));
            } else if syntax.long_valued.has(bare) {
                let value = words.get(at).cloned();
                at += 1;
                // A value that expands to nothing would make the next word the value.
                if value.as_ref().is_some_and(|value| !value.is_single()) {
                    return Err(word.span.clone());
                }
                found.push(Argument::Option {
                    name: bare.to_owned(),
                    value,
                    span: word.span.clone(),
                });
            } else if syntax.exact.has(bare) {
                let span = word.span.clone();
                found.push(Argument::Option { name: bare.to_owned(), value: None, span });
            } else if syntax.long_valued.iter().any(|known| known.starts_with(bare)) {
                // Nobody can tell whether an abbreviation takes the next word.
                return Err(word.span.clone());
            } else if syntax.long_flags.is_empty() || syntax.long_flags.has(bare) {
                found.push(Argument::Option {
                    name: bare.to_owned(),
                    value: None,
                    span: word.span.clone(),
                });
            } else {
                return Err(word.span.clone());
            }
        } else if let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            at += usize::from(cluster(syntax, letters, word, words.get(at), &mut found)?);
        } else if syntax.stops_at_operand {
            return Ok((found, words[at - 1..].to_vec()));
        } else {
            found.push(Argument::Operand(word.clone()));
        }
    }
    Ok((found, Vec::new()))
}

fn long(syntax: &OptionSyntax, text: &str, word: &Word) -> Argument {
    let given = text.trim_start_matches('-').split('=').next().unwrap_or_default();
    let name = syntax.full_name(given).to_owned();
    let value = text.split_once('=').map(|(_, value)| value.to_owned());
    let value = match word.text() {
        Some(_) => value.map(|value| Word::known(value, word.span.clone())),
        None => Some(Word::unknown(false, word.span.clone())),
    };
    Argument::Option { name, value, span: word.span.clone() }
}

/// Parses letters after one dash. True if the last one takes the next word.
fn cluster(
    syntax: &OptionSyntax,
    letters: &str,
    word: &Word,
    next: Option<&Word>,
    found: &mut Vec<Argument>,
) -> Result<bool, Span> {
    for (at, letter) in letters.char_indices() {
        let (name, span) = (letter.to_string(), word.span.clone());
        if syntax.valued.contains(letter) {
            let rest = &letters[at + letter.len_utf8()..];
            let value = match rest {
                "" => next.cloned(),
                rest => Some(Word::known(rest, span.clone())),
            };
            // A value that expands to nothing would make the next word the value.
            if value.as_ref().is_some_and(|value| !value.is_single()) {
                return Err(span);
            }
            found.push(Argument::Option { name, value, span });
            return Ok(rest.is_empty());
        }
        if syntax.attached.contains(letter) {
            let rest = &letters[at + letter.len_utf8()..];
            let value = (!rest.is_empty()).then(|| Word::known(rest, span.clone()));
            found.push(Argument::Option { name, value, span });
            return Ok(false);
        }
        if !syntax.flags.is_empty() && !syntax.flags.contains(letter) {
            return Err(word.span.clone());
        }
        found.push(Argument::Option { name, value: None, span });
    }
    Ok(false)
}

/// The letter whose value is the rest of the word, if it is in the known beginning.
fn valued_letter(syntax: &OptionSyntax, beginning: &str) -> Option<String> {
    let letters = beginning.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let letter = letters.chars().find(|letter| {
        let takes = syntax.valued.contains(*letter) || syntax.attached.contains(*letter);
        takes || !(syntax.flags.is_empty() || syntax.flags.contains(*letter))
    })?;
    let takes = syntax.valued.contains(letter) || syntax.attached.contains(letter);
    takes.then(|| letter.to_string())
}
