//! JSON as editors write it, with comments and trailing commas.
//!
//! The syntax tree of `jsonc-parser` keeps every byte of a file and says where its members, commas, comments
//! and line ends are. The changes are splices at these places, because the tree's own ones touch more than
//! the entry:
//!
//! - `append` breaks an object on one line into several lines, removes blank lines inside the braces, and puts
//!   trailing commas into our entry;
//! - `remove` deletes the comments on the member's line;
//! - `set_value` breaks a line even where the file has only one.
//!
//! A new member comes last. The comma it needs goes directly after the value before it, and the member after
//! the rest of that line, so that a comment stays next to what it describes.

#[cfg(test)]
mod tests;

use std::ops::Range;

use jsonc_parser::cst::{CstNewlineKind, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Value, json};

use super::edit::{EditError, ordered, splice};

/// The extensions of JSON that people and editors use in such files.
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
    let file = JsonFile::parse(text)?;
    if text.trim().is_empty() {
        return Ok(file.render(&json!({table: {name: entry}}), Some("")) + file.line_end);
    }
    let root = file.root_object()?;
    let Some(servers) = member(&root, table)? else {
        return Ok(file.append(&root, table, &json!({name: entry})));
    };
    let servers = object(table, &servers)?;
    let Some(old) = member(&servers, name)? else {
        return Ok(file.append(&servers, name, entry));
    };
    let value = old.value().ok_or(EditError::Entangled)?;
    let line = line_start(&old.into());
    let new = file.render(entry, line.as_ref().map(|line| line.indent.as_str()));
    Ok(splice(text, &[(range(&value), &new)]))
}

pub fn remove(text: &str, table: &str, name: &str, keep_table: bool) -> Result<String, EditError> {
    let file = JsonFile::parse(text)?;
    let root = file.root_object()?;
    let Some(servers) = member(&root, table)? else { return Ok(text.to_owned()) };
    let entries = object(table, &servers)?;
    let Some(entry) = member(&entries, name)? else { return Ok(text.to_owned()) };
    // Somebody wrote the comments in a table: it stays for them, even without an entry.
    let is_last =
        entries.properties().len() == 1 && !entries.children().iter().any(CstNode::is_comment);
    Ok(match is_last && !keep_table {
        true => file.remove(&root, &servers),
        false => file.remove(&entries, &entry),
    })
}

/// The only member with this name. It would be a guess to change one of several.
fn member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, EditError> {
    let mut found = object.properties().into_iter();
    let mut next = || found.find(|member| member.decoded_name().as_deref() == Some(name));
    match (next(), next()) {
        (_, Some(_)) => Err(EditError::Duplicate(name.to_owned())),
        (only, None) => Ok(only),
    }
}

fn object(name: &str, member: &CstObjectProp) -> Result<CstObject, EditError> {
    member.object_value().ok_or_else(|| EditError::NotTable(name.to_owned()))
}

/// A file's text with its syntax tree, and the style for what we write into it.
struct JsonFile<'a> {
    text: &'a str,
    /// Nodes do not keep their parents alive: without this they would panic.
    root: CstRootNode,
    /// One level of indentation.
    indent: String,
    line_end: &'static str,
}

impl<'a> JsonFile<'a> {
    fn parse(text: &'a str) -> Result<Self, EditError> {
        let root = CstRootNode::parse(text, &OPTIONS).map_err(EditError::Json)?;
        let indent = root.single_indent_text().unwrap_or_else(|| "  ".to_owned());
        let line_end = match root.newline_kind() {
            CstNewlineKind::LineFeed => "\n",
            CstNewlineKind::CarriageReturnLineFeed => "\r\n",
            CstNewlineKind::CarriageReturn => "\r",
        };
        Ok(Self { text, root, indent, line_end })
    }

    fn root_object(&self) -> Result<CstObject, EditError> {
        self.root.object_value().ok_or(EditError::Entangled)
    }

    /// A value at an indentation, or on one line.
    fn render(&self, value: &Value, indent: Option<&str>) -> String {
        let Value::Object(table) = value else {
            return match value {
                Value::Array(items) => {
                    let items: Vec<_> = items.iter().map(|item| self.render(item, None)).collect();
                    format!("[{}]", items.join(", "))
                }
                scalar => scalar.to_string(),
            };
        };
        let inner = indent.map(|indent| format!("{indent}{}", self.indent));
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

    fn append(&self, object: &CstObject, name: &str, value: &Value) -> String {
        let key = Value::from(name);
        let Some(last) = object.properties().pop() else {
            return self.fill(object, &key, value);
        };
        let last = CstNode::from(last);
        let comma = last.trailing_comma().map(CstNode::from);
        // If the last member has a comma, so does ours.
        let (missing, own) = if comma.is_some() { ("", ",") } else { (",", "") };
        let (value_end, before) = (range(&last).end, comma.as_ref().unwrap_or(&last));
        let at = range(before).end;
        let Some(line) = line_start(&last) else {
            let member = format!("{missing} {key}: {}{own}", self.render(value, None));
            return splice(self.text, &[(at..at, &member)]);
        };
        let (end, indent) = (self.line_end, &line.indent);
        let member = format!("{end}{indent}{key}: {}{own}", self.render(value, Some(indent)));
        let at = at + rest_of_line(before);
        splice(self.text, &[(value_end..value_end, missing), (at..at, &member)])
    }

    /// Adds the first member of an object.
    fn fill(&self, object: &CstObject, key: &Value, value: &Value) -> String {
        let object = range(&object.clone().into());
        let inside = object.start + 1..object.end - 1;
        if !self.text.trim_end().contains(['\n', '\r']) {
            let member = format!("{key}: {}", self.render(value, None));
            return splice(self.text, &[(inside.end..inside.end, &member)]);
        }
        let line = self.text[..object.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let line = &self.text[line..object.start];
        let base = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let (end, indent) = (self.line_end, format!("{base}{}", self.indent));
        let member = format!("{end}{indent}{key}: {}", self.render(value, Some(&indent)));
        match self.text[inside.clone()].trim_end().len() {
            0 => splice(self.text, &[(inside, &format!("{member}{end}{base}"))]),
            comments => {
                let at = inside.start + comments;
                splice(self.text, &[(at..at, &member)])
            }
        }
    }

    /// The text without a member of an object, and without the comma and the line that were its own.
    fn remove(&self, object: &CstObject, member: &CstObjectProp) -> String {
        let node = CstNode::from(member.clone());
        let comma = |member: &CstObjectProp| Some(range(&member.trailing_comma()?.into()));
        let previous_comma = member.previous_property().and_then(|previous| comma(&previous));
        let Range { start, end } = range(&node);
        let line = line_start(&node);
        let start = line.as_ref().map_or(start, |line| line.start);
        // On a line with others, the space up to the comma before it is its own, or else the space after.
        let neighbour = node.previous_siblings().find(|sibling| !sibling.is_whitespace());
        let follows_comma = neighbour.is_some_and(|neighbour| neighbour.is_comma());
        let cuts = match (comma(member), previous_comma) {
            (Some(comma), Some(previous)) if follows_comma => [previous.end..end, comma],
            (Some(comma), _) if line.is_none() => {
                let after = &self.text[comma.end..];
                let spaces = after.len() - after.trim_start_matches(' ').len();
                [start..end, comma.start..comma.end + spaces]
            }
            (Some(comma), _) => [start..end, comma],
            (None, Some(previous)) if follows_comma => [previous.start..end, end..end],
            (None, Some(previous)) => [previous, start..end],
            (None, None) => {
                let object = range(&object.clone().into());
                let inside = object.start + 1..object.end - 1;
                let others = [&self.text[inside.start..start], &self.text[end..inside.end]];
                match others.concat().trim().is_empty() {
                    true => [inside, object.end..object.end],
                    false => [start..end, end..end],
                }
            }
        };
        splice(self.text, &cuts.map(|range| (range, "")))
    }
}

/// The bytes of a node. What precedes it in the tree precedes it in the text.
fn range(node: &CstNode) -> Range<usize> {
    let start = start(node);
    start..start + length(node)
}

fn start(node: &CstNode) -> usize {
    let before: usize = node.previous_siblings().map(|sibling| length(&sibling)).sum();
    before + node.parent().map_or(0, |parent| start(&parent.into()))
}

fn length(node: &CstNode) -> usize {
    node.to_string().len()
}

struct LineStart {
    /// Where the line end before it starts.
    start: usize,
    indent: String,
}

/// What precedes a node that starts its line.
fn line_start(node: &CstNode) -> Option<LineStart> {
    let mut before = node.previous_siblings().peekable();
    let indent = before.next_if(CstNode::is_whitespace).map(|space| space.to_string());
    let newline = before.next().filter(CstNode::is_newline)?;
    Some(LineStart { start: start(&newline), indent: indent.unwrap_or_default() })
}

/// How many bytes of space and comments follow a node on its line.
fn rest_of_line(node: &CstNode) -> usize {
    let on_line = |sibling: &CstNode| match sibling.as_comment() {
        Some(comment) => !comment.raw_value().contains(['\n', '\r']),
        None => sibling.is_whitespace(),
    };
    node.next_siblings().take_while(on_line).map(|sibling| length(&sibling)).sum()
}
