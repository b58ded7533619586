//! Which variables of an environment commands get.

use std::ffi::{OsStr, OsString};

use mcpz_engine::{Policy, Variables};
use mcpz_policy::glob;

use crate::config::ShellTool;
use crate::http::TOKEN_VARIABLE;
use crate::secrets::is_headers;

/// What hardly any program can do without: passed whatever `env_pass` names.
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

/// Variables that a shell takes for code, or for how to read it.
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

/// Holds variables back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sieve {
    pass: Option<Vec<String>>,
    drop: Vec<String>,
    /// Whether commands are judged: a shell must not run something else than what was.
    judged: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` in {key} is not the name of a variable, or a part of one with a `*`")]
pub struct NotAName {
    key: &'static str,
    pattern: String,
}

impl Sieve {
    pub fn load(file: &ShellTool, policy: &Policy) -> Result<Self, NotAName> {
        Ok(Self {
            pass: file.env_pass.as_ref().map(|list| names("env_pass", list)).transpose()?,
            drop: names("env_drop", file.env_drop.as_deref().unwrap_or_default())?,
            judged: policy.restricts(),
        })
    }

    /// What commands get of an environment.
    pub fn sift(&self, environment: &[(OsString, OsString)]) -> Variables {
        let passed = environment.iter().filter(|(name, _)| self.passes(name));
        Variables::new(passed.cloned())
    }

    fn passes(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let is_in = |patterns: &[&str]| patterns.iter().any(|pattern| glob(pattern, &name));
        let is_named = |patterns: &[String]| patterns.iter().any(|pattern| glob(pattern, &name));
        let is_held = name == TOKEN_VARIABLE
            || is_headers(&name)
            || self.judged && is_in(CHANGE_SHELL)
            || is_named(&self.drop);
        !is_held && self.pass.as_ref().is_none_or(|pass| is_in(NEEDED) || is_named(pass))
    }
}

/// Refuses what would match nothing: it was meant to.
fn names(key: &'static str, patterns: &[String]) -> Result<Vec<String>, NotAName> {
    let cannot_be = |pattern: &&String| {
        pattern.is_empty()
            || pattern.contains(['=', ',', '\0'])
            || pattern.contains(char::is_whitespace)
    };
    match patterns.iter().find(cannot_be) {
        Some(pattern) => Err(NotAName { key, pattern: pattern.clone() }),
        None => Ok(patterns.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sifted(pass: Option<&[&str]>, drop: &[&str], judged: bool) -> Vec<String> {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let sieve = Sieve { pass: pass.map(list), drop: list(drop), judged };
        let names = ["PATH", "LC_ALL", "MCP_HTTP_TOKEN", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        let environment = names.map(|name| (name.into(), "x".into()));
        let passed = sieve.sift(&environment);
        passed.all().iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_is_named_passes_and_what_is_dropped_does_not() {
        let all = ["PATH", "LC_ALL", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        assert_eq!(sifted(None, &[], false), all);
        assert_eq!(sifted(Some(&[]), &[], false), all[..2]);
        assert_eq!(sifted(Some(&["AWS_*"]), &[], false), all[..4]);
        assert_eq!(sifted(Some(&["AWS_*"]), &["*_KEY", "LC_*"], false), ["PATH", "AWS_REGION"]);
        assert_eq!(sifted(Some(&["*"]), &["*"], false), [""; 0]);
    }

    #[test]
    fn our_token_and_what_changes_a_judged_shell_do_not_pass_however_they_are_named() {
        let all = ["PATH", "LC_ALL", "AWS_KEY", "AWS_REGION", "BASH_ENV"];
        assert_eq!(sifted(Some(&["*", "MCP_HTTP_TOKEN"]), &[], false), all);
        assert_eq!(sifted(Some(&["*", "BASH_ENV"]), &[], true), all[..4]);
    }
}
