//! What a command is judged by: the policy, and the scene it would run in.

use crate::locked::{KnownNeeds, Runs};
use crate::rule::Rule;

/// What may run. Deny wins over allow; an empty allow list allows everything.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
    pub unresolved: Unresolved,
    pub threats: Threats,
    /// Folders that redirections and common programs may write to. Empty means everywhere.
    pub write_dirs: Vec<String>,
    /// What programs may execute, besides what they are known to need.
    pub runs: Vec<Runs>,
    /// What it has worked out before.
    pub known: KnownNeeds,
}

/// What to do with a command that only the run will know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unresolved {
    #[default]
    Deny,
    Allow,
}

/// What to do with a command that looks like an attack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threats {
    Off,
    #[default]
    Warn,
    Deny,
}

/// Where and how a command would run.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub directory: &'a str,
    /// The directory that relative paths in rules start from. A request can choose its own directory, but not this one.
    pub rules_begin: &'a str,
    pub home: Option<&'a str>,
    /// Variables that the request sets for it.
    pub variables: &'a [(String, String)],
    /// Whether its input is typed later, and judged then.
    pub typed: bool,
    /// Whether the kernel holds the deny rules against the arguments that programs really get, so that those which only
    /// the run will know need not be refused.
    pub locked: bool,
}

impl<'a> Scene<'a> {
    /// A plain command in the directory where the rules begin.
    pub const fn at(directory: &'a str) -> Self {
        Self {
            directory,
            rules_begin: directory,
            home: None,
            variables: &[],
            typed: false,
            locked: false,
        }
    }
}

impl Policy {
    /// Whether it says only what may not run, and nothing about files.
    pub fn restricts_only_names(&self) -> bool {
        self.allow.is_empty() && self.write_dirs.is_empty()
    }

    /// Whether it refuses anything.
    pub fn restricts(&self) -> bool {
        !self.allow.is_empty() || !self.deny.is_empty() || !self.write_dirs.is_empty()
    }
}
