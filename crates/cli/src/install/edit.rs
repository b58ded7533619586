//! What the editors of JSON, TOML and YAML share: how they fail, and how they change text.
//!
//! A change is a splice: bytes outside the given ranges are copied, never written again.

use std::ops::Range;

use serde_json::{Map, Value};

/// The keys of an entry in the order people write them. Other keys follow.
const KEY_ORDER: &[&str] = &[
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

/// Why a file is not edited. The messages follow "FILE was not changed:".
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("it is not valid JSON: {0}")]
    Json(jsonc_parser::errors::ParseError),
    #[error("it is not valid TOML: {0}")]
    Toml(Box<toml::de::Error>),
    #[error("it is not valid YAML: {0}")]
    Yaml(saphyr::ScanError),
    #[error("it contains more than one YAML document")]
    SeveralDocuments,
    #[error("its key {0} is not a string")]
    KeyNotString(Value),
    #[error("it contains YAML that mcpz does not know: {0}")]
    UnknownNode(String),
    #[error("its top level is not a table")]
    RootNotTable,
    #[error("`{0}` in it is not a table")]
    NotTable(String),
    #[error("it contains `{0}` more than once")]
    Duplicate(String),
    #[error("mcpz cannot change the entry without changing other parts of the file")]
    Entangled,
}

/// The keys and values of a table, in the order to write them.
pub fn ordered(table: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| {
        let known = KEY_ORDER.iter().position(|known| *known == key);
        known.unwrap_or(KEY_ORDER.len())
    };
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| rank(key));
    pairs
}

/// The text with each range replaced. The ranges must be in order and must not overlap.
pub fn splice(text: &str, edits: &[(Range<usize>, &str)]) -> String {
    let (mut result, mut copied) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in edits {
        result.push_str(&text[copied..range.start]);
        result.push_str(replacement);
        copied = range.end;
    }
    result.push_str(&text[copied..]);
    result
}

/// The line end that a text uses.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
