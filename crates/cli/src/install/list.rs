//! `mcpz install --list`: the clients on this machine, and the mcpz servers in their files.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;

use super::document::Location;
use super::entry::{is_ours, summary};
use super::file::File;
use super::path;
use crate::client::Client;

pub fn run(project: Option<&Path>, name: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for client in Client::value_variants() {
        let value = client.to_possible_value();
        let client_name = value.as_ref().map_or("", |value| value.get_name());
        let Ok(path) = path(*client, project) else { continue };
        let location = Location { format: client.format(), table: client.table(), name };
        let is_here = project.is_some() || client.check_installed().is_ok();
        let shown = path.display();
        match installed(location, &path) {
            Ok(servers) if servers.is_empty() && !is_here => {
                writeln!(out, "{client_name:<15} not found")?;
            }
            Ok(servers) if servers.is_empty() => {
                writeln!(out, "{client_name:<15} {shown}  not installed")?;
            }
            Ok(servers) => {
                for server in servers {
                    writeln!(out, "{client_name:<15} {shown}  {server}")?;
                }
            }
            Err(problem) => writeln!(out, "{client_name:<15} {shown}  {problem}")?,
        }
    }
    Ok(())
}

/// The servers in a file that are ours, and the one with the name that we would use.
fn installed(location: Location<'_>, path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let file = File::open(path)?;
    let entries = location.entries(file.text.as_deref().unwrap_or_default())?;
    let ours =
        entries.iter().filter(|(name, entry)| *name == location.name || is_ours(entry, None));
    Ok(ours.map(|(name, entry)| format!("{name}: {}", summary(entry))).collect())
}
