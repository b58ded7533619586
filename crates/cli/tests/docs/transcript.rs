//! Calls of tools and their answers, as a page shows them.

use serde_json::{Value, json};

use super::Block;
use super::console::Person;
use super::matching::{agrees, fits, written};
use crate::support::Server;

/// Makes the calls again. The answer is what was not as it is shown.
pub fn replay(person: &Person, block: &Block) -> Vec<String> {
    let (start, calls) = match block.text.strip_prefix("$ ").and_then(|rest| rest.split_once('\n'))
    {
        Some((start, calls)) => (start, calls),
        None => ("mcpz server shell", block.text.as_str()),
    };
    let mut command = person.command(&person.here(&format!("unset XDG_CONFIG_HOME; exec {start}")));
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let (mut wrong, mut known) = (Vec::new(), Vec::new());
    for (call, shown) in pairs(calls) {
        let (tool, arguments) = call.split_once(' ').unwrap_or_else(|| panic!("{call}"));
        let mut arguments = written(&person.here(arguments));
        recall(&mut arguments, &known);
        let answer = server.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let (answer, text) = match &answer["result"]["structuredContent"] {
            Value::Null => (&answer["result"]["content"][0]["text"], true),
            structure => (structure, false),
        };
        texts(answer, &mut known);
        let told = person.told(&answer.to_string());
        let told = serde_json::from_str(&told).unwrap();
        let expected = if text { Value::String(shown.clone()) } else { written(&shown) };
        if !agrees(&expected, &told) {
            wrong.push(format!("{call}\nshows\n{shown}\nbut there was\n{told:#}"));
        }
    }
    wrong
}

/// Each call with its answer, which is behind an arrow; lines that begin with blanks go on, and those
/// that begin with `#` are for the reader.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix(" → "), pairs.last_mut()) {
            (Some(answer), Some((_, shown))) => *shown = answer.to_owned(),
            (None, Some((call, shown))) if line.starts_with("  ") => {
                let part = if shown.is_empty() { call } else { shown };
                *part += line.strip_prefix("   ").unwrap_or(line);
            }
            _ => pairs.push((line.to_owned(), String::new())),
        }
    }
    pairs
}

/// In what is sent, a text with `…` is one that was in an answer.
fn recall(value: &mut Value, known: &[String]) {
    match value {
        Value::String(text) if text.contains('…') => {
            let found = known.iter().rev().find(|known| fits(text, known));
            *text = found.unwrap_or_else(|| panic!("nobody has said {text}")).clone();
        }
        Value::Array(values) => values.iter_mut().for_each(|value| recall(value, known)),
        Value::Object(fields) => fields.values_mut().for_each(|value| recall(value, known)),
        _ => {}
    }
}

fn texts(value: &Value, known: &mut Vec<String>) {
    match value {
        Value::String(text) => known.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, known)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, known)),
        _ => {}
    }
}
