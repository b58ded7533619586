//! A client's file as text: an entry is put in or taken out, and all else stays as it is.
//!
//! The forms only cut and splice text, at places their parsers name. What they made is read again
//! and held against what was there: a file never comes out of here with anything else changed.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use super::{json, toml, yaml};

/// The keys of entries in the order people write them; others follow.
const ORDER: &[&str] = &[
    "enabled",
    "type",
    "name",
    "description",
    "command",
    "cmd",
    "args",
    "url",
    "httpUrl",
    "uri",
    "bearer_token_env_var",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

impl fmt::Display for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        })
    }
}

/// Where in a file an entry is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub form: Form,
    pub table: &'static str,
    pub name: &'a str,
}

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub enum Puzzle {
    #[error("it is not {form} we can read: {problem}")]
    Unreadable { form: Form, problem: String },
    #[error("`{0}` is not a table, or is there more than once")]
    NoTable(String),
    #[error("it is written in a way we cannot change without touching more than the entry")]
    Intricate,
}

impl Place<'_> {
    /// All entries of the table.
    pub fn entries(&self, text: &str) -> Result<Map<String, Value>, Puzzle> {
        match self.read(text)?.remove(self.table) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(entries)) => Ok(entries),
            Some(_) => Err(Puzzle::NoTable(self.table.to_owned())),
        }
    }

    pub fn has_table(&self, text: &str) -> bool {
        self.read(text).is_ok_and(|all| all.contains_key(self.table))
    }

    /// The text with the entry in it.
    pub fn with(&self, text: &str, entry: &Value) -> Result<String, Puzzle> {
        let mut expected = self.read(text)?;
        let mut entries = self.entries(text)?;
        entries.insert(self.name.to_owned(), entry.clone());
        expected.insert(self.table.to_owned(), entries.into());
        let (mark, body) = unmarked(text);
        let changed = match self.form {
            Form::Json => json::put(body, self.table, self.name, entry),
            Form::Toml => toml::put(body, self.table, self.name, entry),
            Form::Yaml => yaml::put(body, self.table, self.name, entry),
        };
        self.checked(format!("{mark}{}", changed?), &expected)
    }

    /// The text without the entry, and without its table if that has become empty and is not to be
    /// kept.
    pub fn without(&self, text: &str, keep_table: bool) -> Result<String, Puzzle> {
        let mut expected = self.read(text)?;
        let mut entries = self.entries(text)?;
        entries.remove(self.name);
        expected.remove(self.table);
        let keep_table = keep_table || !entries.is_empty();
        if keep_table {
            expected.insert(self.table.to_owned(), entries.into());
        }
        let (mark, body) = unmarked(text);
        let changed = match self.form {
            Form::Json => json::cut(body, self.table, self.name, keep_table),
            Form::Toml => toml::cut(body, self.table, self.name),
            Form::Yaml => yaml::cut(body, self.table, self.name, keep_table),
        };
        self.checked(format!("{mark}{}", changed?), &expected)
    }

    /// What to write where there is nothing yet.
    pub fn fragment(&self, entry: &Value) -> Result<String, Puzzle> {
        self.with("", entry)
    }

    fn read(&self, text: &str) -> Result<Map<String, Value>, Puzzle> {
        let (_, body) = unmarked(text);
        let read = match self.form {
            Form::Json => json::read(body),
            Form::Toml => toml::read(body),
            Form::Yaml => yaml::read(body),
        };
        match read.map_err(|problem| Puzzle::Unreadable { form: self.form, problem })? {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Map::new()),
            _ => Err(Puzzle::NoTable("the whole file".to_owned())),
        }
    }

    fn checked(&self, text: String, expected: &Map<String, Value>) -> Result<String, Puzzle> {
        let read = self.read(&text).map_err(|_| Puzzle::Intricate)?;
        // TOML has no empty table that nobody wrote.
        let same = |read: &Map<String, Value>| {
            let empty = |map: &Map<String, Value>| {
                map.get(self.table).is_none_or(|table| table.as_object().is_some_and(Map::is_empty))
            };
            let others = |map: &Map<String, Value>| {
                let mut map = map.clone();
                map.remove(self.table);
                map
            };
            read == expected || (empty(read) && empty(expected) && others(read) == others(expected))
        };
        if same(&read) { Ok(text) } else { Err(Puzzle::Intricate) }
    }
}

/// Some editors begin a file with a byte order mark.
fn unmarked(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// The keys and values of a table as they are written.
pub fn ordered(table: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| rank(key));
    pairs
}

/// Text with some ranges of it replaced, which are in order.
pub fn spliced(text: &str, edits: &[(Range<usize>, &str)]) -> String {
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in edits {
        result.push_str(&text[at..range.start]);
        result.push_str(replacement);
        at = range.end;
    }
    result.push_str(&text[at..]);
    result
}

/// The line end a text uses.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
