//! A word of a script: pieces of text, and pieces that only the run will know.
//!
//! It is the word in the script, before the shell expands it to one argument, several or none;
//! [`Word::is_single`] tells whether it certainly becomes one.

use std::borrow::Cow;
use std::ops::Range;

use super::{Assignment, Span};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Word {
    pub pieces: Vec<Piece>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    /// Only the run will know it.
    Unknown {
        /// Whether it can become several words, or none.
        splits: bool,
        origin: Origin,
    },
}

/// Where an unknown piece comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A variable's unmodified value.
    Variable(String),
    /// The output of commands, by their numbers in the script.
    Commands(Range<usize>),
    /// The name the shell gives a pipe: `<(…)`.
    Pipe,
    /// One of the arguments of a function or script: `$1`.
    Argument,
    /// All of them: `"$@"`.
    Arguments,
    /// All of them, split again: `$@`.
    SplitArguments,
    /// The keys of an array, which are numbers unless it was declared otherwise: `${!x[@]}`.
    Keys,
    /// The words of an array: `x=(a b)`.
    Array(Vec<Word>),
    /// Something from a listing that does not begin with a dash.
    Listed,
    /// A file name from a listing, which is trusted not to be an option.
    FileName,
    /// Options for compilers that installed packages ask for.
    Flags,
    /// The path of a temporary file, which begins with the value of `TMPDIR` if there is one.
    Temporary,
    Number,
    /// The beginning of a variable's value: `${x%.txt}`.
    Beginning(String),
    Other,
}

impl Origin {
    /// The origin of `${text}` or `$text`.
    pub(super) fn of_parameter(text: &str, quoted: bool) -> Self {
        const DIGITS_ONLY: [&str; 3] = ["//[^0-9]/", "//[!0-9]/", "//[^[:digit:]]/"];
        let number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let keys = text.strip_prefix('!').and_then(|text| text.split_once('['));
        match text {
            _ if is_name(text) => Self::Variable(text.to_owned()),
            _ if number => Self::Argument,
            "@" if quoted => Self::Arguments,
            "@" | "*" if !quoted => Self::SplitArguments,
            "?" | "$" => Self::Number,
            _ if text.starts_with('#') => Self::Number,
            _ if DIGITS_ONLY.iter().any(|end| text.strip_suffix(end).is_some_and(is_name)) => {
                Self::Number
            }
            _ if text.split_once('%').is_some_and(|(name, _)| is_name(name)) => {
                Self::Beginning(text.split('%').next().unwrap_or_default().to_owned())
            }
            _ if keys.is_some_and(|(name, rest)| is_name(name) && ["@]", "*]"].contains(&rest)) => {
                Self::Keys
            }
            _ => Self::Other,
        }
    }
}

impl Word {
    /// A word whose text is known and quoted.
    pub fn known(text: impl Into<String>, span: Span) -> Self {
        Self { pieces: vec![Piece::Text { text: text.into(), quoted: true }], span }
    }

    /// A word nobody knows, or any number of them.
    pub fn unknown(splits: bool, span: Span) -> Self {
        Self { pieces: vec![Piece::Unknown { splits, origin: Origin::Other }], span }
    }

    /// Any number of words of this origin.
    pub fn listed(origin: &Origin, span: Span) -> Self {
        Self { pieces: vec![Piece::Unknown { splits: true, origin: origin.clone() }], span }
    }

    /// The unmodified value of a variable, in quotes.
    pub fn variable(name: &str, span: Span) -> Self {
        let origin = Origin::Variable(name.to_owned());
        Self { pieces: vec![Piece::Unknown { splits: false, origin }], span }
    }

    /// The text, if the shell passes it on unchanged.
    pub fn literal(&self) -> Option<Cow<'_, str>> {
        let plain = !self.is_pattern() && !self.starts_with_tilde();
        self.text().filter(|_| plain)
    }

    /// The text, if all of it is known. A pattern or a tilde in it may still become file names.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.has_braces() {
            return None;
        }
        if let [Piece::Text { text, .. }] = self.pieces.as_slice() {
            return Some(text.into());
        }
        self.raw_text().map(Cow::from)
    }

    /// The text, if all of it is known, where the shell does not expand braces.
    pub fn raw_text(&self) -> Option<String> {
        let text = self.pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        text.collect()
    }

    /// The text, if nothing in it is quoted or expanded.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// The text before anything that may become something else: an unknown piece, a pattern, braces.
    pub fn beginning(&self) -> String {
        let mut beginning = String::new();
        for piece in &self.pieces {
            let Piece::Text { text, quoted } = piece else { break };
            let end = text.find(['*', '?', '[', '{']).filter(|_| !quoted);
            beginning.push_str(&text[..end.unwrap_or(text.len())]);
            if end.is_some() {
                break;
            }
        }
        beginning
    }

    /// The text before the first unknown piece.
    pub fn prefix(&self) -> String {
        if self.has_braces() {
            return String::new();
        }
        let known = self.pieces.iter().map_while(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        known.collect()
    }

    /// The text after the last unknown piece.
    pub fn suffix(&self) -> String {
        if self.has_braces() {
            return String::new();
        }
        let known = self.pieces.iter().rev().map_while(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        known.collect::<Vec<_>>().into_iter().rev().collect()
    }

    /// Whether it becomes exactly one argument.
    pub fn is_single(&self) -> bool {
        let splits = |piece: &Piece| matches!(piece, Piece::Unknown { splits: true, .. });
        !self.pieces.iter().any(splits) && !self.is_pattern() && !self.has_braces()
    }

    /// Whether it certainly does not begin with a dash, however many words it becomes.
    pub fn is_operand(&self) -> bool {
        let listed = |piece: &Piece| {
            matches!(piece, Piece::Unknown { origin: Origin::Listed | Origin::FileName, .. })
        };
        let beginning = self.beginning();
        let plain = !beginning.is_empty() && !beginning.starts_with('-') && self.is_single();
        plain || (self.pieces.len() == 1 && listed(&self.pieces[0]))
    }

    /// Whether it is `<(…)` or `>(…)` and nothing else.
    pub fn is_pipe(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Unknown { origin: Origin::Pipe, .. }])
    }

    /// Whether it is options for compilers and nothing else.
    pub fn is_flags(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Unknown { origin: Origin::Flags, .. }])
    }

    /// Whether it is the path of a temporary file and nothing else.
    pub fn is_temporary(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Unknown { origin: Origin::Temporary, .. }])
    }

    /// Whether it certainly does not begin with a dash, although only the run will know it.
    pub fn is_listed(&self) -> bool {
        matches!(
            self.pieces.first(),
            Some(Piece::Unknown { origin: Origin::Listed | Origin::Number | Origin::Pipe, .. })
        )
    }

    /// Whether it is `(a b)` as the value of a variable.
    pub fn is_array(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Unknown { origin: Origin::Array(_), .. }])
    }

    pub fn starts_with_tilde(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text { text, quoted: false }) if text.starts_with('~'))
    }

    /// Whether an assignment of it replaces a tilde by a directory.
    pub fn has_tilde(&self) -> bool {
        self.starts_with_tilde() || self.unquoted().any(|text| text.contains(":~"))
    }

    /// Whether it is a pattern that ends like the name of an ordinary file: `*.txt`.
    pub fn ends_with_extension(&self) -> bool {
        let text = self.raw_text().unwrap_or_default();
        let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
        !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    /// Whether nothing in it is quoted or expanded, so that the shell takes it for what it says.
    pub fn is_plain(&self) -> bool {
        self.plain().is_some()
    }

    /// Whether it is `{1..3}` and nothing else.
    pub fn is_number_range(&self) -> bool {
        let inside = self.plain().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
        inside
            .is_some_and(|inside| inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    }

    /// Whether it has an unquoted `{a,b}` or `{1..3}`.
    pub fn has_braces(&self) -> bool {
        let mut open = 0;
        let mut parts = false;
        let mut last = ' ';
        for character in self.unquoted().flat_map(str::chars) {
            match character {
                '{' => open += 1,
                ',' if open > 0 => parts = true,
                '.' if open > 0 && last == '.' => parts = true,
                '}' if open > 0 && parts => return true,
                '}' if open > 0 => open -= 1,
                _ => {}
            }
            last = character;
        }
        false
    }

    /// The words its braces expand to: `a{b,c}` becomes `ab` and `ac`. The word itself if it has no braces,
    /// or more than simple lists in them.
    pub fn alternatives(&self) -> Vec<Self> {
        const MOST: usize = 64;
        let mut found = vec![self.clone()];
        while let Some(at) = found.iter().position(Self::has_braces) {
            let Some(parts) = found[at].split_braces() else { return vec![self.clone()] };
            found.splice(at..=at, parts);
            if found.len() > MOST {
                return vec![self.clone()];
            }
        }
        found
    }

    /// The words that the first list in braces expands to.
    fn split_braces(&self) -> Option<Vec<Self>> {
        let (at, text) = self.pieces.iter().enumerate().find_map(|(at, piece)| match piece {
            Piece::Text { text, quoted: false } if text.contains('{') => Some((at, text)),
            _ => None,
        })?;
        let (head, rest) = text.split_once('{')?;
        let (list, tail) = rest.split_once('}')?;
        if list.contains('{') || list.contains("..") || !list.contains(',') {
            return None;
        }
        let words = list.split(',').map(|part| {
            let mut word = self.clone();
            word.pieces[at] = Piece::Text { text: [head, part, tail].concat(), quoted: false };
            word
        });
        Some(words.collect())
    }

    /// The word with something unknown in place of a mark, such as the `{}` of `find -exec`.
    pub fn replace_mark(&self, mark: &str, origin: &Origin) -> Self {
        let has = |piece: &Piece| matches!(piece, Piece::Text { text, .. } if text.contains(mark));
        if mark.is_empty() || !self.pieces.iter().any(has) {
            return self.clone();
        }
        let (prefix, suffix) = (self.prefix(), self.suffix());
        let head = prefix.split(mark).next().unwrap_or_default();
        let tail = suffix.rsplit(mark).next().unwrap_or_default();
        let text = |text: &str| Piece::Text { text: text.to_owned(), quoted: true };
        let unknown = Piece::Unknown { splits: false, origin: origin.clone() };
        let mut pieces = vec![text(head), unknown, text(tail)];
        pieces.retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
        Self { pieces, span: self.span.clone() }
    }

    /// The key in an element of an array, `[key]=value`.
    pub(super) fn key(&self) -> Self {
        let mut pieces = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            let Piece::Text { text, quoted } = piece else {
                pieces.push(piece.clone());
                continue;
            };
            let text = text.strip_prefix('[').filter(|_| at == 0).unwrap_or(text);
            let end = text.find("]=").or_else(|| text.find("]+=")).filter(|_| !quoted);
            let key = text[..end.unwrap_or(text.len())].to_owned();
            pieces.push(Piece::Text { text: key, quoted: *quoted });
            if end.is_some() {
                break;
            }
        }
        Self { pieces, span: self.span.clone() }
    }

    /// The assignment it stands for where an assignment is possible.
    pub(super) fn assignment(&self) -> Option<Assignment> {
        let Some(Piece::Text { text, quoted: false }) = self.pieces.first() else { return None };
        let end = text.find(['=', '[']).unwrap_or(text.len());
        let appends = text[..end].ends_with('+');
        let name = text[..end].strip_suffix('+').unwrap_or(&text[..end]);
        if !is_name(name) || end == text.len() {
            return None;
        }
        let mut value = self.clone();
        if text.as_bytes()[end] == b'=' {
            value.pieces[0] = Piece::Text { text: text[end + 1..].to_owned(), quoted: false };
            if end + 1 == text.len() && value.pieces.len() > 1 {
                value.pieces.remove(0);
            }
        } else if !self.unquoted().any(|text| text.contains("]=") || text.contains("]+=")) {
            return None;
        } else {
            value = Self::unknown(true, self.span.clone());
        }
        Some(Assignment { name: name.to_owned(), value, appends })
    }

    /// Whether the shell may replace it by file names.
    pub fn is_pattern(&self) -> bool {
        let brackets = |text: &str| text.find('[').is_some_and(|at| text[at..].contains(']'));
        let mixed = self.pieces.len() > 1 && self.unquoted().any(|text| text.contains('['));
        mixed || self.unquoted().any(|text| text.contains(['*', '?']) || brackets(text))
    }

    pub(super) fn unquoted(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text { text, quoted: false } => Some(text.as_str()),
            _ => None,
        })
    }
}

/// Whether a variable's name can begin with this byte.
pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether a text is a variable's name.
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_name_start)
        && bytes.all(|byte| is_name_start(byte) || byte.is_ascii_digit())
}
