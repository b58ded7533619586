//! Every setting, as one table.
//!
//!     flags ─▶ variables ─▶ file ─▶ default      the first that has a value wins
//!
//! A setting is one row of a section, and no other place repeats what the row says: its flag, its variable,
//! its key in the configuration file, its default, and its sentence in the manual. The flags of the program,
//! the keys a file may have, and `docs/settings.md` all come from the rows. To add a setting, add a row
//! ([`section`] explains how) and use it, as in `settings.limits.runs()`; a row without a user is a warning.
//!
//! Rows say nothing about which values make sense together. Their users check that ([`crate::setup`]).

mod audit;
mod choice;
mod environment;
mod file;
mod flag;
mod http;
mod limits;
mod places;
mod policy;
mod ports;
mod row;
mod sandbox;
mod seconds;
mod section;
mod shell_tool;
mod size;
mod startup;
mod value;
mod variable;

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches};
use serde::Deserialize;

pub use audit::Audit;
pub use choice::{
    AuthKind, DirectoryMount, PlaceKind, PlacePer, PullPolicy, SandboxMode, Threats, Unresolved,
};
pub use environment::CommandVariables;
pub use file::{FileError, load as load_file, path as file_path};
pub use flag::{Scope, whole_number};
pub use http::Http;
pub use limits::Limits;
pub use places::PlaceTable;
pub use policy::{Entry, Policy, RunsEntry};
#[cfg(test)]
pub use row::Row;
pub use row::Section;
pub use sandbox::{Net, Sandbox};
pub use seconds::{MAX_TIMEOUT, Seconds};
pub use shell_tool::ShellTool;
pub use size::Size;
pub use startup::{CONFIG_HELP, Execute, Startup, TOKEN_VARIABLE};
pub use variable::InvalidVariable;

/// What one source says (flags, variables or the file), or what they say together.
///
/// Unknown keys in a file are errors: a misspelt rule would protect nobody.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[serde(skip)]
    pub startup: Startup,
    #[serde(skip)]
    pub execute: Execute,
    pub shell_tool: ShellTool,
    pub policy: Policy,
    pub limits: Limits,
    pub sandbox: Sandbox,
    pub environment: CommandVariables,
    pub audit: Audit,
    pub http: Http,
    /// By their names.
    pub places: BTreeMap<String, PlaceTable>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Variable(#[from] InvalidVariable),
}

impl Settings {
    /// What flags, variables and the file say together.
    pub fn load(flags: &Self) -> Result<Self, LoadError> {
        let file = load_file(flags.startup.config())?;
        Ok(Self::merge(flags, file)?)
    }

    /// The same for a file that was read before.
    pub fn merge(flags: &Self, mut file: Self) -> Result<Self, InvalidVariable> {
        // `--timeout` is for all tools, so it also counts before what the file says for one of them.
        if flags.shell_tool.timeout.is_some() {
            file.shell_tool.default_timeout = None;
        }
        Ok(flags.clone().or(Self::from_variables()?).or(file))
    }

    /// What the flags of a command say.
    pub fn from_flags(flags: &ArgMatches, scope: Scope) -> Self {
        Self {
            startup: Startup::from_flags(flags, scope),
            execute: Execute::from_flags(flags, scope),
            shell_tool: ShellTool::from_flags(flags, scope),
            policy: Policy::from_flags(flags, scope),
            limits: Limits::from_flags(flags, scope),
            sandbox: Sandbox::from_flags(flags, scope),
            environment: CommandVariables::from_flags(flags, scope),
            audit: Audit::from_flags(flags, scope),
            http: Http::from_flags(flags, scope),
            places: BTreeMap::new(),
        }
    }

    fn from_variables() -> Result<Self, InvalidVariable> {
        Ok(Self {
            startup: Startup::from_variables()?,
            execute: Execute::from_variables()?,
            shell_tool: ShellTool::from_variables()?,
            policy: Policy::from_variables()?,
            limits: Limits::from_variables()?,
            sandbox: Sandbox::from_variables()?,
            environment: CommandVariables::from_variables()?,
            audit: Audit::from_variables()?,
            http: Http::from_variables()?,
            places: BTreeMap::new(),
        })
    }

    /// What this says or, where it says nothing, the other.
    fn or(self, other: Self) -> Self {
        Self {
            startup: self.startup.or(other.startup),
            execute: self.execute.or(other.execute),
            shell_tool: self.shell_tool.or(other.shell_tool),
            policy: self.policy.or(other.policy),
            limits: self.limits.or(other.limits),
            sandbox: self.sandbox.or(other.sandbox),
            environment: self.environment.or(other.environment),
            audit: self.audit.or(other.audit),
            http: self.http.or(other.http),
            places: if self.places.is_empty() { other.places } else { self.places },
        }
    }

    /// The flags that commands of this scope have and others do not, in the order that help shows them.
    pub fn flags(scope: Scope) -> Vec<Arg> {
        let rows = Self::sections().into_iter().flat_map(|section| section.rows);
        let mut flags: Vec<_> = rows.filter_map(|row| Some((row.flag?.flag, row))).collect();
        flags.retain(|(flag, _)| flag.scope == scope);
        flags.sort_by_key(|(flag, _)| flag.place);
        flags.iter().filter_map(|(_, row)| row.argument()).collect()
    }

    /// All rows. The sections without a table are not in the file.
    pub fn sections() -> [Section; 10] {
        [
            Startup::section(None),
            Execute::section(None),
            ShellTool::section(Some("shell_tool")),
            Policy::section(Some("policy")),
            Limits::section(Some("limits")),
            Sandbox::section(Some("sandbox")),
            CommandVariables::section(Some("environment")),
            Audit::section(Some("audit")),
            Http::section(Some("http")),
            PlaceTable::section(Some("places.NAME")),
        ]
    }
}
