//! Whether a word that only the run will know may be an option of a program, or several words.

use std::borrow::Cow;

use super::values::Value;
use super::{Knowledge, is_folder_of_shell, is_set_by_shell};
use crate::script::{Origin, Piece, Word};

/// How many values in values are followed.
const DEPTH: u32 = 3;

/// How a value begins.
enum Beginning {
    Option,
    Other,
    /// It may be empty, so that what follows is the beginning.
    Empty,
}

impl Knowledge {
    /// Whether a word that only the run will know may be an option of a program. A variable that the
    /// request does not set has a harmless value from the user, or none.
    pub fn may_be_option(&self, word: &Word) -> bool {
        self.may_begin_with_dash(word, &mut Vec::new())
    }

    fn may_begin_with_dash<'a>(&'a self, word: &'a Word, seen: &mut Vec<&'a str>) -> bool {
        if self.may_split(word) {
            return true;
        }
        for piece in &word.pieces {
            match piece {
                Piece::Text { text, .. } if text.is_empty() => {}
                // A list in braces may become anything, and so may a pattern.
                Piece::Text { text, quoted: false } if text.starts_with(['*', '?', '[']) => {
                    return !(self.trusts_file_names && word.ends_with_extension());
                }
                Piece::Text { text, quoted: false } => return text.starts_with(['-', '{']),
                Piece::Text { text, .. } => return text.starts_with('-'),
                Piece::Unknown { origin, .. } => match self.beginning_of(origin, seen) {
                    Beginning::Option => return true,
                    Beginning::Other => return false,
                    Beginning::Empty => {}
                },
            }
        }
        false
    }

    fn beginning_of<'a>(&'a self, origin: &'a Origin, seen: &mut Vec<&'a str>) -> Beginning {
        match origin {
            Origin::Pipe | Origin::Listed | Origin::FileName | Origin::Number => Beginning::Other,
            Origin::Temporary if self.knows_temporary() => Beginning::Other,
            Origin::Keys if !self.has_text_keys => Beginning::Other,
            // The beginning of a number may be a dash.
            Origin::Beginning(name) if self.values_of(name).any(|it| *it == Value::Number) => {
                Beginning::Option
            }
            Origin::Variable(name) | Origin::Beginning(name) if seen.contains(&name.as_str()) => {
                Beginning::Empty
            }
            Origin::Variable(name) | Origin::Beginning(name) => {
                seen.push(name);
                let values: Vec<_> = self.values_of(name).collect();
                if is_set_by_shell(name)
                    || !values.iter().all(|value| self.cannot_be_option(value, seen))
                {
                    return Beginning::Option;
                }
                Beginning::Empty
            }
            Origin::Argument | Origin::Arguments | Origin::SplitArguments => {
                let mut words = self.arguments.calls.iter().flatten();
                match self.arguments.overflowed
                    || words.any(|word| self.may_begin_with_dash(word, seen))
                {
                    true => Beginning::Option,
                    false => Beginning::Empty,
                }
            }
            _ => Beginning::Option,
        }
    }

    fn cannot_be_option<'a>(&'a self, value: &'a Value, seen: &mut Vec<&'a str>) -> bool {
        match value {
            Value::Text(text) => {
                let mut words = text.split_whitespace();
                words.all(|word| !word.starts_with(['-', '*', '?', '[']))
            }
            Value::Word(word) | Value::Pattern(word) => !self.may_begin_with_dash(word, seen),
            Value::NotAnOption | Value::FileName | Value::Number | Value::Descriptor => true,
            Value::Unknown => false,
        }
    }

    /// Whether a word may become several.
    pub fn may_split(&self, word: &Word) -> bool {
        let splits = |piece: &Piece| match piece {
            Piece::Unknown { splits, origin } => *splits && !self.is_one_word(origin),
            Piece::Text { .. } => false,
        };
        word.pieces.iter().any(splits)
    }

    /// The words, in which a variable whose known values are all single words no longer splits.
    pub fn with_single_words<'a>(&self, words: &'a [Word]) -> Cow<'a, [Word]> {
        let is_settled = |piece: &Piece| match piece {
            Piece::Unknown { splits: true, origin: origin @ Origin::Variable(name) } => {
                let empty = |value: &Value| *value == Value::Text(String::new());
                self.has_values(name)
                    && !self.values_of(name).any(empty)
                    && self.is_one_word(origin)
            }
            _ => false,
        };
        let mut settled = Cow::from(words);
        for (at, word) in words.iter().enumerate() {
            for (piece, _) in word.pieces.iter().enumerate().filter(|(_, it)| is_settled(it)) {
                if let Piece::Unknown { splits, .. } = &mut settled.to_mut()[at].pieces[piece] {
                    *splits = false;
                }
            }
        }
        settled
    }

    /// Whether a word is options that packages ask for, which a list of denied programs cannot promise to prevent.
    pub fn trusts_flags(&self, word: &Word) -> bool {
        let is_changed = |name: &String| name.starts_with("PKG_CONFIG") || name == "PATH";
        let changed = self.values.keys().any(is_changed) || self.has_sourced;
        self.trusts_file_names && word.is_flags() && !changed
    }

    /// Whether temporary files are where they usually are.
    fn knows_temporary(&self) -> bool {
        !self.has_values("TMPDIR") && !self.has_sourced
    }

    /// The arguments, in which those that certainly are not options say so.
    pub fn without_options<'a>(&self, words: &'a [Word]) -> Cow<'a, [Word]> {
        let mut marked = Cow::from(words);
        for (at, word) in words.iter().enumerate().skip(1) {
            // A beginning says more: `make test NAME="$x"`.
            let says_itself = word.is_single() && !word.prefix().is_empty();
            let is_unclear = word.text().is_none() && !says_itself;
            if is_unclear && self.is_not_option(word, DEPTH) && !self.may_split(word) {
                let pieces = vec![Piece::Unknown { splits: false, origin: Origin::Listed }];
                marked.to_mut()[at] = Word { pieces, span: word.span.clone() };
            }
        }
        marked
    }

    /// Whether a word certainly is not an option, with no trust in names of files, and in no variable that the request
    /// does not set. Values in values are followed for `depth` steps.
    fn is_not_option(&self, word: &Word, depth: u32) -> bool {
        let [first, rest @ ..] = word.pieces.as_slice() else { return true };
        let is_plain =
            |text: &str| !text.is_empty() && !text.starts_with(['-', '*', '?', '[', '{']);
        // A variable may be empty.
        let rest_is_plain = match rest {
            [] => true,
            [Piece::Text { text, .. }, ..] => is_plain(text),
            [Piece::Unknown { .. }, ..] => false,
        };
        match first {
            Piece::Text { text, .. } => is_plain(text),
            Piece::Unknown { origin: Origin::Listed | Origin::Number | Origin::Pipe, .. } => true,
            Piece::Unknown { origin: Origin::Temporary, .. } => self.knows_temporary(),
            Piece::Unknown {
                origin: origin @ (Origin::Variable(name) | Origin::Beginning(name)),
                ..
            } => {
                // The beginning of a number may be a dash.
                let is_whole = matches!(origin, Origin::Variable(_));
                let fine = |value: &Value| match value {
                    Value::Text(text) => text.is_empty() || is_plain(text),
                    Value::Number => is_whole,
                    Value::Descriptor | Value::NotAnOption => true,
                    Value::Word(word) | Value::Pattern(word) => {
                        depth > 0 && self.is_not_option(word, depth - 1)
                    }
                    Value::FileName | Value::Unknown => false,
                };
                self.has_values(name)
                    && !self.has_sourced
                    && !is_set_by_shell(name)
                    && rest_is_plain
                    && self.values_of(name).all(fine)
            }
            Piece::Unknown { origin: Origin::Argument | Origin::Arguments, .. } => {
                let mut words = self.arguments.calls.iter().flatten();
                let fine = |word: &Word| match word.literal() {
                    Some(text) => text.is_empty() || is_plain(&text),
                    None => depth > 0 && self.is_not_option(word, depth - 1),
                };
                let known = !self.arguments.overflowed && !self.arguments.calls.is_empty();
                known && rest_is_plain && words.all(fine)
            }
            Piece::Unknown { .. } => false,
        }
    }

    /// Whether an unquoted expansion certainly becomes one word, or none.
    fn is_one_word(&self, origin: &Origin) -> bool {
        let odd = |c: char| c.is_whitespace() || "*?[".contains(c);
        let plain = |value: &Value| match value {
            Value::Text(text) => !text.contains(odd),
            Value::Number | Value::Descriptor => true,
            Value::Word(word) => self.knows_temporary() && word.is_temporary(),
            _ => false,
        };
        if self.splits_otherwise() {
            return false;
        }
        match origin {
            Origin::Pipe | Origin::Listed | Origin::FileName | Origin::Number => true,
            // A folder may be called anything.
            Origin::Variable(name) if is_folder_of_shell(name) => {
                let is_known = name == "PWD" && self.directories.are_plain();
                (is_known || self.trusts_file_names) && self.values_of(name).all(plain)
            }
            Origin::Temporary => self.knows_temporary(),
            Origin::Keys => !self.has_text_keys,
            Origin::Variable(name) => !is_set_by_shell(name) && self.values_of(name).all(plain),
            Origin::Argument | Origin::Arguments | Origin::SplitArguments => {
                self.arguments.calls.is_empty()
            }
            _ => false,
        }
    }
}
