//! The configuration file.
//!
//! It is never looked for in the working directory: what is there, a model can write.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::{AuthKind, SandboxMode};
use crate::environment;
use crate::log::Format;
use crate::policy;
use crate::size::Size;

/// What a file may say. Unknown keys are errors: a misspelt rule would protect nobody.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How commands are run, and by which tools.
    pub shell_tool: ShellTool,
    /// Which commands may run.
    pub policy: policy::Table,
    /// What commands may use, and how many there may be.
    pub limits: Limits,
    /// What commands can reach.
    pub sandbox: Sandbox,
    /// The record of what was run and refused.
    pub audit: Audit,
    /// How a server is reached over HTTP.
    pub http: Http,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ShellTool {
    /// Commands start in this directory or below, and nowhere else.
    pub working_dir: Option<PathBuf>,
    /// Seconds until a command is ended with all it started, unless a call says otherwise.
    pub timeout: Option<u64>,
    /// The shell that runs commands.
    pub shell: Option<PathBuf>,
    /// Leaves what commands print to standard error out of answers.
    pub no_stderr: Option<bool>,
    /// Seconds until a call that still runs is handed over as a job, if the tools for jobs are offered.
    pub background_after: Option<u64>,
    /// Seconds calls may take to finish after the client on standard input closed it; 0 ends them at once.
    pub finish_time: Option<u64>,
    /// The tools that are offered: names, `default` or `all`.
    pub tools: Option<Vec<String>>,
    /// The settings file of Qwen Code or Gemini CLI that says which commands may run.
    pub settings: Option<PathBuf>,
    /// Logs everything on standard error.
    pub verbose: Option<bool>,
    /// How lines of the log look: `text` or `json`.
    pub log_format: Option<Format>,
    /// The `timeout` of the tool `shell`, in seconds.
    pub default_timeout: Option<u64>,
    /// The longest timeout the tool `shell` takes, in seconds.
    pub max_timeout: Option<u64>,
    /// The most output the tool `shell` shows; the rest is kept.
    pub max_output_size: Option<Size>,
    /// The most characters of an answer, as JSON.
    pub max_answer: Option<usize>,
    /// Directories commands may start in, or below, besides `working_dir`.
    pub allowed_directories: Option<Vec<PathBuf>>,
    /// More rules of what is denied.
    pub blocked_commands: Option<Vec<String>>,
    /// Whether the log and the audit trail say what is run.
    pub log_commands: Option<bool>,
    /// Whether secrets are kept out of what is kept, shown and logged.
    pub mask_secrets: Option<bool>,
    /// Variables whose values are secret although their names do not say so.
    pub secrets: Option<Vec<String>>,
    /// Variables of the server that commands get; `*` stands for any characters.
    pub env_pass: Option<Vec<String>>,
    /// Variables they do not get.
    pub env_drop: Option<Vec<String>>,
    /// Whether commands get the variables of your login shell.
    pub login_env: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most that is kept of one command's output.
    pub spill_per_run: Option<Size>,
    /// The most that is kept of one client's outputs; its oldest goes first.
    pub spill_per_client: Option<Size>,
    /// The most that is kept of all outputs; the oldest of the client that has the most goes first.
    pub spill_total: Option<Size>,
    /// Seconds an output can be read after its command ended.
    pub spill_time: Option<u64>,
    /// The most memory that waiting requests and answers of all clients may take.
    pub message_memory: Option<Size>,
    /// The same for one client: at the limit no more is read of what it sends.
    pub message_memory_per_client: Option<Size>,
    /// Commands that run at once; others wait for their turn.
    pub runs: Option<usize>,
    /// Commands of one client that run at once.
    pub runs_per_client: Option<usize>,
    /// Commands that may wait; more are told to come again.
    pub waiting: Option<usize>,
    /// Jobs of one client that run at once.
    pub jobs: Option<usize>,
    /// Sessions of one client.
    pub sessions: Option<usize>,
    /// Seconds until a job or session that nobody uses is ended; 0 for never.
    pub idle: Option<u64>,
    /// The most memory a command may use; 0 for all there is.
    pub memory: Option<Size>,
    /// The most processes and threads of one command; 0 for any number.
    pub processes: Option<u64>,
    /// What all commands of one client may use together, where a cgroup counts it; 0 for all there is.
    pub memory_per_client: Option<Size>,
    /// How many processes and threads they may have together, where a cgroup counts them; 0 for any.
    pub processes_per_client: Option<u64>,
    /// The most open files of one process; 0 for as many as the server was started with.
    pub open_files: Option<u64>,
    /// The longest file a command may write; 0 for any.
    pub file_size: Option<Size>,
    /// Seconds of CPU time, all processes of a command together; 0 for any.
    pub cpu_time: Option<u64>,
    /// How much commands stand back for others, from 0 to 19.
    pub nice: Option<u8>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// What commands can change.
    pub mode: Option<SandboxMode>,
    /// Where they can connect to: `"off"`, `"on"`, a host or a list of hosts.
    pub net: Option<Net>,
    /// What else is hidden.
    pub deny_read: Option<Vec<PathBuf>>,
    /// What else can be written.
    pub write_dirs: Option<Vec<PathBuf>>,
    /// What can be written although it configures other programs.
    pub unprotected: Option<Vec<PathBuf>>,
    /// The most each private folder, such as `/tmp`, holds.
    pub tmp_size: Option<Size>,
}

/// Where commands may connect to: `"off"`, `"on"`, a host, or a list of them.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Net {
    One(String),
    List(Vec<String>),
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// Where the records are.
    pub folder: Option<PathBuf>,
    /// The size at which another file is begun.
    pub max_size: Option<Size>,
    /// Older files that stay.
    pub keep: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// The address to listen on.
    pub bind: Option<String>,
    /// The path of the endpoint.
    pub path: Option<String>,
    /// What is asked for.
    pub auth: Option<AuthKind>,
    /// Tokens, by the name of who has them.
    pub tokens: Option<BTreeMap<String, String>>,
    /// An authorization server that vouches for clients.
    pub oauth: Option<OAuth>,
    /// Names the server is known by.
    pub allowed_hosts: Option<Vec<String>>,
    /// Origins of web pages that may use the server.
    pub allowed_origins: Option<Vec<String>>,
    /// The certificate chain for TLS, in PEM.
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    pub tls_key: Option<PathBuf>,
    /// The longest message.
    pub max_body: Option<Size>,
    /// The longest head of a request.
    pub max_header: Option<Size>,
    /// Seconds for the head of a request, and between requests.
    pub header_time: Option<u64>,
    /// Seconds for the body of a request.
    pub body_time: Option<u64>,
    /// Seconds until a client must have read something of its answer.
    pub write_time: Option<u64>,
    /// Connections that are open at once.
    pub connections: Option<usize>,
    /// Sessions of one client; the one that was not used longest makes room.
    pub sessions_per_client: Option<usize>,
    /// Seconds until a session ends that nobody uses.
    pub session_time: Option<u64>,
    /// Seconds a command runs on without its client.
    pub grace: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// Who vouches for clients, as their tokens say it.
    pub issuer: String,
    /// For whom the tokens must be: the address of this server.
    pub audience: String,
    /// The keys of the issuer: a file, or an address.
    pub jwks: String,
    /// What a token must allow.
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
    let named = named
        .map(Path::to_owned)
        .or_else(|| environment::variable("MCPZ_CONFIG").map(PathBuf::from));
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
    let named = named
        .map(Path::to_owned)
        .or_else(|| environment::variable("MCPZ_CONFIG").map(PathBuf::from));
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
    let own = environment::config_folder();
    own.into_iter().chain(["/etc".into()]).map(|dir| dir.join("mcpz/config.toml")).collect()
}
