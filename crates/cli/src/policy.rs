//! All that says which commands may run, made into one policy.

use mcpz_policy::{Policy, Rule, RuleError, Threats, Unresolved};
use serde::Deserialize;

use crate::args::ShellFlags;
use crate::config;
use crate::restrictions::{Restrictions, RestrictionsError};

/// The `[policy]` table of a file.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Table {
    /// What may run.
    pub allow: Option<Vec<Entry>>,
    /// What may not, even if it is allowed.
    pub deny: Option<Vec<Entry>>,
    /// What happens to commands that only the run would know.
    pub unresolved: Option<UnresolvedWord>,
    /// What happens to commands that look like an attack.
    pub threats: Option<ThreatsWord>,
    /// Where redirections may write.
    pub write_dirs: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UnresolvedWord {
    Deny,
    Allow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThreatsWord {
    Off,
    Warn,
    Deny,
}

/// A rule: its words, or a table with more to say.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Entry {
    Words(String),
    Full(FullEntry),
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FullEntry {
    /// The rule.
    pub rule: String,
    /// Why, which the model is told.
    pub reason: Option<String>,
    /// What to do in its place.
    pub instead: Option<String>,
    /// Commands the rule must be about.
    #[serde(default, rename = "match")]
    pub matching: Vec<String>,
    /// Commands it must not be about.
    #[serde(default)]
    pub not_match: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Restrictions(#[from] RestrictionsError),
    #[error(
        "there are two lists of what may run: keep either the one of the settings file or the allow list"
    )]
    TwoAllowLists,
    #[error("the allow list is empty: leave it out to allow everything, or say what may run")]
    NothingAllowed,
}

impl Entry {
    /// How many examples it is held to.
    pub fn examples(&self) -> usize {
        match self {
            Self::Words(_) => 0,
            Self::Full(entry) => entry.matching.len() + entry.not_match.len(),
        }
    }

    /// The rules it is, held to their examples.
    fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        match self {
            Self::Words(list) if list.starts_with('/') => Ok(vec![Rule::new(list)?]),
            Self::Words(list) => Rule::list(list),
            Self::Full(entry) => {
                let mut rule = Rule::new(&entry.rule)?;
                rule.reason = entry.reason.clone();
                rule.instead = entry.instead.clone();
                rule.check(&entry.matching, &entry.not_match)?;
                Ok(vec![rule])
            }
        }
    }
}

fn all(entries: &[Entry]) -> Result<Vec<Rule>, RuleError> {
    let rules = entries.iter().map(Entry::rules).collect::<Result<Vec<_>, _>>()?;
    Ok(rules.concat())
}

/// What flags, the file and the settings of an assistant say together.
pub fn load(flags: &ShellFlags, config: &config::Config) -> Result<Policy, PolicyError> {
    let (file, tool) = (&config.policy, &config.shell_tool);
    let settings = flags.settings.as_ref().or(tool.settings.as_ref());
    let restrictions = settings.map(|path| Restrictions::load(path)).transpose()?;
    let restrictions = restrictions.unwrap_or_default();
    let allow = list(flags.allow.as_deref(), file.allow.as_deref())?;
    // Each list alone decides what may run, so only what is on both may: one of them has to do.
    if allow.is_some() && restrictions.allow.is_some() {
        return Err(PolicyError::TwoAllowLists);
    }
    let allow = restrictions.allow.or(allow);
    // A list with nothing on it is a mistake: a variable that was not set must not open the door.
    if allow.as_ref().is_some_and(Vec::is_empty) {
        return Err(PolicyError::NothingAllowed);
    }
    let mut deny = list(flags.deny.as_deref(), file.deny.as_deref())?.unwrap_or_default();
    for text in tool.blocked_commands.iter().flatten() {
        deny.extend(Rule::list(text)?);
    }
    deny.extend(restrictions.deny);
    Ok(Policy {
        allow: allow.unwrap_or_default(),
        deny,
        unresolved: match file.unresolved {
            Some(UnresolvedWord::Allow) => Unresolved::Allow,
            Some(UnresolvedWord::Deny) | None => Unresolved::Deny,
        },
        threats: match file.threats {
            Some(ThreatsWord::Off) => Threats::Off,
            Some(ThreatsWord::Deny) => Threats::Deny,
            Some(ThreatsWord::Warn) | None => Threats::Warn,
        },
        write_dirs: file.write_dirs.clone().unwrap_or_default(),
    })
}

/// Rules on the command line take the place of those in the file.
fn list(flag: Option<&str>, file: Option<&[Entry]>) -> Result<Option<Vec<Rule>>, RuleError> {
    match (flag, file) {
        (Some(list), _) => Rule::list(list).map(Some),
        (None, Some(entries)) => all(entries).map(Some),
        (None, None) => Ok(None),
    }
}
