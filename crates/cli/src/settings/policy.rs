//! `[policy]`: which commands may run.

use clap::builder::ValueParser;
use serde::Deserialize;

use super::choice::{Threats, Unresolved};
use super::flag::HelpPosition::Bounds;
use super::flag::{Flag, FromFlag};
use super::row::Row;
use super::section::{inner_table, section};
use super::value::Value;

section! {
    /// Which commands may run.
    pub struct Policy {
        /// Commands that may run.
        allow: Option<Vec<Entry>> = None,
            words: "everything",
            flag: Flag {
                value: Some("PATTERNS"),
                ..Flag::new(
                    "allow",
                    Bounds(1),
                    "Only allow commands matching these patterns, such as \"ls*,cat*,echo*\"",
                )
            };

        /// Commands that may not run, even if they are allowed.
        deny: Vec<Entry> = Vec::new(),
            flag: Flag {
                value: Some("PATTERNS"),
                ..Flag::new(
                    "deny",
                    Bounds(2),
                    "Deny commands matching these patterns, such as \"rm*,sudo*,chmod*\"",
                )
            };

        /// What to do with commands that are only known at run time.
        unresolved: Unresolved = Unresolved::Deny;

        /// What to do with commands that look like an attack.
        threats: Threats = Threats::Warn;

        /// Folders that redirections, and programs such as `cp` and `tee`, may write to.
        write_dirs: Vec<String> = Vec::new(), words: "everywhere";

        /// Whether the kernel holds commands to what the policy understood.
        lock: Option<bool> = None, words: "if the kernel can";

        /// What programs may execute, besides what they are known to need.
        runs: Vec<RunsEntry> = Vec::new();
    }
}

inner_table! {
    pub struct RunsEntry {
        /// The program, such as `mytool`.
        pub program: String,
        /// What it may execute; `*` means everything that is not denied.
        #[serde(default)]
        pub may_run: Vec<String>,
    }
}

/// A rule: its words, or a table with more to say.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    Words(String),
    Full(FullEntry),
    /// All rules of a flag, with commas between them.
    #[serde(skip)]
    List(String),
}

inner_table! {
    pub struct FullEntry {
        /// The rule.
        pub rule: String,
        /// Why; the model sees it.
        pub reason: Option<String>,
        /// What the model can do instead.
        pub instead: Option<String>,
        /// Commands that the rule must match.
        #[serde(default)]
        pub r#match: Vec<String>,
        /// Commands that the rule must not match.
        #[serde(default)]
        pub not_match: Vec<String>,
    }
}

impl FromFlag for Vec<Entry> {
    fn parser() -> ValueParser {
        ValueParser::new(|list: &str| {
            Ok::<_, std::convert::Infallible>(vec![Entry::List(list.to_owned())])
        })
    }
}

impl Value for Entry {
    fn kind() -> String {
        format!("{} or {}", String::kind(), FullEntry::kind())
    }

    fn kinds() -> String {
        format!("{} or {}", String::kinds(), FullEntry::kinds())
    }

    fn toml(&self) -> Option<String> {
        None
    }

    fn inner() -> Vec<Row> {
        FullEntry::inner()
    }
}
