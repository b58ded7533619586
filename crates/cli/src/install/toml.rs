//! TOML, where an entry is a table with its own header.
//!
//! A new entry goes to the end of the file: anywhere else, its table would swallow the keys that follow.

use std::ops::Range;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::edit::{EditError, line_end, ordered, splice};

pub fn read(text: &str) -> Result<Value, EditError> {
    toml::from_str(text).map_err(|error| EditError::Toml(Box::new(error)))
}

pub fn add(text: &str, table: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    let end = line_end(text);
    let mut lines = vec![format!("[{}.{}]", key(table), key(name))];
    for (field, value) in entry.as_object().map(ordered).unwrap_or_default() {
        lines.push(format!("{} = {}", key(field), render(value)));
    }
    let written = lines.join(end) + end;
    let sections = sections(text, table, name)?;
    if let [first, rest @ ..] = &sections[..] {
        let rest = rest.iter().map(|section| (section.clone(), ""));
        let edits: Vec<_> = [(first.clone(), written.as_str())].into_iter().chain(rest).collect();
        return Ok(splice(text, &edits));
    }
    let gap = match text {
        "" => "".to_owned(),
        text if text.ends_with('\n') => end.to_owned(),
        _ => end.repeat(2),
    };
    Ok(format!("{text}{gap}{written}"))
}

pub fn remove(text: &str, table: &str, name: &str) -> Result<String, EditError> {
    let mut sections = sections(text, table, name)?;
    if let Some(first) = sections.first_mut() {
        // The empty line above goes, too: `add` put it there.
        let before = text[..first.start].strip_suffix('\n').unwrap_or_default();
        let before = before.strip_suffix('\r').unwrap_or(before);
        if before.ends_with('\n') {
            first.start = before.len();
        }
    }
    let edits: Vec<_> = sections.into_iter().map(|section| (section, "")).collect();
    Ok(splice(text, &edits))
}

/// The lines of an entry: those of its table, and of each table below it.
fn sections(text: &str, table: &str, name: &str) -> Result<Vec<Range<usize>>, EditError> {
    let parsed = DeTable::parse(text).map_err(|error| EditError::Toml(Box::new(error)))?;
    let entry = parsed.get_ref().get(table).and_then(|table| table.get_ref().get(name));
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let mut sections = Vec::new();
    collect(text, entry.span(), entry.get_ref(), &mut sections);
    if sections.is_empty() {
        return Err(EditError::Entangled);
    }
    sections.sort_by_key(|section| section.start);
    Ok(sections)
}

fn collect(text: &str, span: Range<usize>, value: &DeValue<'_>, sections: &mut Vec<Range<usize>>) {
    let Some(fields) = value.as_table().filter(|_| text[span.clone()].starts_with('[')) else {
        return;
    };
    let own = fields.values().filter(|value| !has_header(text, value.span(), value.get_ref()));
    let last = own.map(|value| value.span().end).fold(span.end, usize::max);
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
    sections.push(start..end);
    for value in fields.values() {
        collect(text, value.span(), value.get_ref(), sections);
    }
}

fn has_header(text: &str, span: Range<usize>, value: &DeValue<'_>) -> bool {
    value.as_table().is_some() && text[span].starts_with('[')
}

fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A JSON string is a TOML string, except that TOML wants U+007F escaped.
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
        scalar => scalar.to_string(),
    }
}
