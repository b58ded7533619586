//! What a request has told of itself so far: values of variables, files it wrote, texts that may
//! become code.

use std::collections::HashMap;

use crate::rule::base_name;
use crate::script::{Origin, Piece, Script, Span, Word};
use crate::words::Words;

#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// All the values a variable may have had.
    values: HashMap<String, Vec<Value>>,
    /// Base names of files that were written; `None` if only the run will know which.
    written: Vec<Option<String>>,
    /// Texts that are code if something evaluates them.
    pub suspects: Vec<(String, Span)>,
    /// Whether something evaluates text.
    pub evaluates: bool,
    /// Whether something may run later than it stands there: in a loop, a function, a trap.
    pub is_out_of_order: bool,
}

/// What a variable may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    /// Something that is certainly no option of a program.
    NoOption,
    Unknown,
}

/// Commands that print names of files, numbers and the like, never an option somebody made up.
const LISTING: Words = Words(
    "basename cargo date df dirname docker du fd find git helm hostname id kubectl ls mktemp nproc \
     pwd readlink realpath rustc seq stat uname wc which whoami",
);

/// Commands that print some of what they read.
const CHOOSING: Words = Words("grep head jq rg sort tail uniq");

/// Variables of the shell whose values are evaluated.
const NUMBERS: Words = Words("EPOCHSECONDS HISTCMD LINENO OPTIND RANDOM SECONDS SRANDOM");

impl Knowledge {
    pub fn new(variables: &[(String, String)]) -> Self {
        let mut knowledge = Self::default();
        for (name, value) in variables {
            knowledge.note(name, Some(value.clone()));
        }
        knowledge
    }

    /// Takes what a script tells of itself.
    pub fn learn(&mut self, script: &mut Script) {
        self.evaluates |= script.evaluates;
        self.suspects.append(&mut script.suspects);
        for (name, value) in script.values() {
            self.evaluates |= NUMBERS.has(name);
            let value = value.map_or(Value::Unknown, |word| value_of(script, word));
            let values = self.values.entry(name.to_owned()).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// Notes a value of a variable, or that only the run will know it.
    pub fn note(&mut self, name: &str, value: Option<String>) {
        let value = value.map_or(Value::Unknown, Value::Text);
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    pub fn note_written(&mut self, file: &Word) {
        self.written.push(file.data().map(|path| base_name(&path).to_owned()));
    }

    pub fn has_written_any(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether a file may be one that the request wrote itself.
    pub fn has_written(&self, path: &str) -> bool {
        let base = base_name(path);
        self.written.iter().any(|written| written.as_deref().is_none_or(|name| name == base))
    }

    /// Whether a variable got a text that `make` would take for code.
    pub fn has_make_code(&self) -> bool {
        let is_code = |value: &Value| matches!(value, Value::Text(text) if text.contains("$(") || text.contains("${"));
        self.values.values().flatten().any(is_code)
    }

    /// Whether a word that only the run will know may be an option of a program. A variable that was
    /// not set by the request has what its owner gave it.
    pub fn may_be_option(&self, word: &Word) -> bool {
        let Some(Piece::Unknown { splits, origin }) = word.pieces.first() else { return true };
        let others_split = word.pieces[1..].iter().any(|piece| match piece {
            Piece::Unknown { splits, origin } => *splits && !self.is_one_word(origin),
            Piece::Text { .. } => false,
        });
        if word.has_braces() || others_split || (*splits && !self.is_one_word(origin)) {
            return true;
        }
        match origin {
            Origin::File | Origin::Number => false,
            Origin::Variable(name) => !self.values_of(name).iter().all(Value::is_no_option),
            Origin::Commands(_) | Origin::Other => true,
        }
    }

    /// Whether all that commands print is names and numbers.
    pub fn lists(script: &Script, commands: std::ops::Range<usize>) -> bool {
        let names_files = |word: &Word| {
            let text = word.data().unwrap_or_default();
            text == "--files"
                || text.starts_with("--files-with")
                || (text.starts_with('-') && text.contains('l'))
        };
        let lists = |at: usize| {
            let command = &script.commands[at];
            let name = command.words.first().and_then(Word::literal).unwrap_or_default();
            let chooses =
                CHOOSING.has(&name) && (command.piped || command.words.iter().any(names_files));
            LISTING.has(&name) || chooses
        };
        !commands.is_empty() && commands.into_iter().all(lists)
    }

    fn values_of(&self, name: &str) -> &[Value] {
        self.values.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether something is one word although the shell would split it.
    fn is_one_word(&self, origin: &Origin) -> bool {
        let plain = |value: &Value| matches!(value, Value::Text(text) if !text.contains(char::is_whitespace));
        match origin {
            Origin::File | Origin::Number => true,
            Origin::Variable(name) => self.values_of(name).iter().all(plain),
            Origin::Commands(_) | Origin::Other => false,
        }
    }

    /// A word's text with the values that are known in it; one that the request did not set is taken
    /// for a number, which is harmless in any program. `None` if something else is in it.
    pub fn text_of(&self, word: &Word) -> Option<String> {
        if word.has_braces() {
            return None;
        }
        let pieces = word.pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.clone()),
            Piece::Unknown { origin: Origin::Number, .. } => Some("1".to_owned()),
            Piece::Unknown { origin: Origin::Variable(name), .. } => match self.values_of(name) {
                [] => Some("1".to_owned()),
                [Value::Text(text)] => Some(text.clone()),
                _ => None,
            },
            Piece::Unknown { .. } => None,
        });
        pieces.collect()
    }
}

impl Value {
    fn is_no_option(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty() && !text.starts_with('-'),
            Self::NoOption => true,
            Self::Unknown => false,
        }
    }
}

fn value_of(script: &Script, word: &Word) -> Value {
    if let Some(text) = word.data() {
        return Value::Text(text);
    }
    let beginning = word.beginning();
    if !beginning.is_empty() && !beginning.starts_with('-') {
        return Value::NoOption;
    }
    match word.pieces.as_slice() {
        [Piece::Unknown { origin: Origin::Number, .. }] => Value::Text("1".to_owned()),
        [Piece::Unknown { origin: Origin::Commands(commands), .. }]
            if Knowledge::lists(script, commands.clone()) =>
        {
            Value::NoOption
        }
        _ => Value::Unknown,
    }
}
