//! TOML, where an entry is a table with a header of its own.
//!
//! It is appended to the file: a table before others would take the keys that follow for itself.

use std::ops::Range;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::document::{Puzzle, line_end, ordered, spliced};

pub fn read(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())
}

pub fn put(text: &str, table: &str, name: &str, entry: &Value) -> Result<String, Puzzle> {
    let end = line_end(text);
    let mut lines = vec![format!("[{}.{}]", key(table), key(name))];
    for (field, value) in entry.as_object().map(ordered).unwrap_or_default() {
        lines.push(format!("{} = {}", key(field), render(value)));
    }
    let written = lines.join(end) + end;
    let blocks = blocks(text, table, name)?;
    if let [first, rest @ ..] = &blocks[..] {
        let rest = rest.iter().map(|block| (block.clone(), ""));
        let edits: Vec<_> = [(first.clone(), written.as_str())].into_iter().chain(rest).collect();
        return Ok(spliced(text, &edits));
    }
    let gap = match text {
        "" => "".to_owned(),
        text if text.ends_with('\n') => end.to_owned(),
        _ => end.repeat(2),
    };
    Ok(format!("{text}{gap}{written}"))
}

pub fn cut(text: &str, table: &str, name: &str) -> Result<String, Puzzle> {
    let mut blocks = blocks(text, table, name)?;
    if let Some(first) = blocks.first_mut() {
        let before = text[..first.start].strip_suffix('\n').unwrap_or_default();
        let before = before.strip_suffix('\r').unwrap_or(before);
        if before.ends_with('\n') {
            first.start = before.len();
        }
    }
    let edits: Vec<_> = blocks.into_iter().map(|block| (block, "")).collect();
    Ok(spliced(text, &edits))
}

/// The lines of an entry: those of its table, and of each table below it.
fn blocks(text: &str, table: &str, name: &str) -> Result<Vec<Range<usize>>, Puzzle> {
    let parsed = DeTable::parse(text).map_err(|_| Puzzle::Intricate)?;
    let entry = parsed.get_ref().get(table).and_then(|table| table.get_ref().get(name));
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let mut blocks = Vec::new();
    collect(text, entry.span(), entry.get_ref(), &mut blocks);
    if blocks.is_empty() {
        return Err(Puzzle::Intricate);
    }
    blocks.sort_by_key(|block| block.start);
    Ok(blocks)
}

fn collect(text: &str, span: Range<usize>, value: &DeValue<'_>, blocks: &mut Vec<Range<usize>>) {
    let Some(fields) = value.as_table().filter(|_| text[span.clone()].starts_with('[')) else {
        return;
    };
    let own = fields.values().filter(|value| !is_headed(text, value.span(), value.get_ref()));
    let last = own.map(|value| value.span().end).fold(span.end, usize::max);
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
    blocks.push(start..end);
    for value in fields.values() {
        collect(text, value.span(), value.get_ref(), blocks);
    }
}

fn is_headed(text: &str, span: Range<usize>, value: &DeValue<'_>) -> bool {
    value.as_table().is_some() && text[span].starts_with('[')
}

fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// Strings of JSON are strings of TOML, but for one character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

fn render(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(render).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{} = {}", key(name), render(value));
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}
