//! What the judge has learned from a request so far: values of variables, files it wrote, texts that may
//! become code.
//!
//! It only grows: a variable keeps every value it may have had, because a loop or function may use any of them.
//! A variable that the request does not set has the value its owner gave it, which is not an attack.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::names::Names;
use crate::paths::base_name;
use crate::script::{Origin, Piece, Script, Span, Word};

#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// Every value a variable may have had.
    values: HashMap<String, BTreeSet<Value>>,
    /// Base names of files the request wrote, `None` for one that only the run will know.
    written: Vec<Option<String>>,
    /// Texts that become code if something evaluates them.
    pub suspects: Vec<(String, Span)>,
    /// Whether something evaluates text.
    pub evaluates: bool,
    /// Whether something may run later than its place in the script: in a loop, a function, a trap.
    pub runs_out_of_order: bool,
    /// Whether something was learned while commands were judged, and not before.
    pub has_changed: bool,
    /// Whether functions may have been removed.
    pub unsets_functions: bool,
}

/// What a variable may hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Text(String),
    /// Something that certainly is not an option of a program.
    NotAnOption,
    /// The number of a descriptor.
    Descriptor,
    Unknown,
}

/// Variables that the shell sets from the request's own words.
const SET_BY_SHELL: Names =
    Names("_ COMP_LINE COMP_WORDS COPROC DIRSTACK FUNCNAME MAPFILE OPTARG REPLY");

/// Variables that the shell evaluates when they are set.
const NUMBERS: Names = Names("EPOCHSECONDS HISTCMD LINENO OPTIND RANDOM SECONDS SRANDOM");

impl Knowledge {
    pub fn new(variables: &[(String, String)]) -> Self {
        let mut knowledge = Self::default();
        for (name, value) in variables {
            knowledge.add_value(name, Some(value.clone()));
        }
        knowledge
    }

    /// Learns what can be seen in a script before it runs.
    pub fn learn(&mut self, script: &mut Script, outermost: bool) {
        self.evaluates |= script.evaluates;
        self.suspects.append(&mut script.suspects);
        for name in &script.descriptor_variables {
            self.values.entry(name.clone()).or_default().insert(Value::Descriptor);
        }
        for (name, value) in script.values() {
            self.evaluates |= NUMBERS.has(name);
            let value = value.map_or(Value::Unknown, |word| self.value_of(script, word));
            let is_new = self.values.entry(name.to_owned()).or_default().insert(value);
            self.has_changed |= is_new && !outermost;
        }
    }

    /// Adds a value of a variable, `None` if only the run will know it.
    pub fn add_value(&mut self, name: &str, value: Option<String>) {
        let value = value.map_or(Value::Unknown, Value::Text);
        self.has_changed |= self.values.entry(name.to_owned()).or_default().insert(value);
    }

    pub fn add_written_file(&mut self, file: &Word) {
        self.has_changed = true;
        self.written.push(file.text().map(|path| base_name(&path).to_owned()));
    }

    /// Whether the request may have written this file.
    pub fn has_written(&self, path: &str) -> bool {
        let base = base_name(path);
        self.written.iter().any(|written| written.as_deref().is_none_or(|name| name == base))
    }

    /// Whether a variable has a text that `make` runs as code.
    pub fn has_make_code(&self) -> bool {
        let is_code = |value: &Value| matches!(value, Value::Text(text) if text.contains("$(") || text.contains("${"));
        self.values.values().flatten().any(is_code)
    }

    /// Whether a word that only the run will know may be an option of a program. A variable that the
    /// request does not set has a harmless value from the user, or none.
    pub fn may_be_option(&self, word: &Word) -> bool {
        let splits = |piece: &Piece| match piece {
            Piece::Unknown { splits, origin } => *splits && !self.is_one_word(origin),
            Piece::Text { .. } => false,
        };
        if word.has_braces() || word.pieces.iter().any(splits) {
            return true;
        }
        for piece in &word.pieces {
            match piece {
                Piece::Text { text, .. } if text.is_empty() => {}
                Piece::Text { text, .. } => return text.starts_with('-'),
                Piece::Unknown {
                    origin: Origin::Pipe | Origin::Listed | Origin::Number, ..
                } => {
                    return false;
                }
                Piece::Unknown { origin: Origin::Variable(name), .. } => {
                    match self.beginning_of(name) {
                        Some(Beginning::Option) => return true,
                        Some(Beginning::Other) => return false,
                        // It may be empty, so the next piece may be the beginning.
                        None => {}
                    }
                }
                Piece::Unknown { .. } => return true,
            }
        }
        false
    }

    /// How a variable's value begins, `None` if it may be empty.
    fn beginning_of(&self, name: &str) -> Option<Beginning> {
        if is_set_by_shell(name) || !self.values_of(name).all(Value::cannot_be_option) {
            return Some(Beginning::Option);
        }
        let certain = |value: &Value| matches!(value, Value::Text(_));
        (self.has_values(name) && self.values_of(name).all(certain)).then_some(Beginning::Other)
    }

    /// Whether these commands print only names and numbers that do not begin with a dash.
    pub fn lists(&self, script: &Script, commands: Range<usize>) -> bool {
        let odd = |name: &Option<String>| name.as_ref().is_none_or(|name| name.starts_with('-'));
        !self.written.iter().any(odd) && script.lists(commands)
    }

    /// Whether a word is the number of an open descriptor.
    pub fn is_descriptor(&self, word: &Word) -> bool {
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Variable(name), .. }] => {
                self.has_values(name)
                    && self.values_of(name).all(|value| *value == Value::Descriptor)
            }
            _ => false,
        }
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

    fn value_of(&self, script: &Script, word: &Word) -> Value {
        if let Some(text) = word.text() {
            return Value::Text(text.into());
        }
        let beginning = word.prefix();
        if !beginning.is_empty() && !beginning.starts_with('-') {
            return Value::NotAnOption;
        }
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Number, .. }] => Value::Text("1".to_owned()),
            [Piece::Unknown { origin: Origin::Commands(commands), .. }]
                if script.lists(commands.clone()) =>
            {
                Value::NotAnOption
            }
            [Piece::Unknown { origin: Origin::Variable(name), .. }]
                if !is_set_by_shell(name)
                    && self.has_values(name)
                    && self.values_of(name).all(Value::cannot_be_option)
                    && !self.values.contains_key("IFS") =>
            {
                Value::NotAnOption
            }
            _ => Value::Unknown,
        }
    }

    fn values_of(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.values.get(name).into_iter().flatten()
    }

    fn has_values(&self, name: &str) -> bool {
        self.values_of(name).next().is_some()
    }

    /// Whether an unquoted expansion certainly becomes one word.
    fn is_one_word(&self, origin: &Origin) -> bool {
        let odd = |c: char| c.is_whitespace() || "*?[".contains(c);
        let plain = |value: &Value| matches!(value, Value::Text(text) if !text.contains(odd));
        match origin {
            Origin::Pipe | Origin::Listed | Origin::Number => true,
            Origin::Variable(name) => {
                let splits_otherwise = self.values.contains_key("IFS");
                !splits_otherwise && !is_set_by_shell(name) && self.values_of(name).all(plain)
            }
            Origin::Commands(_) | Origin::Other => false,
        }
    }

    /// The texts a word may have, with the values of its variables. One that the request does not set counts
    /// as a number and as empty. No text at all if anything else in the word is unknown.
    pub fn possible_texts(&self, word: &Word) -> Vec<String> {
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
                        _ => None,
                    }
                }
                Piece::Unknown { .. } => None,
            });
            pieces.collect()
        };
        if word.has_braces() {
            return Vec::new();
        }
        let mut texts: Vec<_> = [with("1"), with("")].into_iter().flatten().collect();
        texts.dedup();
        texts
    }
}

/// How a value begins.
enum Beginning {
    Option,
    Other,
}

fn is_set_by_shell(name: &str) -> bool {
    SET_BY_SHELL.has(name) || name.starts_with("BASH")
}

impl Value {
    fn cannot_be_option(&self) -> bool {
        match self {
            Self::Text(text) => {
                let mut words = text.split_whitespace();
                !text.is_empty() && words.all(|word| !word.starts_with('-'))
            }
            Self::NotAnOption | Self::Descriptor => true,
            Self::Unknown => false,
        }
    }
}
