//! The configuration file: where it is, and what it says.
//!
//! It is never looked for in the working directory: a model can write there.

use std::io;
use std::path::{Path, PathBuf};

use super::variable::InvalidVariable;
use super::{Settings, Startup};
use crate::environment;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read the configuration file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the configuration file {} is invalid: {problem}", path.display())]
    Content { path: PathBuf, problem: toml::de::Error },
    #[error(transparent)]
    Variable(#[from] InvalidVariable),
}

/// Reads the file that a flag names, or a variable, or else the first of the usual ones that exists.
pub fn load(flag: Option<PathBuf>) -> Result<Settings, FileError> {
    if let Some(path) = named(flag)? {
        return read(&path);
    }
    for path in usual_paths() {
        match read(&path) {
            // Only a missing file is passed over: rules that cannot be read must not be ignored.
            Err(FileError::Read { source, .. }) if is_absent(&source) => {}
            other => return other,
        }
    }
    Ok(Settings::default())
}

/// The path of the file that [`load`] reads, if there is one.
pub fn path(flag: Option<PathBuf>) -> Option<PathBuf> {
    let named = named(flag).ok().flatten();
    named.or_else(|| usual_paths().into_iter().find(|path| path.exists()))
}

fn named(flag: Option<PathBuf>) -> Result<Option<PathBuf>, InvalidVariable> {
    Ok(flag.or(Startup::from_variables()?.config()))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(path: &Path) -> Result<Settings, FileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|problem| FileError::Content { path: path.to_owned(), problem })
}

fn usual_paths() -> Vec<PathBuf> {
    let folders = environment::config_folder().into_iter().chain(["/etc".into()]);
    folders.map(|folder| folder.join("mcpz/config.toml")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_reported_with_its_key_and_what_would_be_right() {
        for (text, expected) in [
            ("[polcy]", "unknown field `polcy`, expected one of `shell_tool`, `policy`, `limits`"),
            ("audit.kep = 1", "unknown field `kep`, expected one of `folder`, `max_size`, `keep`"),
            ("shell_tool.timeout = \"x\"", "invalid type: string \"x\", expected u64"),
            ("shell_tool.tools = 5", "invalid type: integer `5`, expected a sequence"),
            ("limits.memory = \"x\"", "`x` is not a size: write it as \"10MB\""),
            ("sandbox.mode = \"x\"", "unknown variant `x`, expected one of `off`, `read-only`"),
            ("http.oauth.issuer = \"x\"", "missing field `audience`"),
            ("startup.http = true", "unknown field `startup`"),
        ] {
            let problem = toml::from_str::<Settings>(text).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
