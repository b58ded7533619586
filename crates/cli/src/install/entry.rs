//! What an entry in a client's file says about a server.

use std::path::Path;

use serde_json::Value;

/// The keys that say how to reach a server. Any other key in an entry belongs to the user.
const OUR_KEYS: &[&str] = &[
    "type",
    "command",
    "cmd",
    "args",
    "url",
    "httpUrl",
    "uri",
    "headers",
    "http_headers",
    "bearer_token_env_var",
    "env_keys",
];

/// How to describe an entry that says neither what to run nor where to connect.
const NOTHING: &str = "no command and no URL";

/// Whether an entry starts mcpz, or connects to the given URL.
pub fn is_ours(entry: &Value, url: Option<&str>) -> bool {
    let program = command(entry).and_then(|command| Path::new(command).file_name());
    let args: Vec<_> = entry["args"].as_array().into_iter().flatten().take(2).collect();
    let starts = program.is_some_and(|program| program == "mcpz") && args == ["server", "shell"];
    starts || (url.is_some() && self::url(entry) == url)
}

/// The new entry, with what the user added to the old one.
pub fn merge(mut new: Value, old: &Value) -> Value {
    if url(&new).is_some() != url(old).is_some() {
        return new;
    }
    for (key, value) in old.as_object().into_iter().flatten() {
        if !OUR_KEYS.contains(&key.as_str()) {
            new[key] = value.clone();
        }
    }
    new
}

/// The URL or the command line of a server.
pub fn summary(entry: &Value) -> String {
    match (url(entry), command_line(entry)) {
        (Some(url), _) => url.to_owned(),
        (None, Some(command_line)) => command_line,
        (None, None) => NOTHING.to_owned(),
    }
}

/// What the client does with the entry, for a sentence in brackets.
pub fn action(entry: &Value) -> String {
    match (url(entry), command_line(entry)) {
        (Some(url), _) => format!("connects to {url}"),
        (None, Some(command_line)) => format!("runs {command_line}"),
        (None, None) => NOTHING.to_owned(),
    }
}

fn command_line(entry: &Value) -> Option<String> {
    let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<_> = command(entry).into_iter().chain(args).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn command(entry: &Value) -> Option<&str> {
    entry.get("command").or(entry.get("cmd")).and_then(Value::as_str)
}

/// The URL of a server that the client does not start itself.
fn url(entry: &Value) -> Option<&str> {
    ["url", "httpUrl", "uri"].iter().find_map(|key| entry.get(key)?.as_str())
}
