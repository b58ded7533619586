//! What there is of clients, and of us in their files.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;

use super::client::Client;
use super::document::Place;
use super::file::File;
use super::{is_ours, path};

pub fn run(project: Option<&Path>, name: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for client in Client::value_variants() {
        let shown = client.to_possible_value().map(|value| value.get_name().to_owned());
        let shown = shown.unwrap_or_default();
        let Ok(path) = path(*client, project) else { continue };
        let place = Place { form: client.form(), table: client.table(), name };
        let found = match File::open(&path) {
            Ok(file) => installed(place, file.text.as_deref().unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        };
        let here = project.is_some() || client.look().is_ok();
        let (path, missing) = (path.display(), "not installed".to_owned());
        match found {
            Ok(entries) if entries.is_empty() && !here => writeln!(out, "{shown:<15} not found")?,
            Ok(entries) if entries.is_empty() => writeln!(out, "{shown:<15} {path}  {missing}")?,
            Ok(entries) => {
                for entry in entries {
                    writeln!(out, "{shown:<15} {path}  {entry}")?;
                }
            }
            Err(problem) => writeln!(out, "{shown:<15} {path}  {problem}")?,
        }
    }
    Ok(())
}

/// The entries that start us, and the one of the name we would use.
fn installed(place: Place<'_>, text: &str) -> Result<Vec<String>, String> {
    let entries = place.entries(text).map_err(|puzzle| puzzle.to_string())?;
    let ours = entries.iter().filter(|(name, entry)| *name == place.name || is_ours(entry, None));
    Ok(ours.map(|(name, entry)| format!("{name}: {}", told(entry))).collect())
}

/// An entry in a few words.
pub fn told(entry: &Value) -> String {
    if let Some(address) = address(entry) {
        return address.to_owned();
    }
    let command = entry.get("command").or(entry.get("cmd")).and_then(Value::as_str);
    let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<_> = command.into_iter().chain(args).collect();
    match words.is_empty() {
        true => "something else".to_owned(),
        false => words.join(" "),
    }
}

/// Where a server is that the client does not start.
pub fn address(entry: &Value) -> Option<&str> {
    ["url", "httpUrl", "uri"].iter().find_map(|key| entry.get(key)?.as_str())
}
