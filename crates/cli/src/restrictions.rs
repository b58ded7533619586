//! The settings file of a coding assistant, as far as it says which commands may run.
//!
//! `coreTools` and `excludeTools` name tools; an entry `run_shell_command(git)` is about one command,
//! `run_shell_command` about all.

use std::path::{Path, PathBuf};

use serde::Deserialize;

const TOOL: &str = "run_shell_command";

/// Files of this kind say much else, which is none of our business.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    core_tools: Option<Vec<String>>,
    exclude_tools: Vec<String>,
}

/// Patterns for the policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// What may run; everything if it is `None`.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RestrictionsError {
    #[error("cannot read the settings file {}, which --settings or `settings` names", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "the settings file {} has an entry that is not understood: {entry}; write it as {TOOL} or \
         {TOOL}(COMMAND)", path.display()
    )]
    Entry { path: PathBuf, entry: String },
    #[error("the settings file {} is not the JSON it should be", path.display())]
    Content { path: PathBuf, source: serde_json::Error },
}

impl Restrictions {
    pub fn load(path: &Path) -> Result<Self, RestrictionsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| RestrictionsError::Read { path: path.to_owned(), source })?;
        let file: File = serde_json::from_str(&text)
            .map_err(|source| RestrictionsError::Content { path: path.to_owned(), source })?;
        // A rule that is passed over would protect nobody.
        Self::try_from(file)
            .map_err(|entry| RestrictionsError::Entry { path: path.to_owned(), entry })
    }
}

impl TryFrom<File> for Restrictions {
    type Error = String;

    fn try_from(file: File) -> Result<Self, String> {
        let core = file.core_tools.map(|tools| commands(&tools)).transpose()?;
        // A list that does not name the tool leaves nothing to run.
        let closed = core.as_ref().is_some_and(Vec::is_empty);
        let allow = core.filter(|commands| !closed && !commands.contains(&"*".to_owned()));
        let mut deny = commands(&file.exclude_tools)?;
        deny.extend(closed.then(|| "*".to_owned()));
        Ok(Self { allow, deny })
    }
}

/// The commands the entries are about; `*` for all. The error is an entry that is about our tool but
/// cannot be read.
fn commands(tools: &[String]) -> Result<Vec<String>, String> {
    let ours = tools.iter().filter(|entry| entry.trim().starts_with(TOOL));
    ours.map(|entry| match entry.trim().strip_prefix(TOOL) {
        Some("") => Ok("*".to_owned()),
        Some(rest) => {
            let command = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let command = command.map(str::trim).filter(|command| !command.is_empty());
            command.map(str::to_owned).ok_or_else(|| entry.clone())
        }
        None => Err(entry.clone()),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restrictions(text: &str) -> Restrictions {
        serde_json::from_str::<File>(text).unwrap().try_into().unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn entries_are_about_one_command_or_all() {
        let read = restrictions(
            r#"{"coreTools": ["run_shell_command(git)", "edit"],
                "excludeTools": ["run_shell_command(git push)"], "theme": "dark"}"#,
        );
        assert_eq!(read.allow, Some(words(&["git"])));
        assert_eq!(read.deny, words(&["git push"]));
        let all = restrictions(r#"{"coreTools": ["run_shell_command"]}"#);
        assert_eq!(all, Restrictions::default());
        let file: File =
            serde_json::from_str(r#"{"excludeTools": ["run_shell_command(rm"]}"#).unwrap();
        assert_eq!(Restrictions::try_from(file), Err("run_shell_command(rm".into()));
        let none = restrictions(r#"{"excludeTools": ["run_shell_command"]}"#);
        assert_eq!(none.deny, words(&["*"]));
        let absent = restrictions(r#"{"coreTools": ["edit"]}"#);
        assert_eq!((absent.allow, absent.deny), (None, words(&["*"])));
    }
}
