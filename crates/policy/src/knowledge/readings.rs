//! A command's words with the values of its variables put in.
//!
//! If everything that a variable may hold is known, a command is judged once for each of its values: `x=-delete` in
//! `find . $x` is then as plain as `find . -delete`. What stays unknown stays in the words.

use super::Knowledge;
use super::values::Value;
use crate::script::{Origin, Piece, Shell, Span, Word};

/// How many readings of a command are judged. One with more is judged with its unknown words.
const MOST: usize = 32;

/// Where the shell splits an unquoted value.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// What makes it a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];

/// The words that a word becomes.
type Words = Vec<Word>;

impl Knowledge {
    /// Every list of words that a command may turn out to be.
    pub fn readings(&self, words: &[Word], shell: Shell) -> Vec<Words> {
        let mut readings = vec![Words::new()];
        for word in words {
            let choices = match word.has_braces() && shell == Shell::Sh {
                // Only bash expands braces.
                true => vec![vec![word.clone()]],
                false => self.choices(word),
            };
            if let [only] = choices.as_slice() {
                readings.iter_mut().for_each(|reading| reading.extend_from_slice(only));
                continue;
            }
            if readings.len() * choices.len() > MOST {
                readings.iter_mut().for_each(|reading| reading.push(word.clone()));
                continue;
            }
            let longer = readings.iter().flat_map(|reading| {
                choices.iter().map(move |it| [reading.as_slice(), it].concat())
            });
            readings = longer.collect();
        }
        readings.retain(|reading| !reading.is_empty());
        readings
    }

    /// Everything that one word may become.
    fn choices(&self, word: &Word) -> Vec<Words> {
        let parts = in_braces(word);
        if parts.len() != 1 {
            let parts: Vec<_> = parts.iter().map(|part| self.choices_of_part(part)).collect();
            // Several variables in the words of a list stay unknown, but the list is still a list.
            return match parts.iter().all(|choices| choices.len() == 1) {
                true => vec![parts.into_iter().flatten().flatten().collect()],
                false => vec![in_braces(word)],
            };
        }
        self.choices_of_part(&parts[0])
    }

    fn choices_of_part(&self, word: &Word) -> Vec<Words> {
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Arguments, .. }] => return self.argument_lists(word),
            [Piece::Unknown { origin: Origin::SplitArguments, .. }] => {
                let words = self.arguments.calls.iter().flatten();
                let whole = |word: &Word| {
                    word.literal()
                        .is_some_and(|text| !text.contains(BLANKS) && !text.contains(PATTERN))
                };
                if !words.into_iter().all(whole) || self.splits_otherwise() {
                    return vec![vec![word.clone()]];
                }
                let mut lists = self.argument_lists(word);
                let is_empty = |word: &Word| word.literal().is_some_and(|text| text.is_empty());
                lists.iter_mut().for_each(|words| words.retain(|word| !is_empty(word)));
                return lists;
            }
            [Piece::Unknown { origin: Origin::Variable(name), splits }]
                if self.has_patterns(name) =>
            {
                let empty = Word::known("", word.span.clone());
                let unset = if *splits { Words::new() } else { vec![empty] };
                return match self.patterns(name, word) {
                    Some(found) => found.into_iter().chain([unset]).collect(),
                    None => vec![vec![word.clone()]],
                };
            }
            _ => {}
        }
        let is_variable = |piece: &Piece| {
            matches!(piece, Piece::Unknown { origin: Origin::Variable(_) | Origin::Argument, .. })
        };
        let known = word.pieces.iter().all(|piece| match piece {
            Piece::Text { quoted, text } => *quoted || !text.contains(['{', '}']),
            piece => is_variable(piece),
        });
        if !known || !word.pieces.iter().any(is_variable) || self.splits_otherwise() {
            return vec![vec![word.clone()]];
        }
        let mut choices = vec![Fields::new(word)];
        for piece in &word.pieces {
            let (texts, splits) = match piece {
                Piece::Text { text, quoted } => {
                    choices.iter_mut().for_each(|fields| fields.push(text, *quoted));
                    continue;
                }
                Piece::Unknown { splits, .. } => {
                    let alone = Word { pieces: vec![piece.clone()], span: word.span.clone() };
                    (self.texts(&alone), *splits)
                }
            };
            let Some(texts) = texts.filter(|texts| texts.len() * choices.len() <= MOST) else {
                return vec![vec![word.clone()]];
            };
            // A value's braces mean nothing, but in a word they would.
            if splits && texts.iter().any(|text| text.contains(['{', '}', '~'])) {
                return vec![vec![word.clone()]];
            }
            let longer = choices.iter().flat_map(|fields| {
                texts.iter().map(move |text| match splits {
                    true => fields.clone().split(text),
                    false => fields.clone().with(text),
                })
            });
            choices = longer.collect();
        }
        choices.into_iter().map(Fields::into_words).collect()
    }

    /// The names of files that a loop's variable takes, as the patterns that find them.
    fn patterns(&self, name: &str, at: &Word) -> Option<Vec<Words>> {
        let span = || at.span.clone();
        let words = self.values_of(name).map(|value| match value {
            Value::Text(text) if !text.contains(BLANKS) && !text.contains(PATTERN) => {
                Some(Word::known(text.clone(), span()))
            }
            Value::Pattern(word) => Some(Word { pieces: word.pieces.clone(), span: span() }),
            _ => None,
        });
        let choices = words.map(|word| word.map(|word| vec![word])).collect::<Option<Vec<_>>>()?;
        (choices.len() <= MOST && !self.splits_otherwise()).then_some(choices)
    }

    fn has_patterns(&self, name: &str) -> bool {
        self.values_of(name).any(|value| matches!(value, Value::Pattern(_)))
    }

    /// The lists that `"$@"` may stand for: those of all calls, without the first ones if there is a `shift`.
    fn argument_lists(&self, word: &Word) -> Vec<Words> {
        let mut lists = vec![Words::new()];
        for call in &self.arguments.calls {
            let starts = if self.arguments.shifted { call.len() } else { call.len().min(1) };
            for start in 0..starts {
                let list = call[start..].to_vec();
                if !lists.contains(&list) {
                    lists.push(list);
                }
            }
        }
        match self.arguments.overflowed || lists.len() > MOST {
            true => vec![vec![word.clone()]],
            false => lists,
        }
    }
}

/// The words that a word's braces expand to, without empty ones.
fn in_braces(word: &Word) -> Words {
    if !word.has_braces() {
        return vec![word.clone()];
    }
    let mut words = word.alternatives();
    if words.len() > 1 {
        words.retain(|word| word.pieces.iter().any(|piece| !is_nothing(piece)));
    }
    words
}

fn is_nothing(piece: &Piece) -> bool {
    matches!(piece, Piece::Text { text, quoted: false } if text.is_empty())
}

/// The words that a word with variables is being split into.
#[derive(Clone)]
struct Fields {
    done: Words,
    /// The pieces of the last word, `None` if there is none yet.
    open: Option<Vec<Piece>>,
    span: Span,
}

impl Fields {
    fn new(word: &Word) -> Self {
        Self { done: Vec::new(), open: None, span: word.span.clone() }
    }

    fn push(&mut self, text: &str, quoted: bool) {
        let piece = Piece::Text { text: text.to_owned(), quoted };
        self.open.get_or_insert_default().push(piece);
    }

    fn with(mut self, text: &str) -> Self {
        self.push(text, true);
        self
    }

    /// Adds an unquoted value, which may end the word and begin others.
    fn split(mut self, text: &str) -> Self {
        if text.starts_with(BLANKS) {
            self.close();
        }
        for (at, part) in text.split(BLANKS).filter(|part| !part.is_empty()).enumerate() {
            if at > 0 {
                self.close();
            }
            self.push(part, !part.contains(PATTERN));
        }
        if text.ends_with(BLANKS) {
            self.close();
        }
        self
    }

    fn close(&mut self) {
        if let Some(pieces) = self.open.take() {
            self.done.push(Word { pieces, span: self.span.clone() });
        }
    }

    fn into_words(mut self) -> Words {
        self.close();
        self.done
    }
}
