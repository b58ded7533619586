//! A client's file as text: adds an entry or removes it, and leaves everything else as it is.
//!
//! A syntax tree says where an entry is; the editors of the formats only splice text there, because the edits
//! that such trees offer move comments and blank lines. Every result is parsed again and compared with what
//! the file said before, so no edit that changes anything but the entry leaves this file.

use serde_json::{Map, Value};

use super::edit::EditError;
use super::{json, toml, yaml};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// Where a file lists a server: under `name` in `table`.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    pub format: Format,
    pub table: &'static str,
    pub name: &'a str,
}

impl Location<'_> {
    /// All entries of the table.
    pub fn entries(&self, text: &str) -> Result<Map<String, Value>, EditError> {
        match self.read(text)?.remove(self.table) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(entries)) => Ok(entries),
            Some(_) => Err(EditError::NotTable(self.table.to_owned())),
        }
    }

    pub fn has_table(&self, text: &str) -> bool {
        self.read(text).is_ok_and(|all| all.contains_key(self.table))
    }

    /// The text with the entry added, or with this entry in place of the one it has.
    pub fn add(&self, text: &str, entry: &Value) -> Result<String, EditError> {
        let mut expected = self.read(text)?;
        let mut entries = self.entries(text)?;
        entries.insert(self.name.to_owned(), entry.clone());
        expected.insert(self.table.to_owned(), entries.into());
        let (mark, body) = split_byte_order_mark(text);
        let changed = match self.format {
            Format::Json => json::add(body, self.table, self.name, entry),
            Format::Toml => toml::add(body, self.table, self.name, entry),
            Format::Yaml => yaml::add(body, self.table, self.name, entry),
        };
        self.checked(format!("{mark}{}", changed?), &expected)
    }

    /// The text without the entry. A table that is empty then goes as well, unless it is to be kept.
    pub fn remove(&self, text: &str, keep_table: bool) -> Result<String, EditError> {
        let mut expected = self.read(text)?;
        let mut entries = self.entries(text)?;
        entries.remove(self.name);
        expected.remove(self.table);
        let keep_table = keep_table || !entries.is_empty();
        if keep_table {
            expected.insert(self.table.to_owned(), entries.into());
        }
        let (mark, body) = split_byte_order_mark(text);
        let changed = match self.format {
            Format::Json => json::remove(body, self.table, self.name, keep_table),
            Format::Toml => toml::remove(body, self.table, self.name),
            Format::Yaml => yaml::remove(body, self.table, self.name, keep_table),
        };
        self.checked(format!("{mark}{}", changed?), &expected)
    }

    /// What an empty file would contain after adding the entry.
    pub fn snippet(&self, entry: &Value) -> Result<String, EditError> {
        self.add("", entry)
    }

    fn read(&self, text: &str) -> Result<Map<String, Value>, EditError> {
        let (_, body) = split_byte_order_mark(text);
        let read = match self.format {
            Format::Json => json::read(body),
            Format::Toml => toml::read(body),
            Format::Yaml => yaml::read(body),
        };
        match read? {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Map::new()),
            _ => Err(EditError::RootNotTable),
        }
    }

    fn checked(&self, text: String, expected: &Map<String, Value>) -> Result<String, EditError> {
        let read = self.read(&text).map_err(|_| EditError::Entangled)?;
        if self.is_same(&read, expected) { Ok(text) } else { Err(EditError::Entangled) }
    }

    /// Whether two files say the same. A missing table counts as an empty one: TOML cannot express a
    /// table without entries that has no header of its own.
    fn is_same(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let is_empty = |map: &Map<String, Value>| {
            map.get(self.table).is_none_or(|table| table.as_object().is_some_and(Map::is_empty))
        };
        let rest = |map: &Map<String, Value>| {
            let mut map = map.clone();
            map.remove(self.table);
            map
        };
        one == other || (is_empty(one) && is_empty(other) && rest(one) == rest(other))
    }
}

/// Some editors start a file with a byte order mark, which the parsers do not expect.
fn split_byte_order_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}
