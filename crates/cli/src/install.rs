//! `mcpz install`: adds mcpz to the configuration file of a client.
//!
//!     flags ─▶ Transport ─▶ Client ─▶ entry ─▶ Location ─▶ text ─▶ File
//!                 └─▶ trial: does the server start?
//!
//! If a file cannot be edited safely, it stays as it is, and the user sees what to write into it. `--remove`
//! restores a backup if that is certainly what was there before: adding the entry to it gives the present file.

mod client;
mod document;
mod edit;
mod entry;
mod file;
mod json;
mod list;
mod toml;
mod transport;
mod trial;
mod yaml;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use mcpz_runtime::PrivateFolder;
use serde_json::Value;

pub use json::OPTIONS as JSON_OPTIONS;

use crate::args::InstallFlags;
use crate::client::Client;
use crate::environment;
use document::Location;
use edit::EditError;
use entry::{action, is_ours, merge};
use file::File;
use transport::{Token, Transport};
use trial::TrialError;

/// How long a sandbox may need to take a new file away.
const SETTLING: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("found no home directory; set HOME")]
    NoHome,
    #[error(
        "{label} does not seem to be installed: {} does not exist, and PATH has no `{programs}`; use \
         --force to write its file anyway",
        folder.display()
    )]
    NotInstalled { label: &'static str, folder: PathBuf, programs: String },
    #[error("{0} has no configuration file for projects; leave out --project")]
    NoProject(&'static str),
    #[error("{} is not a folder; give --project the folder of a project", .0.display())]
    NotFolder(PathBuf),
    #[error(
        "Claude Desktop's file only lists servers that Claude Desktop starts; add this one in its \
         settings, under Connectors, or leave out --http"
    )]
    NoHttp,
    #[error("Zed does not expand variables in headers; give the token with --token")]
    NoVariables,
    #[error("`{0}` is not a valid name; use letters, digits, - and _")]
    Name(String),
    #[error("`{0}` is not the URL of a server; use one such as http://127.0.0.1:8000/mcp")]
    Url(String),
    #[error("--token is empty or has characters other than visible ASCII; use the server's token")]
    Token,
    #[error("{} is not UTF-8, so it cannot go into a client's file", .0.display())]
    NotText(PathBuf),
    #[error("cannot find the path of the mcpz program")]
    Program(#[source] io::Error),
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}; --print shows what to add to it", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} changed while mcpz edited it; nothing was written, try again", path.display())]
    Changed { path: PathBuf },
    #[error(
        "{} disappeared right after mcpz wrote it: the sandbox of a running server moves new files of this name away. \
         End its commands, jobs and sessions (`mcpz jobs list`), then try again",
        path.display()
    )]
    TakenAway { path: PathBuf },
    #[error("the server does not start with these settings, so nothing was written: {0}")]
    DoesNotStart(TrialError),
    #[error(
        "`{name}` in {} does not look like mcpz ({action}); choose another --name, or use --force",
        path.display()
    )]
    NotOurs { name: String, path: PathBuf, action: String },
    #[error(
        "{} was not changed: {problem}. To edit it by hand, {todo}", path.display()
    )]
    NotEdited { path: PathBuf, problem: EditError, todo: String },
}

pub fn run(flags: &InstallFlags) -> Result<ExitCode, Box<dyn Error>> {
    let project = flags.project.as_deref().map(project_folder).transpose()?;
    let Some(client) = flags.client else {
        list::run(project.as_deref(), &flags.name)?;
        return Ok(ExitCode::SUCCESS);
    };
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if flags.name.is_empty() || !flags.name.bytes().all(valid) {
        return Err(InstallError::Name(flags.name.clone()).into());
    }
    let path = path(client, project.as_deref())?;
    let location = Location { format: client.format(), table: client.table(), name: &flags.name };
    if flags.remove {
        remove(flags, location, &path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let transport = Transport::from_flags(flags)?;
    let entry = client.entry(&flags.name, &transport)?;
    if flags.print {
        let snippet = location.snippet(&entry)?;
        writeln!(io::stdout(), "{}\n\n{}", path.display(), snippet.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if project.is_none() && !flags.force {
        client.check_installed()?;
    }
    if let Transport::Stdio { command, args } = &transport {
        try_out(flags, command, args, project.as_deref())?;
    }
    if add(flags, location, &path, entry, &transport)? {
        writeln!(io::stdout(), "{}", client.next_step(project.is_some()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the server once in the project or, as nobody knows where the client will start it, in an empty folder.
fn try_out(
    flags: &InstallFlags,
    command: &str,
    args: &[String],
    project: Option<&Path>,
) -> Result<(), Box<dyn Error>> {
    if flags.force {
        return Ok(());
    }
    let empty = PrivateFolder::create(&environment::temporary_folder())?;
    let tried = trial::run(command, args, project.unwrap_or(empty.path()));
    Ok(tried.map_err(InstallError::DoesNotStart)?)
}

fn project_folder(project: &Path) -> Result<PathBuf, InstallError> {
    std::fs::canonicalize(project)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| InstallError::NotFolder(project.to_owned()))
}

/// The client's file: the project's, if one is given, or else the user's.
fn path(client: Client, project: Option<&Path>) -> Result<PathBuf, InstallError> {
    match project {
        Some(project) => {
            client.project_file(project).ok_or(InstallError::NoProject(client.label()))
        }
        None => client.file(),
    }
}

/// Fails if a file that is new in a project does not stay, as where a sandbox takes it for the work of a command.
fn check_that_it_stays(path: &Path) -> Result<(), InstallError> {
    std::thread::sleep(SETTLING);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(InstallError::TakenAway { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Returns whether the file changed.
fn add(
    flags: &InstallFlags,
    location: Location<'_>,
    path: &Path,
    entry: Value,
    transport: &Transport,
) -> Result<bool, Box<dyn Error>> {
    let file = File::open(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let snippet = location.snippet(&entry)?;
    let not_edited = |problem| InstallError::NotEdited {
        path: path.to_owned(),
        problem,
        todo: format!("add\n\n{}", snippet.trim_end()),
    };
    let old = location.entries(text).map_err(not_edited)?.remove(location.name);
    let ours = old.as_ref().is_some_and(|old| is_ours(old, flags.http.as_deref()));
    let entry = match &old {
        Some(old) if ours => merge(entry, old),
        Some(old) if !flags.force && *old != entry => {
            return Err(not_ours(location, path, old).into());
        }
        _ => entry,
    };
    let (mut out, shown) = (io::stdout().lock(), path.display());
    if old.as_ref() == Some(&entry) {
        writeln!(out, "`{}` is already in {shown}; nothing was changed", location.name)?;
        return Ok(false);
    }
    let changed = location.add(text, &entry).map_err(not_edited)?;
    // An entry of ours can be made again, so it needs no backup.
    let backup = if ours { None } else { file.back_up()? };
    let secret = matches!(transport, Transport::Http { token: Token::Plain(_), .. });
    file.write(&changed, secret)?;
    if flags.project.is_some() && file.text.is_none() {
        check_that_it_stays(path)?;
    }
    let verb = if old.is_none() { "Added" } else { "Updated" };
    let preposition = if old.is_none() { "to" } else { "in" };
    writeln!(out, "{verb} `{}` {preposition} {shown} ({})", location.name, action(&entry))?;
    if let Some(backup) = backup {
        writeln!(out, "Backup: {}", backup.display())?;
    }
    if secret {
        writeln!(
            out,
            "Warning: the file contains the token; anyone who can read it can run commands."
        )?;
    }
    Ok(true)
}

fn remove(flags: &InstallFlags, location: Location<'_>, path: &Path) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let not_edited = |problem| InstallError::NotEdited {
        path: path.to_owned(),
        problem,
        todo: format!("remove `{}` from `{}`", location.name, location.table),
    };
    let (mut out, shown) = (io::stdout().lock(), path.display());
    let Some(entry) = location.entries(text).map_err(not_edited)?.remove(location.name) else {
        writeln!(out, "`{}` is not in {shown}; nothing was changed", location.name)?;
        return Ok(());
    };
    if !flags.force && !is_ours(&entry, flags.http.as_deref()) {
        return Err(not_ours(location, path, &entry).into());
    }
    let backups = file.backups();
    // A text that becomes the present one when the entry is added is the original, to the last byte.
    let is_original = |old: &str| location.add(old, &entry).is_ok_and(|new| new == text);
    if let Some(original) = backups.iter().find(|backup| is_original(&backup.text)) {
        if !flags.print {
            file.write(&original.text, false)?;
            std::fs::remove_file(&original.path)?;
        }
    } else if backups.is_empty() && is_original("") {
        if !flags.print {
            file.delete()?;
        }
    } else {
        let keep_table = backups.last().is_some_and(|backup| location.has_table(&backup.text));
        let changed = location.remove(text, keep_table).map_err(not_edited)?;
        if !flags.print {
            file.write(&changed, false)?;
        }
    }
    let verb = if flags.print { "Would remove" } else { "Removed" };
    writeln!(out, "{verb} `{}` from {shown}", location.name)?;
    Ok(())
}

fn not_ours(location: Location<'_>, path: &Path, entry: &Value) -> InstallError {
    let (name, action) = (location.name.to_owned(), action(entry));
    InstallError::NotOurs { name, path: path.to_owned(), action }
}
