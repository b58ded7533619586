//! YAML, edited by lines: an entry is the lines below the table's.
//!
//! Where the table is written in braces there are no such lines, and the file is left alone.

use std::ops::Range;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, Yaml};
use serde_json::Value;

use super::document::{Puzzle, line_end, ordered, spliced};

pub fn read(text: &str) -> Result<Value, String> {
    let mut documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    match documents.len() {
        0 | 1 => documents.pop().map_or(Ok(Value::Null), |document| plain(&document)),
        _ => Err("there is more than one document in it".to_owned()),
    }
}

/// A document as JSON would have it. Names that are not text would become others.
fn plain(node: &Yaml<'_>) -> Result<Value, String> {
    Ok(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(yes)) => (*yes).into(),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(plain).collect::<Result<_, _>>()?,
        Yaml::Mapping(pairs) => {
            let pair = |(key, value)| match (plain(key)?, plain(value)?) {
                (Value::String(key), value) => Ok((key, value)),
                (key, _) => Err(format!("the key {key} is not text")),
            };
            Value::Object(pairs.iter().map(pair).collect::<Result<_, String>>()?)
        }
        other => return Err(format!("there is something we do not know: {other:?}")),
    })
}

/// Where a table is in the lines of a text.
struct Found {
    /// The line of its name, to its end.
    head: Range<usize>,
    /// Behind the colon, if there is nothing in the table.
    hollow: Option<Range<usize>>,
    indent: String,
    /// The lines of the entry that is looked for.
    entry: Option<Range<usize>>,
}

pub fn put(text: &str, table: &str, name: &str, entry: &Value) -> Result<String, Puzzle> {
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
    let behind = found.head.end..found.head.end;
    let gap = if text[found.head.clone()].ends_with('\n') { "" } else { end };
    Ok(match (found.entry, found.hollow) {
        (Some(old), _) => spliced(text, &[(old, &lines(&found.indent))]),
        (None, Some(hollow)) => {
            spliced(text, &[(hollow, ""), (behind, &format!("{gap}{}", lines("  ")))])
        }
        (None, None) => spliced(text, &[(behind, &lines(&found.indent))]),
    })
}

pub fn cut(text: &str, table: &str, name: &str, keep_table: bool) -> Result<String, Puzzle> {
    let Some(Found { head, entry: Some(entry), .. }) = find(text, table, name)? else {
        return Ok(text.to_owned());
    };
    let without = spliced(text, &[(entry.clone(), "")]);
    match read(&without).ok().and_then(|read| read.get(table).cloned()) {
        Some(Value::Null) if keep_table => {
            let colon = head.start + text[head.clone()].trim_end().len();
            Ok(spliced(&without, &[(colon..colon, " {}")]))
        }
        Some(Value::Null) => Ok(spliced(text, &[(head, ""), (entry, "")])),
        _ => Ok(without),
    }
}

fn find(text: &str, table: &str, name: &str) -> Result<Option<Found>, Puzzle> {
    let documents = MarkedYaml::load_from_str(text).map_err(|_| Puzzle::Intricate)?;
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
    let behind = head.start + text[head.clone()].find(':').ok_or(Puzzle::Intricate)? + 1;
    let rest = text[behind..head.end].trim_end();
    let found = Found { head: head.clone(), hollow: None, indent: "  ".to_owned(), entry: None };
    let Some(children) = value.data.as_mapping().filter(|children| !children.is_empty()) else {
        let known = matches!(rest.trim(), "" | "{}" | "null" | "~");
        let hollow = known.then_some(behind..behind + rest.len());
        return Ok(Some(Found { hollow: Some(hollow.ok_or(Puzzle::Intricate)?), ..found }));
    };
    // What else can stand there is a remark; braces, anchors and tags are not for us.
    if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
        return Err(Puzzle::Intricate);
    }
    let first = children.keys().next().ok_or(Puzzle::Intricate)?.span.start;
    let indent = text[line(first.line())..].chars().take(first.col()).collect::<String>();
    if !indent.chars().all(|c| c == ' ') || indent.is_empty() {
        return Err(Puzzle::Intricate);
    }
    let entry = children.keys().find(|key| named(name, key)).map(|key| {
        let number = key.span.start.line();
        line(number)..end_of_block(text, line(number + 1), indent.len())
    });
    Ok(Some(Found { indent, entry, ..found }))
}

/// Where the lines end that are indented deeper. Remarks and empty lines before the next block are
/// the next one's.
fn end_of_block(text: &str, start: usize, indent: usize) -> usize {
    let mut end = start;
    for line in line_starts(&text[start..]).map(|at| start + at) {
        let content = text[line..].split('\n').next().unwrap_or_default();
        let trimmed = content.trim_start_matches(' ');
        let deeper = content.len() - trimmed.len() > indent
            || (content.len() - trimmed.len() == indent && trimmed.starts_with("- "));
        match trimmed.trim_end() {
            "" => {}
            remark if remark.starts_with('#') => {}
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

/// Text as it is if that cannot be taken for anything else, or in quotes, which are those of JSON.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'));
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    match plain && !words.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}
