//! What a request has told of itself so far: values of variables, files it wrote, texts that may
//! become code.

use std::collections::HashMap;

use crate::rule::base_name;
use crate::script::{Origin, Piece, Script, Span, Word};
use crate::words::Words;

#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// All the values a variable may have had; `None` for one that only the run will know.
    values: HashMap<String, Vec<Option<String>>>,
    /// Base names of files that were written; `None` if only the run will know which.
    written: Vec<Option<String>>,
    /// Texts that are code if something evaluates them.
    pub suspects: Vec<(String, Span)>,
    /// Whether something evaluates text.
    pub evaluates: bool,
    /// Whether something may run later than it stands there: in a loop, a function, a trap.
    pub is_out_of_order: bool,
}

/// Commands that print names of files, numbers and the like, never an option somebody made up.
const LISTING: Words = Words(
    "basename cargo date df dirname du fd find git grep head hostname id jq ls mktemp nproc pwd \
     readlink realpath rg rustc seq sort stat tail uname uniq wc which whoami",
);

impl Knowledge {
    pub fn new(variables: &[(String, String)]) -> Self {
        let mut knowledge = Self::default();
        for (name, value) in variables {
            knowledge.values.insert(name.clone(), vec![Some(value.clone())]);
        }
        knowledge
    }

    /// Takes what a script tells of itself.
    pub fn learn(&mut self, script: &mut Script) {
        self.evaluates |= script.evaluates;
        self.suspects.append(&mut script.suspects);
        for (name, value) in script.values() {
            let value = value.and_then(|word| known(script, word));
            let values = self.values.entry(name.to_owned()).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// Notes a value of a variable, or that only the run will know it.
    pub fn note(&mut self, name: &str, value: Option<String>) {
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    pub fn note_written(&mut self, file: &Word) {
        self.written.push(file.data().map(|path| base_name(&path).to_owned()));
    }

    /// Whether a file may be one that the request wrote itself.
    pub fn has_written(&self, path: &str) -> bool {
        let base = base_name(path);
        self.written.iter().any(|written| written.as_deref().is_none_or(|name| name == base))
    }

    /// Whether a variable got a text that `make` would take for code.
    pub fn has_make_code(&self) -> bool {
        let is_code = |value: &Option<String>| {
            value.as_ref().is_some_and(|text| text.contains("$(") || text.contains("${"))
        };
        self.values.values().flatten().any(is_code)
    }

    /// Whether a word that only the run will know may be an option of a program. A variable that was
    /// not set by the request has what its owner gave it.
    pub fn may_be_option(&self, word: &Word) -> bool {
        let Some(Piece::Unknown { splits: false, origin }) = word.pieces.first() else {
            return true;
        };
        match origin {
            Origin::File | Origin::Number => false,
            Origin::Variable(name) => {
                let values = self.values.get(name).map(Vec::as_slice).unwrap_or_default();
                let harmless = |value: &Option<String>| {
                    value.as_ref().is_some_and(|text| !text.is_empty() && !text.starts_with('-'))
                };
                !values.iter().all(harmless)
            }
            Origin::Commands(_) | Origin::Other => true,
        }
    }
}

/// A value as far as it is known: its text, or what it certainly does not begin with.
fn known(script: &Script, word: &Word) -> Option<String> {
    if let Some(text) = word.data() {
        return Some(text);
    }
    let beginning = word.beginning();
    if !beginning.is_empty() && !beginning.starts_with('-') {
        return Some(beginning);
    }
    let Some(Piece::Unknown { origin: Origin::Commands(commands), .. }) = word.pieces.first()
    else {
        return None;
    };
    let lists = |at: usize| {
        let command = &script.commands[at];
        command.words.first().and_then(Word::literal).is_some_and(|name| LISTING.has(&name))
    };
    (!commands.is_empty() && commands.clone().all(lists)).then(|| "listed".to_owned())
}
