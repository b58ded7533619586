//! Which variables are passed on to commands. Agents and recorders start with no others, so nothing below them can
//! have more.
//!
//! Never passed: the server's own token, headers that authenticate to a telemetry collector and, under a
//! policy, variables that make a shell run something other than what was judged.

use std::ffi::{OsStr, OsString};

use mcpz_policy::Policy;
use mcpz_policy::glob;

use super::secrets::is_headers;
use crate::settings::TOKEN_VARIABLE;

/// Passed whatever `env_pass` says: hardly any program works without them.
const NEEDED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
];

/// Variables that a shell runs as code, or that change how it reads code.
const CHANGE_SHELL: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BASH_FUNC_*",
    "CDPATH",
    "ENV",
    "GLOBIGNORE",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableFilter {
    pass: Option<Vec<String>>,
    drop: Vec<String>,
    /// Whether a policy judges commands.
    judged: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` in {key} is not a variable name or a pattern such as `AWS_*`")]
pub struct InvalidPattern {
    key: &'static str,
    pattern: String,
}

impl VariableFilter {
    /// `pass` and `drop` are the settings `env_pass` and `env_drop`.
    pub fn new(
        pass: Option<Vec<String>>,
        drop: Vec<String>,
        policy: &Policy,
    ) -> Result<Self, InvalidPattern> {
        Ok(Self {
            pass: pass.map(|list| names("env_pass", list)).transpose()?,
            drop: names("env_drop", drop)?,
            judged: policy.restricts(),
        })
    }

    /// Those of the variables that commands get.
    pub fn apply(&self, variables: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        variables.iter().filter(|(name, _)| self.passes(name)).cloned().collect()
    }

    /// Whether commands do not get a variable because the settings say so.
    pub fn drops(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        self.drop.iter().any(|pattern| glob(pattern, &name))
    }

    /// Those of the variables that programs of the user get which lead to a place: all but our own secrets.
    pub fn without_ours(variables: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let is_ours = |name: &OsStr| is_ours(&name.to_string_lossy());
        variables.into_iter().filter(|(name, _)| !is_ours(name)).collect()
    }

    fn passes(&self, variable: &OsStr) -> bool {
        let name = variable.to_string_lossy();
        let is_in = |patterns: &[&str]| patterns.iter().any(|pattern| glob(pattern, &name));
        let is_named = |patterns: &[String]| patterns.iter().any(|pattern| glob(pattern, &name));
        let is_withheld =
            is_ours(&name) || self.judged && is_in(CHANGE_SHELL) || self.drops(variable);
        !is_withheld && self.pass.as_ref().is_none_or(|pass| is_in(NEEDED) || is_named(pass))
    }
}

/// Whether a variable is a secret of the server itself.
fn is_ours(name: &str) -> bool {
    name == TOKEN_VARIABLE || is_headers(name)
}

/// Refuses patterns that no name can match: they are mistakes.
fn names(key: &'static str, patterns: Vec<String>) -> Result<Vec<String>, InvalidPattern> {
    let cannot_be = |pattern: &&String| {
        pattern.is_empty()
            || pattern.contains(['=', ',', '\0'])
            || pattern.contains(char::is_whitespace)
    };
    match patterns.iter().find(cannot_be) {
        Some(pattern) => Err(InvalidPattern { key, pattern: pattern.clone() }),
        None => Ok(patterns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(pass: Option<&[&str]>, drop: &[&str], judged: bool) -> Vec<String> {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let filter = VariableFilter { pass: pass.map(list), drop: list(drop), judged };
        let names = ["PATH", "LC_ALL", "MCP_HTTP_TOKEN", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        let variables = names.map(|name| (name.into(), "x".into()));
        let passed = filter.apply(&variables);
        passed.iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_is_named_passes_and_what_is_dropped_does_not() {
        let all = ["PATH", "LC_ALL", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        assert_eq!(passed(None, &[], false), all);
        assert_eq!(passed(Some(&[]), &[], false), all[..2]);
        assert_eq!(passed(Some(&["AWS_*"]), &[], false), all[..4]);
        assert_eq!(passed(Some(&["AWS_*"]), &["*_KEY", "LC_*"], false), ["PATH", "AWS_REGION"]);
        assert_eq!(passed(Some(&["*"]), &["*"], false), [""; 0]);
    }

    #[test]
    fn our_token_and_what_changes_a_judged_shell_do_not_pass_however_they_are_named() {
        let all = ["PATH", "LC_ALL", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        assert_eq!(passed(Some(&["*", "MCP_HTTP_TOKEN"]), &[], false), all);
        assert_eq!(passed(Some(&["*", "BASH_ENV"]), &[], true), all[..4]);
    }
}
