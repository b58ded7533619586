//! Where the shell expects a number or a name: arithmetic, subscripts, `[[ -eq ]]`, `${!x}`.
//!
//! It evaluates a value there as an expression, and an expression can run commands: with `x='a[$(rm y)]'`, `$((x))`
//! removes a file. So a value must be known to be a number, wherever it comes from.

use super::values::Value;
use super::{Knowledge, is_folder_of_shell, is_set_by_shell};
use crate::script::{Origin, Piece, Word, is_name};

impl Knowledge {
    /// Whether a word is an expression in which every value is known to be a number.
    pub fn is_number(&self, word: &Word) -> bool {
        self.is_expression(word, &mut Vec::new())
    }

    /// Whether all values of a variable are numbers.
    pub(super) fn is_numeric(&self, name: &str) -> bool {
        self.has_numbers(name, &mut Vec::new())
    }

    fn is_expression<'a>(&'a self, word: &'a Word, seen: &mut Vec<&'a str>) -> bool {
        let mut open_name = false;
        word.pieces.iter().all(|piece| {
            let fine = match piece {
                Piece::Text { text, .. } => self.is_plain(text, seen),
                // A number after letters makes another name: `x$n`.
                Piece::Unknown { .. } if open_name => false,
                Piece::Unknown { origin, .. } => self.is_numeric_origin(origin, seen),
            };
            open_name = match piece {
                Piece::Text { text, .. } => tokens(text).last().is_some_and(|last| {
                    text.ends_with(last) && !last.starts_with(|c: char| c.is_ascii_digit())
                }),
                Piece::Unknown { .. } => false,
            };
            fine
        })
    }

    fn is_numeric_origin<'a>(&'a self, origin: &'a Origin, seen: &mut Vec<&'a str>) -> bool {
        match origin {
            Origin::Number => true,
            Origin::Keys => !self.has_text_keys,
            Origin::Variable(name) => self.has_numbers(name, seen),
            Origin::Argument | Origin::Arguments | Origin::SplitArguments => {
                let words = self.arguments.calls.iter().flatten();
                let is_number = |word: &Word| match word.literal() {
                    Some(text) => is_number_text(&text),
                    None => word.pieces.iter().all(|piece| {
                        matches!(piece, Piece::Unknown { origin: Origin::Number, .. })
                    }),
                };
                !self.arguments.overflowed && words.into_iter().all(is_number)
            }
            _ => false,
        }
    }

    /// Whether a text is an expression of numbers and of variables that hold numbers.
    fn is_plain<'a>(&'a self, text: &str, seen: &mut Vec<&'a str>) -> bool {
        let other = |c: char| c.is_alphanumeric() || "_ \t\n+-*/%()<>=!&|^~?:,.[]#@;".contains(c);
        text.chars().all(other)
            && tokens(text).all(|token| {
                token.starts_with(|c: char| c.is_ascii_digit())
                    || match self.values.get_key_value(token) {
                        Some((name, _)) => self.has_numbers(name, seen),
                        None => !is_set_by_shell(token) && !is_folder_of_shell(token),
                    }
            })
    }

    fn has_numbers<'a>(&'a self, name: &'a str, seen: &mut Vec<&'a str>) -> bool {
        if is_set_by_shell(name) || is_folder_of_shell(name) {
            return false;
        }
        // Once is enough: a single value that is not a number decides.
        if seen.contains(&name) {
            return true;
        }
        seen.push(name);
        self.values_of(name).all(|value| match value {
            Value::Number | Value::Descriptor => true,
            Value::Text(text) => is_number_text(text),
            Value::Word(word) => word.pieces.iter().all(|piece| match piece {
                Piece::Text { text, .. } => is_number_text(text),
                Piece::Unknown { origin, .. } => self.is_numeric_origin(origin, seen),
            }),
            Value::NotAnOption | Value::FileName | Value::Pattern(_) | Value::Unknown => false,
        })
    }

    /// Whether a word is certainly the name of a variable, if anything: a subscript in it would be evaluated.
    pub fn is_variable_name(&self, word: &Word) -> bool {
        let plain = |text: &str| {
            let (name, rest) = text.split_once('[').unwrap_or((text, ""));
            let subscript = rest.strip_suffix(']').unwrap_or(rest);
            (name.is_empty() || is_name(name) || is_number_text(name))
                && (["", "@", "*"].contains(&subscript)
                    || self.is_plain(subscript, &mut Vec::new()))
        };
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Variable(name), .. }]
                if !self.has_values(name)
                    && !is_set_by_shell(name)
                    && !is_folder_of_shell(name) =>
            {
                true
            }
            [Piece::Unknown { origin: Origin::Number, .. }] => true,
            _ => self.texts(word).is_some_and(|texts| texts.iter().all(|text| plain(text))),
        }
    }

    /// Whether nothing in a word could be an expansion, if the shell expanded it a second time.
    pub fn is_inert(&self, word: &Word) -> bool {
        let inert = |text: &str| !text.contains(['$', '`', '\\']);
        let owned = |piece: &Piece| match piece {
            Piece::Text { text, .. } => inert(text),
            Piece::Unknown { origin: Origin::Number, .. } => true,
            Piece::Unknown { origin: Origin::Variable(name), .. } => {
                !is_set_by_shell(name)
                    && !is_folder_of_shell(name)
                    && (!self.has_values(name)
                        || self.is_numeric(name)
                        || self
                            .texts(&Word::variable(name, 0..0))
                            .is_some_and(|texts| texts.iter().all(|text| inert(text))))
            }
            Piece::Unknown { origin: Origin::Argument, .. } => {
                let alone = Word { pieces: vec![piece.clone()], span: 0..0 };
                self.texts(&alone).is_some_and(|texts| texts.iter().all(|text| inert(text)))
            }
            Piece::Unknown { .. } => false,
        };
        word.pieces.iter().all(owned)
    }
}

/// The names and numbers in a text.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|token| !token.is_empty())
}

/// Whether a text is numbers and operators only.
fn is_number_text(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "_ \t\n+-*/%()<>=!&|^~?:,#@".contains(c);
    text.chars().all(part)
        && tokens(text).all(|token| token.starts_with(|c: char| c.is_ascii_digit()))
}
