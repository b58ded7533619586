//! YAML, edited by lines: an entry is a run of indented lines below its table's key.
//!
//! A table in braces, or with an anchor or a tag, has no such lines: the file is then not edited.

use std::ops::Range;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, Yaml};
use serde_json::Value;

use super::edit::{EditError, line_end, ordered, splice};

pub fn read(text: &str) -> Result<Value, EditError> {
    let mut documents = Yaml::load_from_str(text).map_err(EditError::Yaml)?;
    match documents.len() {
        0 | 1 => documents.pop().map_or(Ok(Value::Null), |document| to_json(&document)),
        _ => Err(EditError::SeveralDocuments),
    }
}

/// A document as a JSON value. A key that is not a string is refused: as one it could equal another key.
fn to_json(node: &Yaml<'_>) -> Result<Value, EditError> {
    Ok(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(yes)) => (*yes).into(),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        Yaml::Mapping(pairs) => {
            let pair = |(key, value)| match (to_json(key)?, to_json(value)?) {
                (Value::String(key), value) => Ok((key, value)),
                (key, _) => Err(EditError::KeyNotString(key)),
            };
            Value::Object(pairs.iter().map(pair).collect::<Result<_, EditError>>()?)
        }
        other => return Err(EditError::UnknownNode(format!("{other:?}"))),
    })
}

/// Where a table and one of its entries are in the text.
struct Table {
    /// The line with the table's key, including its line end.
    head: Range<usize>,
    /// What follows the colon, if the table is empty.
    empty_value: Option<Range<usize>>,
    /// The indentation of its entries.
    indent: String,
    /// The lines of the entry.
    entry: Option<Range<usize>>,
}

pub fn add(text: &str, table: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    let end = line_end(text);
    let lines = |indent: &str| {
        let mut lines = vec![format!("{indent}{}:", scalar(name))];
        render(entry, &format!("{indent}  "), &mut lines);
        lines.join(end) + end
    };
    let Some(found) = find(text, table, name)? else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        return Ok(format!("{text}{gap}{table}:{end}{}", lines("  ")));
    };
    let below = found.head.end..found.head.end;
    let gap = if text[found.head.clone()].ends_with('\n') { "" } else { end };
    Ok(match (found.entry, found.empty_value) {
        (Some(old), _) => splice(text, &[(old, &lines(&found.indent))]),
        (None, Some(value)) => {
            splice(text, &[(value, ""), (below, &format!("{gap}{}", lines("  ")))])
        }
        (None, None) => splice(text, &[(below, &lines(&found.indent))]),
    })
}

pub fn remove(text: &str, table: &str, name: &str, keep_table: bool) -> Result<String, EditError> {
    let Some(Table { head, entry: Some(entry), .. }) = find(text, table, name)? else {
        return Ok(text.to_owned());
    };
    let without = splice(text, &[(entry.clone(), "")]);
    match read(&without).ok().and_then(|read| read.get(table).cloned()) {
        Some(Value::Null) if keep_table => {
            let colon = head.start + text[head.clone()].trim_end().len();
            Ok(splice(&without, &[(colon..colon, " {}")]))
        }
        Some(Value::Null) => Ok(splice(text, &[(head, ""), (entry, "")])),
        _ => Ok(without),
    }
}

fn find(text: &str, table: &str, name: &str) -> Result<Option<Table>, EditError> {
    let documents = MarkedYaml::load_from_str(text).map_err(EditError::Yaml)?;
    let Some(root) = documents.first().and_then(|root| root.data.as_mapping()) else {
        return Ok(None);
    };
    let named = |name: &str, key: &MarkedYaml<'_>| key.data.as_str() == Some(name);
    let Some((key, value)) = root.iter().find(|(key, _)| named(table, key)) else {
        return Ok(None);
    };
    let starts: Vec<usize> = line_starts(text).collect();
    let line = |number: usize| starts.get(number - 1).copied().unwrap_or(text.len());
    let number = key.span.start.line();
    let head = line(number)..line(number + 1);
    let colon = text[head.clone()].find(':').ok_or(EditError::Entangled)?;
    let after_colon = head.start + colon + 1;
    let rest = text[after_colon..head.end].trim_end();
    let found =
        Table { head: head.clone(), empty_value: None, indent: "  ".to_owned(), entry: None };
    let Some(children) = value.data.as_mapping().filter(|children| !children.is_empty()) else {
        if !matches!(rest.trim(), "" | "{}" | "null" | "~") {
            return Err(EditError::Entangled);
        }
        let empty_value = Some(after_colon..after_colon + rest.len());
        return Ok(Some(Table { empty_value, ..found }));
    };
    // Only a comment may follow the colon, not a brace, an anchor or a tag.
    if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
        return Err(EditError::Entangled);
    }
    let first = children.keys().next().ok_or(EditError::Entangled)?.span.start;
    let indent = text[line(first.line())..].chars().take(first.col()).collect::<String>();
    if !indent.chars().all(|c| c == ' ') || indent.is_empty() {
        return Err(EditError::Entangled);
    }
    let entry = children.keys().find(|key| named(name, key)).map(|key| {
        let number = key.span.start.line();
        line(number)..end_of_block(text, line(number + 1), indent.len())
    });
    Ok(Some(Table { indent, entry, ..found }))
}

/// Where the lines end that are indented deeper. Comments and empty lines above the next block belong
/// to that block.
fn end_of_block(text: &str, start: usize, indent: usize) -> usize {
    let mut end = start;
    for line in line_starts(&text[start..]).map(|at| start + at) {
        let content = text[line..].split('\n').next().unwrap_or_default();
        let trimmed = content.trim_start_matches(' ');
        let deeper = content.len() - trimmed.len() > indent
            || (content.len() - trimmed.len() == indent && trimmed.starts_with("- "));
        match trimmed.trim_end() {
            "" => {}
            comment if comment.starts_with('#') => {}
            _ if deeper => end = (line + content.len() + 1).min(text.len()),
            _ => break,
        }
    }
    end
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1))
}

fn render(value: &Value, indent: &str, lines: &mut Vec<String>) {
    for (key, value) in value.as_object().map(ordered).unwrap_or_default() {
        let key = scalar(key);
        match value {
            Value::Object(table) if !table.is_empty() => {
                lines.push(format!("{indent}{key}:"));
                render(value, &format!("{indent}  "), lines);
            }
            Value::Array(items) if !items.is_empty() => {
                lines.push(format!("{indent}{key}:"));
                let item = |item: &Value| match item {
                    Value::String(text) => format!("{indent}  - {}", scalar(text)),
                    other => format!("{indent}  - {other}"),
                };
                lines.extend(items.iter().map(item));
            }
            Value::String(text) => lines.push(format!("{indent}{key}: {}", scalar(text))),
            other => lines.push(format!("{indent}{key}: {other}")),
        }
    }
}

/// A string, plain if YAML cannot read it as anything else, or quoted as in JSON.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'));
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    match plain && !words.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}
