//! JSON as editors write it, with comments and trailing commas.
//!
//! A new member comes last. The comma it needs goes right behind the value before it, the member
//! itself behind what else is on that line, so that a comment stays with what it is about.

#[cfg(test)]
mod tests;

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast, parse_to_serde_value};
use serde_json::Value;

use super::edit::{EditError, line_end, ordered, splice};

/// What editors and people write in such files.
pub const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub fn read(text: &str) -> Result<Value, EditError> {
    parse_to_serde_value(text, &OPTIONS).map_err(EditError::Json)
}

pub fn add(text: &str, table: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    if text.trim().is_empty() {
        let style = Style { unit: "  ", line_end: line_end(text) };
        let whole = serde_json::json!({table: {name: entry}});
        return Ok(style.render(&whole, Some("")) + style.line_end);
    }
    edit(text, |root| {
        let style = Style::of(text, root);
        let Some(servers) = member(root, table)? else {
            return Ok(style.append(text, root, table, &serde_json::json!({name: entry})));
        };
        let servers = object(table, servers)?;
        Ok(match member(servers, name)? {
            Some(old) => {
                let indent = own_line(text, old.start()).map(|line| &text[line]);
                let indent = indent.map(|line| line.trim_start_matches(['\r', '\n']));
                splice(text, &[(range(&old.value), &style.render(entry, indent))])
            }
            None => style.append(text, servers, name, entry),
        })
    })
}

pub fn remove(text: &str, table: &str, name: &str, keep_table: bool) -> Result<String, EditError> {
    edit(text, |root| {
        let Some(servers) = member(root, table)? else { return Ok(text.to_owned()) };
        let servers = object(table, servers)?;
        if member(servers, name)?.is_none() {
            return Ok(text.to_owned());
        }
        // A table with a remark in it is somebody's work, however empty.
        let without = remove_member(text, servers, name);
        let bare = edit(&without, |root| {
            let servers = member(root, table)?.ok_or(EditError::Entangled)?;
            Ok(without[range(&servers.value)].chars().filter(|c| !c.is_whitespace()).collect())
        })?;
        Ok(if !keep_table && bare == "{}" { remove_member(text, root, table) } else { without })
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&Object<'_>) -> Result<String, EditError>,
) -> Result<String, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(EditError::Json)?;
    let root = parsed.value.as_ref().and_then(|value| value.as_object());
    change(root.ok_or(EditError::Entangled)?)
}

fn member<'a, 'b>(
    object: &'a Object<'b>,
    name: &str,
) -> Result<Option<&'a ObjectProp<'b>>, EditError> {
    let mut found = object.properties.iter().filter(|member| member.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some(_) => Err(EditError::NotTable(name.to_owned())),
        None => Ok(first),
    }
}

fn object<'a, 'b>(name: &str, member: &'a ObjectProp<'b>) -> Result<&'a Object<'b>, EditError> {
    member.value.as_object().ok_or_else(|| EditError::NotTable(name.to_owned()))
}

fn range(part: &impl Ranged) -> Range<usize> {
    part.start()..part.end()
}

struct Style<'a> {
    unit: &'a str,
    line_end: &'static str,
}

impl<'a> Style<'a> {
    fn of(text: &'a str, root: &Object<'_>) -> Self {
        let first = root.properties.first().and_then(|member| own_line(text, member.start()));
        let unit = first.map(|line| text[line].trim_start_matches(['\r', '\n']));
        let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or("  ");
        Self { unit, line_end: line_end(text) }
    }

    /// A value as it is written at an indentation, or on one line.
    fn render(&self, value: &Value, indent: Option<&str>) -> String {
        let Value::Object(table) = value else {
            return match value {
                Value::Array(items) => {
                    let items: Vec<_> = items.iter().map(|item| self.render(item, None)).collect();
                    format!("[{}]", items.join(", "))
                }
                plain => plain.to_string(),
            };
        };
        let inner = indent.map(|indent| format!("{indent}{}", self.unit));
        let pairs = ordered(table).into_iter().map(|(key, value)| {
            format!("{}: {}", Value::from(key.as_str()), self.render(value, inner.as_deref()))
        });
        let pairs: Vec<_> = pairs.collect();
        let end = self.line_end;
        match (indent, &inner) {
            (Some(indent), Some(inner)) if !pairs.is_empty() => {
                let between = format!(",{end}{inner}");
                format!("{{{end}{inner}{}{end}{indent}}}", pairs.join(&between))
            }
            _ => format!("{{{}}}", pairs.join(", ")),
        }
    }

    fn append(&self, text: &str, object: &Object<'_>, name: &str, value: &Value) -> String {
        let key = Value::from(name);
        let end = self.line_end;
        let Some(last) = object.properties.last() else {
            return self.fill(text, object, &key, value);
        };
        let behind = last.end();
        let comma = comma_after(text, behind);
        let start = comma.map_or(behind, |comma| comma + 1);
        let (own, needed) = match comma {
            Some(_) => (",", ""),
            None => ("", ","),
        };
        match own_line(text, last.start()) {
            Some(line) => {
                let indent = text[line].trim_start_matches(['\r', '\n']);
                let member =
                    format!("{end}{indent}{key}: {}{own}", self.render(value, Some(indent)));
                let at = rest_of_line(text, start);
                splice(text, &[(behind..behind, needed), (at..at, &member)])
            }
            None => {
                let member = format!("{needed} {key}: {}{own}", self.render(value, None));
                splice(text, &[(start..start, &member)])
            }
        }
    }

    /// Puts the first member into an object.
    fn fill(&self, text: &str, object: &Object<'_>, key: &Value, value: &Value) -> String {
        let inside = object.start() + 1..object.end() - 1;
        if !text.trim_end().contains('\n') {
            let member = format!("{key}: {}", self.render(value, None));
            return splice(text, &[(inside.end..inside.end, &member)]);
        }
        let line = text[..object.start()].rfind('\n').map_or(0, |at| at + 1);
        let base: String = text[line..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        let (end, indent) = (self.line_end, format!("{base}{}", self.unit));
        let member = format!("{end}{indent}{key}: {}", self.render(value, Some(&indent)));
        match text[inside.clone()].trim_end().len() {
            0 => splice(text, &[(inside, &format!("{member}{end}{base}"))]),
            remarks => {
                let at = inside.start + remarks;
                splice(text, &[(at..at, &member)])
            }
        }
    }
}

/// Cuts a member out of an object, with the line and the comma it had for itself.
fn remove_member(text: &str, object: &Object<'_>, name: &str) -> String {
    let index = object.properties.iter().position(|member| member.name.as_str() == name);
    let Some(index) = index else { return text.to_owned() };
    let member = &object.properties[index];
    let (mut start, end) = (member.start(), member.end());
    let line = own_line(text, start);
    let single = line.is_none();
    if let Some(line) = line {
        start = line.start;
    }
    let before = index.checked_sub(1).map(|before| object.properties[before].end());
    let before = before.and_then(|before| comma_after(text, before));
    let blank = |range: Range<usize>| text[range].trim().is_empty();
    let touching = before.filter(|comma| single && blank(comma + 1..start));
    match (comma_after(text, end), before) {
        (Some(comma), _) => {
            let behind = comma + 1;
            match touching {
                Some(touching) => start = touching + 1,
                None if single => {
                    let spaces =
                        text[behind..].len() - text[behind..].trim_start_matches(' ').len();
                    return splice(text, &[(start..end, ""), (comma..behind + spaces, "")]);
                }
                None => {}
            }
            splice(text, &[(start..end, ""), (comma..behind, "")])
        }
        (None, Some(comma)) if touching.is_some() => splice(text, &[(comma..end, "")]),
        (None, Some(comma)) => splice(text, &[(comma..comma + 1, ""), (start..end, "")]),
        (None, None) => {
            let inside = object.start() + 1..object.end() - 1;
            match blank(inside.start..start) && blank(end..inside.end) {
                true => splice(text, &[(inside, "")]),
                false => splice(text, &[(start..end, "")]),
            }
        }
    }
}

/// The line end and the indentation before something that begins its line.
fn own_line(text: &str, at: usize) -> Option<Range<usize>> {
    let indented = text[..at].trim_end_matches([' ', '\t']);
    let line = indented.strip_suffix('\n')?;
    Some(line.strip_suffix('\r').unwrap_or(line).len()..at)
}

/// The comma that follows, behind any space and remarks.
fn comma_after(text: &str, at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        at = match remark(text, at) {
            Some(end) => end,
            None => return text[at..].starts_with(',').then_some(at),
        };
    }
}

/// Where a line ends but for space and remarks, or something else begins.
fn rest_of_line(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len();
        match remark(text, at) {
            Some(end) if !text[at..end].contains('\n') => at = end,
            _ => return at,
        }
    }
}

/// The end of a remark that begins here.
fn remark(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
        return Some(at + line.trim_end_matches('\r').len());
    }
    rest.starts_with("/*").then(|| at + rest.find("*/").map_or(rest.len(), |end| end + 2))
}
