//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::install::Client;
use crate::login;
use crate::settings::MAX_TIMEOUT;
use crate::size::Size;

/// Lets language models run commands over the Model Context Protocol
#[derive(Debug, Parser)]
#[command(name = "mcpz", version)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a built-in MCP server
    Server {
        #[command(subcommand)]
        server: Server,
    },
    /// Tell a client of the server, in the client's own configuration file
    Install(InstallFlags),
    /// Call a tool once and print what it answers
    Call(CallFlags),
    /// Say whether a command may run, and why not
    Check(CheckFlags),
    /// Work on a policy
    Policy {
        #[command(subcommand)]
        policy: PolicyCommand,
    },
    /// Read the record of what was run and refused
    Audit {
        #[command(subcommand)]
        audit: Audit,
    },
    /// See and steer what runs in the background
    Jobs {
        #[command(subcommand)]
        jobs: JobsCommand,
    },
    /// See what this machine has for a server, and what to do about what it lacks
    Doctor(DoctorFlags),
    /// Start and end processes for a server
    #[command(hide = true)]
    Agent,
    /// Keep a detached job
    #[command(hide = true)]
    Record,
    /// Try to get out of a sandbox
    #[command(hide = true)]
    Trial { terms: String },
    /// Tell a server the environment of a login shell
    #[command(hide = true, name = login::SUBCOMMAND)]
    Environment,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Hold the rules of a configuration file to their own examples
    Test {
        /// A configuration file with a [policy] table
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Show the jobs of all servers, and those that outlive them (*)
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what a job has printed
    Logs {
        /// Its name, or enough of the beginning of its run
        job: String,

        /// Go on until it ends
        #[arg(short, long)]
        follow: bool,
    },
    /// End a job with everything it started
    Stop {
        /// Its name, or enough of the beginning of its run
        job: String,
    },
    /// Sit down at a job's terminal, for what no model should see; ctrl-] leaves
    Attach {
        /// Its name, or enough of the beginning of its run
        job: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that no record was changed, moved or removed
    Verify(AuditFlags),
    /// Print the last records, a line each
    Tail {
        /// How many
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
        lines: usize,

        /// Go on with new ones as they are written
        #[arg(short, long)]
        follow: bool,

        #[command(flatten)]
        audit: AuditFlags,
    },
    /// Print all that is recorded of a run
    Show {
        /// Its id, or enough of the beginning
        id: String,

        #[command(flatten)]
        audit: AuditFlags,
    },
}

#[derive(Debug, clap::Args)]
pub struct AuditFlags {
    /// Folder of the records [default: folder in [audit], or mcpz in $XDG_STATE_HOME]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Configuration file [default: $MCPZ_CONFIG, or mcpz/config.toml in $XDG_CONFIG_HOME or /etc]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Server {
    /// Start an MCP server for shell command execution
    Shell(ServerFlags),
}

#[derive(Debug, Default, clap::Args)]
pub struct ServerFlags {
    #[command(flatten)]
    pub shell: ShellFlags,

    #[command(flatten)]
    pub http: HttpFlags,
}

#[derive(Debug, Default, clap::Args)]
pub struct ShellFlags {
    /// Working directory for command execution [default: current directory]
    #[arg(short, long, value_name = "PATH")]
    pub working_dir: Option<PathBuf>,

    /// Command execution timeout in seconds [default: 30]
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT))]
    pub timeout: Option<u64>,

    /// Shell to use for command execution [default: /bin/sh]
    #[arg(short, long, value_name = "PATH")]
    pub shell: Option<PathBuf>,

    /// Only allow commands matching these patterns (comma-separated, supports wildcards), such as
    /// --allow "ls*,cat*,echo*"
    #[arg(long, value_name = "PATTERNS")]
    pub allow: Option<String>,

    /// Deny commands matching these patterns (comma-separated, supports wildcards), such as
    /// --deny "rm*,sudo*,chmod*"
    #[arg(long, value_name = "PATTERNS")]
    pub deny: Option<String>,

    /// Suppress stderr in command output
    #[arg(long)]
    pub no_stderr: bool,

    /// Seconds after which a call of execute_command that still runs is handed over as a job
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT))]
    pub background_after: Option<u64>,

    /// What commands can change and see: nothing else than they could (off), the working directory
    /// (workspace) or nothing at all (read-only); what holds secrets is hidden [default: off]
    #[arg(long, value_name = "MODE")]
    pub sandbox: Option<SandboxMode>,

    /// Hosts that commands in a sandbox can connect to, such as github.com,*.example.org; or on, or
    /// off [default: off]
    #[arg(long, value_name = "HOSTS")]
    pub net: Option<String>,

    /// Give commands PATH and variables of your login shell, as started by a terminal
    #[arg(long)]
    pub login_env: bool,

    /// Most memory a command may use, such as 2GB; 0 for all [default: 80 %, where a cgroup can be made]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,

    /// Tools to offer: names (comma-separated), default or all [default: default]
    #[arg(long, value_name = "LIST")]
    pub tools: Option<String>,

    /// Configuration file [default: $MCPZ_CONFIG, or mcpz/config.toml in $XDG_CONFIG_HOME or /etc]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Settings file whose coreTools and excludeTools say which commands may run
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// Enable verbose logging to stderr
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    Off,
    ReadOnly,
    Workspace,
}

/// How a server is reached over HTTP.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpFlags {
    /// Serve over streamable HTTP instead of standard input and output
    #[arg(long)]
    pub http: bool,

    /// Address to listen on [default: $MCP_HTTP_BIND, or 0.0.0.0:8000]
    #[arg(long, value_name = "ADDRESS", requires = "http")]
    pub bind: Option<String>,

    /// Path of the endpoint [default: $MCP_HTTP_PATH, or /mcp]
    #[arg(long, value_name = "PATH", requires = "http")]
    pub path: Option<String>,

    /// Who gets in: whoever has the token in $MCP_HTTP_TOKEN, or everybody [default: token]
    #[arg(long, value_name = "KIND", requires = "http")]
    pub auth: Option<AuthKind>,

    /// Host name the server is known by, besides its addresses; can be given again
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allowed_host: Vec<String>,

    /// Origin of web pages that may use the server; can be given again
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allowed_origin: Vec<String>,

    /// Certificate chain for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "http")]
    pub tls_cert: Option<PathBuf>,

    /// Key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "http")]
    pub tls_key: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    Token,
    None,
}

#[derive(Debug, clap::Args)]
pub struct InstallFlags {
    /// Client to tell
    #[arg(required_unless_present = "list")]
    pub client: Option<Client>,

    /// Show which clients are here, and what they have of ours
    #[arg(long, conflicts_with_all = ["client", "print", "remove", "force", "http", "server"])]
    pub list: bool,

    /// Show the file and what belongs into it, and write nothing
    #[arg(long)]
    pub print: bool,

    /// Undo it
    #[arg(long)]
    pub remove: bool,

    /// Write even if the client is not here, or something else has the name
    #[arg(long)]
    pub force: bool,

    /// Name of the server in the client
    #[arg(long, default_value = "shell")]
    pub name: String,

    /// Folder of a project, to tell the client there alone
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,

    /// Address of a server that runs, instead of having the client start one
    #[arg(long, value_name = "URL", conflicts_with_all = ["ShellFlags", "server"])]
    pub http: Option<String>,

    /// Token for that server, which is written into the file
    #[arg(long, requires = "http", conflicts_with_all = ["token_env", "auth"])]
    pub token: Option<String>,

    /// Variable of the client's environment that has the token [default: MCP_HTTP_TOKEN]
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "auth")]
    pub token_env: Option<String>,

    /// How that server lets clients in [default: token]
    #[arg(long, value_name = "KIND", requires = "http")]
    pub auth: Option<AuthKind>,

    #[command(flatten, next_help_heading = "Options of the server")]
    pub shell: ShellFlags,

    /// Options of the server, as well
    #[arg(last = true, value_name = "OPTIONS")]
    pub server: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct CallFlags {
    /// Tool to call, such as execute_command
    pub tool: String,

    /// Its arguments, such as command="ls -l" timeout=5 environment.LANG=C
    #[arg(value_name = "KEY=VALUE")]
    pub arguments: Vec<String>,

    /// Print the whole answer as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten, next_help_heading = "Options of the server")]
    pub shell: ShellFlags,
}

#[derive(Debug, clap::Args)]
pub struct DoctorFlags {
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten, next_help_heading = "Options of the server")]
    pub shell: ShellFlags,
}

#[derive(Debug, clap::Args)]
pub struct CheckFlags {
    /// Command to judge
    #[arg(required_unless_present = "batch")]
    pub command: Option<String>,

    /// Print the judgement as JSON
    #[arg(long)]
    pub json: bool,

    /// Judge one JSON object a line, {"policy": {"allow": [], "deny": [], "write_dirs": []},
    /// "command": "...", "shell": "bash"}, and answer allow or deny to each
    #[arg(long, conflicts_with_all = ["command", "json"])]
    pub batch: bool,

    #[command(flatten, next_help_heading = "Options of the server")]
    pub shell: ShellFlags,
}
