//! What a variable may hold, as far as the script tells.

use super::{Knowledge, is_set_by_shell};
use crate::script::{Assigned, Origin, Piece, Script, Word};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    Text(String),
    Number,
    /// The number of a descriptor.
    Descriptor,
    /// Something that certainly is not an option of a program.
    NotAnOption,
    /// Output of commands that list, which is trusted not to be an option.
    FileName,
    /// A word with other variables in it.
    Word(Word),
    /// The name of a file that this pattern finds.
    Pattern(Word),
    Unknown,
}

impl Value {
    /// The value of an assignment's right side, which the shell neither splits nor replaces by file names.
    pub fn of(word: &Word) -> Self {
        let known = |piece: &Piece| match piece {
            Piece::Text { .. } => true,
            Piece::Unknown { origin, .. } => {
                matches!(
                    origin,
                    Origin::Variable(_) | Origin::Argument | Origin::Number | Origin::Temporary
                )
            }
        };
        match word.pieces.as_slice() {
            _ if word.starts_with_tilde() => Self::NotAnOption,
            _ if word.has_tilde() => Self::Unknown,
            [Piece::Unknown { origin: Origin::Number, .. }] => Self::Number,
            [Piece::Unknown { origin: Origin::Listed, .. }, ..] => Self::NotAnOption,
            _ if word.raw_text().is_some() => Self::Text(word.raw_text().unwrap_or_default()),
            pieces if pieces.iter().all(known) => Self::Word(word.clone()),
            _ if begins_plainly(word) => Self::NotAnOption,
            _ => Self::Unknown,
        }
    }
}

/// Whether an unquoted value with this character becomes something else.
fn is_split(character: char) -> bool {
    " \t\n*?[".contains(character)
}

/// Whether a word's known beginning tells that it is not an option.
fn begins_plainly(word: &Word) -> bool {
    let beginning = word.beginning();
    !beginning.is_empty() && !beginning.starts_with('-')
}

impl Knowledge {
    /// The values that an assignment or a loop gives its variable.
    pub(super) fn values_in(&self, script: &Script, assigned: &Assigned<'_>) -> Vec<Value> {
        let Some(word) = assigned.word else { return vec![Value::Unknown] };
        if let [Piece::Unknown { origin: Origin::Array(elements), .. }] = word.pieces.as_slice() {
            return elements.iter().flat_map(|word| self.expanded(script, word)).collect();
        }
        match (assigned.appends, assigned.expands) {
            (true, _) => vec![Value::Unknown],
            (false, true) => self.expanded(script, word),
            (false, false) => vec![self.listed(script, word).unwrap_or_else(|| Value::of(word))],
        }
    }

    /// The values a variable takes from a word that the shell expands to any number of words.
    fn expanded(&self, script: &Script, word: &Word) -> Vec<Value> {
        if word.has_braces() {
            return match word.alternatives().as_slice() {
                [_] if word.is_number_range() => vec![Value::Number],
                [_] => vec![Value::Unknown],
                words => words.iter().flat_map(|word| self.expanded(script, word)).collect(),
            };
        }
        if word.is_single() {
            return vec![self.listed(script, word).unwrap_or_else(|| Value::of(word))];
        }
        if let [Piece::Unknown { origin, .. }] = word.pieces.as_slice() {
            match origin {
                Origin::Keys if !self.has_text_keys => return vec![Value::Number],
                Origin::Commands(commands) if script.counts_up(commands.clone()) => {
                    return vec![Value::Number];
                }
                Origin::Variable(name) if !self.has_values(name) && !is_set_by_shell(name) => {
                    return vec![Value::of(word)];
                }
                Origin::Variable(_) => {
                    if let Some(texts) = self.texts(word).filter(|_| !self.splits_otherwise()) {
                        let words = texts.iter().flat_map(|text| text.split([' ', '\t', '\n']));
                        let words = words.filter(|word| !word.is_empty());
                        let plain = |text: &str| !text.contains(['*', '?', '[']);
                        return words
                            .map(|text| match plain(text) {
                                true => Value::Text(text.to_owned()),
                                false => Value::Unknown,
                            })
                            .collect();
                    }
                }
                Origin::Arguments | Origin::SplitArguments => {
                    let words = self.arguments.calls.iter().flatten();
                    let values = words.map(|word| match word.is_single() {
                        true if *origin == Origin::Arguments => Value::of(word),
                        true if word.literal().is_some_and(|text| !text.contains(is_split)) => {
                            Value::of(word)
                        }
                        _ => Value::Unknown,
                    });
                    let lost = self.arguments.overflowed.then_some(Value::Unknown);
                    return values.chain(lost).collect();
                }
                _ => {}
            }
        }
        let value = self.listed(script, word).unwrap_or_else(|| match begins_plainly(word) {
            _ if word.raw_text().is_some() => Value::Pattern(word.clone()),
            true => Value::NotAnOption,
            false => Value::Unknown,
        });
        vec![value]
    }

    /// The value of a word that is the output of commands that list.
    fn listed(&self, script: &Script, word: &Word) -> Option<Value> {
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Commands(commands), .. }]
                if script.lists(commands.clone()) =>
            {
                Some(match script.prints_path(commands.clone()) {
                    true => Value::NotAnOption,
                    false => Value::FileName,
                })
            }
            _ => None,
        }
    }

    /// Whether a value of `PATH`, or every one that it has, only adds folders behind those that it had.
    pub fn extends_path(&self, value: Option<&Word>) -> bool {
        let of_value =
            |value: &Value| matches!(value, Value::Word(word) if self.adds_folders(word));
        match value {
            Some(word) => self.adds_folders(word),
            None => self.has_values("PATH") && self.values_of("PATH").all(of_value),
        }
    }

    /// Whether a word is `$PATH:/folder`, with a folder for each colon.
    fn adds_folders(&self, word: &Word) -> bool {
        let is_path = |piece: &Piece| match piece {
            Piece::Unknown { origin: Origin::Variable(name), .. } => name == "PATH",
            _ => false,
        };
        let Some((first, rest)) = word.pieces.split_first() else { return false };
        let texts = rest.iter().map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.clone()),
            Piece::Unknown { origin: Origin::Variable(name), .. }
                if !self.has_values(name) && !is_set_by_shell(name) =>
            {
                // An empty variable makes a folder of the root, but alone it would be the working directory.
                Some(if name == "HOME" { "/home" } else { "" }.to_owned())
            }
            Piece::Unknown { .. } => None,
        });
        let added = texts.collect::<Option<String>>().unwrap_or_default();
        let mut folders = added.split(':');
        is_path(first)
            && folders.next() == Some("")
            && !added.is_empty()
            && folders.all(|folder| folder.starts_with('/'))
    }

    /// Whether the request may have changed where programs are looked for.
    pub fn changes_path(&self) -> bool {
        self.has_values("PATH")
    }

    /// Whether the request may have changed where the shell splits words.
    pub(super) fn splits_otherwise(&self) -> bool {
        self.has_values("IFS")
    }

    /// The texts a word may become before it is split, if all of them are known and few.
    pub fn texts(&self, word: &Word) -> Option<Vec<String>> {
        let mut fuel = 500;
        self.texts_with(word, &mut fuel)
    }

    fn texts_with(&self, word: &Word, fuel: &mut u32) -> Option<Vec<String>> {
        const MOST: usize = 16;
        const LONGEST: usize = 4096;
        let mut texts = vec![String::new()];
        for piece in &word.pieces {
            *fuel = fuel.checked_sub(1)?;
            let ends = match piece {
                Piece::Text { text, .. } => vec![text.clone()],
                Piece::Unknown { origin: Origin::Variable(name), .. } => {
                    self.texts_of_variable(name, fuel)?
                }
                Piece::Unknown { origin: Origin::Argument, .. } if !self.arguments.overflowed => {
                    let words = self.arguments.calls.iter().flatten();
                    let mut texts = vec![String::new()];
                    for word in words {
                        *fuel = fuel.checked_sub(1)?;
                        texts.push(word.literal()?.into_owned());
                    }
                    texts
                }
                Piece::Unknown { .. } => return None,
            };
            let joined = texts
                .iter()
                .flat_map(|text| ends.iter().map(move |end| [text.as_str(), end].concat()));
            let mut joined: Vec<_> = joined.take(MOST * MOST).collect();
            joined.sort();
            joined.dedup();
            if joined.len() > MOST || joined.iter().any(|text| text.len() > LONGEST) {
                return None;
            }
            texts = joined;
        }
        Some(texts)
    }

    /// The texts a variable may hold. It may not be set at all where it is used.
    fn texts_of_variable(&self, name: &str, fuel: &mut u32) -> Option<Vec<String>> {
        if is_set_by_shell(name) || !self.has_values(name) || self.has_sourced {
            return None;
        }
        let mut texts = vec![String::new()];
        for value in self.values_of(name) {
            *fuel = fuel.checked_sub(1)?;
            match value {
                Value::Text(text) => texts.push(text.clone()),
                Value::Word(word) => texts.extend(self.texts_with(word, fuel)?),
                _ => return None,
            }
        }
        texts.sort();
        texts.dedup();
        Some(texts)
    }

    /// The texts a program for `sed` or `awk` may have, with the values of its variables. A variable that the request
    /// does not set counts as a number and as empty. No text at all if anything else in the word is unknown.
    pub fn possible_texts(&self, word: &Word) -> Vec<String> {
        if word.has_braces() {
            return Vec::new();
        }
        if let Some(texts) = self.texts(word) {
            return texts;
        }
        let with = |unset: &str| -> Option<String> {
            let pieces = word.pieces.iter().map(|piece| match piece {
                Piece::Text { text, .. } => Some(text.clone()),
                Piece::Unknown { origin: Origin::Number, .. } => Some("1".to_owned()),
                Piece::Unknown { origin: Origin::Variable(name), .. } => {
                    let mut values = self.values_of(name);
                    match (values.next(), values.next()) {
                        _ if is_set_by_shell(name) => None,
                        (None, _) => Some(unset.to_owned()),
                        (Some(Value::Text(text)), None) => Some(text.clone()),
                        (Some(_), _) if self.is_numeric(name) => Some("1".to_owned()),
                        _ => None,
                    }
                }
                Piece::Unknown { .. } => None,
            });
            pieces.collect()
        };
        let mut texts: Vec<_> = [with("1"), with("")].into_iter().flatten().collect();
        texts.dedup();
        texts
    }
}
