//! What this process was started with: its variables and arguments, its program, the folders they lead to.
//!
//! No other file reads `std::env`. A variable that is set to nothing counts as not set, as the manual says.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// A variable, unless it is empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable, unless it is empty or not UTF-8.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// All variables, empty ones too.
pub fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The arguments after the name of the program.
pub fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

/// The path of the program that runs.
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

pub fn current_directory() -> io::Result<PathBuf> {
    std::env::current_dir()
}

pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

pub fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

/// Where configuration files of this user are.
pub fn config_folder() -> Option<PathBuf> {
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    own.or_else(|| Some(home()?.join(".config")))
}

/// Where mcpz keeps records and jobs.
pub fn state_folder() -> Option<PathBuf> {
    // A relative folder would be another one for each working directory.
    let own = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(own.or_else(|| Some(home()?.join(".local/state")))?.join("mcpz"))
}

/// Where commands in a sandbox write to caches.
pub fn cache_folder() -> Option<PathBuf> {
    let own = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(own.or_else(|| Some(home()?.join(".cache")))?.join("mcpz"))
}

/// Where detached jobs are kept, and where servers listen for questions about theirs.
pub fn jobs_folder() -> Option<PathBuf> {
    state_folder().map(|folder| folder.join("jobs"))
}

/// The folders of our own `PATH`.
pub fn path_folders() -> Vec<PathBuf> {
    variable("PATH").map_or_else(Vec::new, |path| folders(&path).collect())
}

/// The folders that a value of `PATH` lists.
pub fn folders(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path)
}

/// The file with this name in the first of the folders that has one.
pub fn find_file(name: impl AsRef<Path>, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file())
}
