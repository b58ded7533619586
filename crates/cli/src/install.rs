//! `mcpz install`: tells a client of us, in the client's own file.
//!
//!     flags ─▶ Reach ─▶ Client ─▶ entry ─▶ Place ─▶ text ─▶ File
//!
//! A file that is not understood is not touched; what belongs into it is shown instead.

mod client;
mod document;
mod file;
mod json;
mod list;
mod reach;
mod toml;
mod yaml;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

pub use client::Client;
pub use json::OPTIONS as JSON_OPTIONS;

use crate::args::InstallFlags;
use client::{OWN_KEYS, Reach, Token};
use document::{Place, Puzzle};
use file::File;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("there is no home directory: set HOME")]
    NoHome,
    #[error(
        "{label} is not here: there is neither {} nor a program `{programs}` on PATH; --force writes its \
         file anyway",
        folder.display()
    )]
    NotThere { label: &'static str, folder: PathBuf, programs: String },
    #[error("{0} has no file for a project: leave out --project")]
    NoProject(&'static str),
    #[error("{} is not a folder: --project names the one of a project", .0.display())]
    NoFolder(PathBuf),
    #[error(
        "Claude Desktop's file is for servers it starts itself: add this one in its settings, under \
         Connectors, or leave out --http"
    )]
    NoHttp,
    #[error("Zed does not read variables in headers: give the token with --token")]
    NoVariables,
    #[error("`{0}` is not a name: use letters, digits, - and _")]
    Name(String),
    #[error("`{0}` is not an address of a server, such as http://127.0.0.1:8000/mcp")]
    Url(String),
    #[error("the token of --token is empty, or has other characters than visible ASCII")]
    Token,
    #[error("{} is not UTF-8, and cannot be written into a client's file", .0.display())]
    NotText(PathBuf),
    #[error("cannot find the path of this program")]
    Program(#[source] io::Error),
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}; --print shows what belongs into it", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} was changed by somebody else just now; nothing was written, try again", path.display())]
    Changed { path: PathBuf },
    #[error(
        "`{name}` in {} is not ours ({what}): choose another --name, or --force", path.display()
    )]
    NotOurs { name: String, path: PathBuf, what: String },
    #[error(
        "{} is left as it is, as {puzzle}. To do it by hand, {todo}", path.display()
    )]
    Puzzling { path: PathBuf, puzzle: Puzzle, todo: String },
}

pub fn run(flags: &InstallFlags) -> Result<ExitCode, Box<dyn Error>> {
    let project = flags.project.as_deref().map(folder).transpose()?;
    let Some(client) = flags.client else {
        list::run(project.as_deref(), &flags.name)?;
        return Ok(ExitCode::SUCCESS);
    };
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if flags.name.is_empty() || !flags.name.bytes().all(bare) {
        return Err(InstallError::Name(flags.name.clone()).into());
    }
    let path = path(client, project.as_deref())?;
    let place = Place { form: client.form(), table: client.table(), name: &flags.name };
    if flags.remove {
        remove(flags, place, &path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reach = reach::load(flags)?;
    let entry = client.entry(&flags.name, &reach)?;
    if flags.print {
        writeln!(io::stdout(), "{}\n\n{}", path.display(), place.fragment(&entry)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if project.is_none() && !flags.force {
        client.look()?;
    }
    if add(flags, place, &path, entry, &reach)? {
        writeln!(io::stdout(), "{}", client.advice(project.is_some()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn folder(project: &Path) -> Result<PathBuf, InstallError> {
    std::fs::canonicalize(project)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| InstallError::NoFolder(project.to_owned()))
}

fn path(client: Client, project: Option<&Path>) -> Result<PathBuf, InstallError> {
    match project {
        Some(project) => {
            client.project_file(project).ok_or(InstallError::NoProject(client.label()))
        }
        None => client.file(),
    }
}

/// Whether anything was changed.
fn add(
    flags: &InstallFlags,
    place: Place<'_>,
    path: &Path,
    entry: Value,
    reach: &Reach,
) -> Result<bool, Box<dyn Error>> {
    let file = File::open(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let fragment = place.fragment(&entry)?;
    let puzzling = |puzzle| InstallError::Puzzling {
        path: path.to_owned(),
        puzzle,
        todo: format!("add\n\n{}", fragment.trim_end()),
    };
    let old = place.entries(text).map_err(puzzling)?.remove(place.name);
    let ours = old.as_ref().is_some_and(|old| is_ours(old, flags.http.as_deref()));
    let entry = match &old {
        Some(old) if ours => merged(entry, old),
        Some(old) if !flags.force && *old != entry => return Err(not_ours(place, path, old).into()),
        _ => entry,
    };
    let (mut out, shown) = (io::stdout().lock(), path.display());
    if old.as_ref() == Some(&entry) {
        writeln!(out, "`{}` is in {shown} already; nothing was changed", place.name)?;
        return Ok(false);
    }
    let changed = place.with(text, &entry).map_err(puzzling)?;
    // What we wrote ourselves is not worth keeping.
    let backup = if ours { None } else { file.keep()? };
    let secret = matches!(reach, Reach::Connect { token: Token::Plain(_), .. });
    file.write(&changed, secret)?;
    writeln!(out, "`{}` is in {shown}: {}", place.name, list::told(&entry))?;
    if let Some(backup) = backup {
        writeln!(out, "What was there before is in {}", backup.display())?;
    }
    if secret {
        writeln!(out, "The token is in it, too: whoever can read the file can run commands.")?;
    }
    Ok(true)
}

fn remove(flags: &InstallFlags, place: Place<'_>, path: &Path) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let puzzling = |puzzle| InstallError::Puzzling {
        path: path.to_owned(),
        puzzle,
        todo: format!("remove `{}` from `{}`", place.name, place.table),
    };
    let (mut out, shown) = (io::stdout().lock(), path.display());
    let Some(entry) = place.entries(text).map_err(puzzling)?.remove(place.name) else {
        writeln!(out, "`{}` is not in {shown}; nothing was changed", place.name)?;
        return Ok(());
    };
    if !flags.force && !is_ours(&entry, flags.http.as_deref()) {
        return Err(not_ours(place, path, &entry).into());
    }
    let backups = file.backups();
    // If installing into it gives what is there now, it is what there was, to the last byte.
    let gives = |before: &str| place.with(before, &entry).is_ok_and(|after| after == text);
    if let Some(before) = backups.iter().find(|backup| gives(&backup.text)) {
        if !flags.print {
            file.write(&before.text, false)?;
            std::fs::remove_file(&before.path)?;
        }
    } else if backups.is_empty() && gives("") {
        if !flags.print {
            file.delete()?;
        }
    } else {
        let keep = backups.last().is_some_and(|backup| place.has_table(&backup.text));
        let changed = place.without(text, keep).map_err(puzzling)?;
        if !flags.print {
            file.write(&changed, false)?;
        }
    }
    let verb = if flags.print { "would be taken" } else { "was taken" };
    writeln!(out, "`{}` {verb} out of {shown}", place.name)?;
    Ok(())
}

fn not_ours(place: Place<'_>, path: &Path, entry: &Value) -> InstallError {
    let (name, what) = (place.name.to_owned(), list::told(entry));
    InstallError::NotOurs { name, path: path.to_owned(), what }
}

/// Whether an entry starts us, or leads to the address that is asked about.
fn is_ours(entry: &Value, url: Option<&str>) -> bool {
    let command = entry.get("command").or(entry.get("cmd")).and_then(Value::as_str);
    let program = command.and_then(|command| Path::new(command).file_name());
    let args: Vec<_> = entry["args"].as_array().into_iter().flatten().take(2).collect();
    let starts = program.is_some_and(|program| program == "mcpz") && args == ["server", "shell"];
    starts || (url.is_some() && list::address(entry) == url)
}

/// An entry of ours anew, with what the user has added to it.
fn merged(mut entry: Value, old: &Value) -> Value {
    if list::address(&entry).is_some() != list::address(old).is_some() {
        return entry;
    }
    for (key, value) in old.as_object().into_iter().flatten() {
        if !OWN_KEYS.contains(&key.as_str()) {
            entry[key] = value.clone();
        }
    }
    entry
}
