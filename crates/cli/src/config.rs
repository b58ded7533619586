//! The configuration file.
//!
//! It is never looked for in the working directory: what is there, a model can write.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::{AuthKind, SandboxMode};
use crate::policy;
use crate::size::Size;

/// What a file may say. Unknown keys are errors: a misspelt rule would protect nobody.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub shell_tool: ShellTool,
    pub policy: policy::Table,
    pub limits: Limits,
    pub sandbox: Sandbox,
    pub audit: Audit,
    pub http: Http,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellTool {
    pub working_dir: Option<PathBuf>,
    pub timeout: Option<u64>,
    pub shell: Option<PathBuf>,
    pub no_stderr: Option<bool>,
    pub background_after: Option<u64>,
    pub tools: Option<Vec<String>>,
    pub settings: Option<PathBuf>,
    pub verbose: Option<bool>,
    pub default_timeout: Option<u64>,
    pub max_timeout: Option<u64>,
    pub max_output_size: Option<Size>,
    pub allowed_directories: Option<Vec<PathBuf>>,
    pub blocked_commands: Option<Vec<String>>,
    pub log_commands: Option<bool>,
    pub mask_secrets: Option<bool>,
    /// Variables whose values are secret although their names do not say so.
    pub secrets: Option<Vec<String>>,
    /// Variables commands get, and those they do not.
    pub env_pass: Option<Vec<String>>,
    pub env_drop: Option<Vec<String>>,
    pub login_env: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub spill_per_run: Option<Size>,
    pub spill_total: Option<Size>,
    pub spill_time: Option<u64>,
    pub runs: Option<usize>,
    pub runs_per_client: Option<usize>,
    pub waiting: Option<usize>,
    pub jobs: Option<usize>,
    pub sessions: Option<usize>,
    pub idle: Option<u64>,
    pub memory: Option<Size>,
    pub processes: Option<u64>,
    pub memory_per_client: Option<Size>,
    pub processes_per_client: Option<u64>,
    pub open_files: Option<u64>,
    pub file_size: Option<Size>,
    pub cpu_time: Option<u64>,
    pub nice: Option<u8>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    pub mode: Option<SandboxMode>,
    pub net: Option<Net>,
    pub deny_read: Option<Vec<PathBuf>>,
    pub write_dirs: Option<Vec<PathBuf>>,
    pub unprotected: Option<Vec<PathBuf>>,
    pub tmp_size: Option<Size>,
}

/// Where commands may connect to: `"off"`, `"on"`, a host, or a list of them.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Net {
    One(String),
    List(Vec<String>),
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    pub folder: Option<PathBuf>,
    pub max_size: Option<Size>,
    pub keep: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    pub bind: Option<String>,
    pub path: Option<String>,
    pub auth: Option<AuthKind>,
    /// Tokens by the name of who has them.
    pub tokens: Option<BTreeMap<String, String>>,
    pub oauth: Option<OAuth>,
    pub allowed_hosts: Option<Vec<String>>,
    pub allowed_origins: Option<Vec<String>>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub max_body: Option<Size>,
    pub max_header: Option<Size>,
    pub header_time: Option<u64>,
    pub body_time: Option<u64>,
    pub write_time: Option<u64>,
    pub connections: Option<usize>,
    pub sessions_per_client: Option<usize>,
    pub session_time: Option<u64>,
    pub grace: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    pub issuer: String,
    pub audience: String,
    /// A file, or an address.
    pub jwks: String,
    pub scopes: Option<Vec<String>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the configuration file {} is not right: {problem}", path.display())]
    Content { path: PathBuf, problem: toml::de::Error },
}

/// Reads the file that was named, by flag or in the environment, or else the first of the usual
/// ones that is there.
pub fn load(named: Option<&Path>) -> Result<Config, ConfigError> {
    let named = named.map(Path::to_owned).or_else(|| variable("MCPZ_CONFIG").map(PathBuf::from));
    if let Some(path) = named {
        return read(&path);
    }
    for path in usual_paths() {
        match read(&path) {
            // Only what is not there is passed over: rules that cannot be read must not be ignored.
            Err(ConfigError::Read { source, .. }) if is_absent(&source) => {}
            other => return other,
        }
    }
    Ok(Config::default())
}

/// The file that [`load`] reads, if there is one.
pub fn path(named: Option<&Path>) -> Option<PathBuf> {
    let named = named.map(Path::to_owned).or_else(|| variable("MCPZ_CONFIG").map(PathBuf::from));
    named.or_else(|| usual_paths().into_iter().find(|path| path.exists()))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(path: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|problem| ConfigError::Content { path: path.to_owned(), problem })
}

fn usual_paths() -> Vec<PathBuf> {
    let home = || variable("HOME").map(|home| Path::new(&home).join(".config"));
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    own.into_iter().chain(["/etc".into()]).map(|dir| dir.join("mcpz/config.toml")).collect()
}

/// Where what is to be kept goes, if there is such a place.
pub fn state_folder() -> Option<PathBuf> {
    let home = || Some(Path::new(&variable("HOME")?).join(".local/state"));
    // A relative one would be somewhere else each time.
    let own = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(own.or_else(home)?.join("mcpz"))
}

/// A variable that says something.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
