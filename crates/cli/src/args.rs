//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::install::Client;
use crate::log::Format;
use crate::settings::MAX_TIMEOUT;
use crate::size::Size;

/// Lets language models run commands over the Model Context Protocol
#[derive(Debug, Parser)]
#[command(
    name = "mcpz",
    version,
    after_help = "Exit codes: 0 if all went well, 1 for an error, 2 for flags that are not understood; \
                  where there are more, the help of a command says so"
)]
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
    // There is no line left for it on the screen.
    #[command(mut_arg("log_format", |flag| flag.hide(true)))]
    #[command(mut_arg("max_answer", |flag| flag.hide(true)))]
    Install(InstallFlags),
    /// Call a tool once and print what it answers
    #[command(
        after_help = "Exit codes: the command's own, 124 after a timeout, 128 and the number of a signal, \
                      130 if interrupted, 1 if it was refused or could not start"
    )]
    Call(CallFlags),
    /// Say whether a command may run, and why not
    #[command(
        after_help = "Exit codes: 0 if it may run, and after a batch; 1 if not, or for an error"
    )]
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
    #[command(
        after_help = "Exit codes: 0 if a server can start, 1 if something keeps it from that"
    )]
    Doctor(DoctorFlags),
    /// Ask a server over HTTP whether it is well
    #[command(
        after_help = "Exit codes: 0 if it is, 1 if not, or if nobody answers within 10 seconds"
    )]
    Health {
        /// Where to ask [default: /healthz at $MCP_HTTP_BIND, or at port 8000 of this machine]
        url: Option<String>,
    },
    /// Print what makes a shell complete our commands and flags
    Completions {
        /// One of bash, elvish, fish, powershell, zsh
        #[arg(hide_possible_values = true)]
        shell: Shell,
    },
    /// Print the page for man, or write those of all commands
    Man {
        /// Folder to write them to
        dir: Option<PathBuf>,
    },
    /// Try to get out of a sandbox
    #[command(hide = true)]
    Trial { terms: String },
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Hold the rules of a configuration file to their own examples
    #[command(after_help = "Exit codes: 0 if all of them hold, 1 if not, or for an error")]
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
    #[command(
        after_help = "Exit codes: 0 if left or ended, 128 and the number of a signal, 1 for an error"
    )]
    Attach {
        /// Its name, or enough of the beginning of its run
        job: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that no record was changed, moved or removed
    #[command(
        after_help = "Exit codes: 0 if all are as they were written, 1 if not, or for an error"
    )]
    Verify(AuditFlags),
    /// Print the last records, a line each
    Tail {
        /// How many
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20, value_parser = number)]
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
    #[command(
        after_help = "Exit codes: 0 after its client has left or a signal came, 1 if it cannot start, 2 for bad flags"
    )]
    Shell(ServerFlags),
}

#[derive(Debug, Default, clap::Args)]
pub struct ServerFlags {
    #[command(flatten)]
    pub shell: ShellFlags,

    // Only here: no other command has a client that could leave.
    /// Seconds to finish calls once the input has ended [default: 1]
    #[arg(long, value_name = "SECONDS", help_heading = RUNNING)]
    #[arg(value_parser = seconds_or_none)]
    pub finish_time: Option<u64>,

    #[command(flatten)]
    pub http: HttpFlags,
}

// Help is one screen: about 40 lines of 100 characters. Hence a line for each flag, and no defaults
// or values that clap would put on a line of their own.
const RUNNING: &str = "Running commands";
const BOUNDS: &str = "What commands may do";

#[derive(Debug, Default, clap::Args)]
pub struct ShellFlags {
    /// Tools to offer: names (with commas), default or all [default: default]
    #[arg(long, value_name = "LIST")]
    pub tools: Option<String>,

    /// Configuration file [default: $MCPZ_CONFIG, or ~/.config/mcpz/config.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Enable verbose logging to stderr
    #[arg(short, long)]
    pub verbose: bool,

    /// Form of what is said on stderr: text or json [default: text]
    #[arg(long, value_name = "FORM", hide_possible_values = true)]
    pub log_format: Option<Format>,

    /// Commands start here or below [default: current one, or anywhere]
    #[arg(short, long, value_name = "PATH", help_heading = RUNNING)]
    pub working_dir: Option<PathBuf>,

    /// Command timeout in seconds [default: 30 to 600, by the tool]
    #[arg(short, long, value_name = "SECONDS", help_heading = RUNNING)]
    #[arg(value_parser = seconds)]
    pub timeout: Option<u64>,

    /// Shell to use for command execution [default: /bin/sh]
    #[arg(short, long, value_name = "PATH", help_heading = RUNNING)]
    pub shell: Option<PathBuf>,

    /// Suppress stderr in command output
    #[arg(long, help_heading = RUNNING)]
    pub no_stderr: bool,

    /// Seconds until a call that still runs is handed over as a job
    #[arg(long, value_name = "SECONDS", help_heading = RUNNING)]
    #[arg(value_parser = seconds)]
    pub background_after: Option<u64>,

    /// Most characters of an answer, as JSON [default: 24000]
    #[arg(long, value_name = "CHARS", help_heading = RUNNING, value_parser = number)]
    pub max_answer: Option<usize>,

    /// Give commands PATH and variables of your login shell
    #[arg(long, help_heading = RUNNING)]
    pub login_env: bool,

    /// Only allow commands matching these patterns, such as "ls*,cat*,echo*"
    #[arg(long, value_name = "PATTERNS", help_heading = BOUNDS)]
    pub allow: Option<String>,

    /// Deny commands matching these patterns, such as "rm*,sudo*,chmod*"
    #[arg(long, value_name = "PATTERNS", help_heading = BOUNDS)]
    pub deny: Option<String>,

    /// Settings of Qwen Code or Gemini CLI that say which commands may run
    #[arg(long, value_name = "FILE", help_heading = BOUNDS)]
    pub settings: Option<PathBuf>,

    /// What they can change: off, workspace or read-only [default: off]
    #[arg(long, value_name = "MODE", help_heading = BOUNDS, hide_possible_values = true)]
    pub sandbox: Option<SandboxMode>,

    /// Hosts they reach from there, such as *.example.org; or on [default: off]
    #[arg(long, value_name = "HOSTS", help_heading = BOUNDS)]
    pub net: Option<String>,

    /// Most memory a command may use, such as 2GB; 0 for all [default: 80 %]
    #[arg(long, value_name = "SIZE", help_heading = BOUNDS)]
    pub memory: Option<Size>,
}

fn seconds(text: &str) -> Result<u64, String> {
    let fits = |time: &u64| (1..=MAX_TIMEOUT).contains(time);
    let wrong = || format!("it must be a whole number of seconds from 1 to {MAX_TIMEOUT}");
    text.parse().ok().filter(fits).ok_or_else(wrong)
}

fn seconds_or_none(text: &str) -> Result<u64, String> {
    let fits = |time: &u64| *time <= MAX_TIMEOUT;
    let wrong = || format!("it must be a whole number of seconds from 0 to {MAX_TIMEOUT}");
    text.parse().ok().filter(fits).ok_or_else(wrong)
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it must be a whole number".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// What is asked for: token ($MCP_HTTP_TOKEN) or none [default: token]
    #[arg(long, value_name = "KIND", requires = "http", hide_possible_values = true)]
    pub auth: Option<AuthKind>,

    /// Host name the server is known by; can be given again
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    Token,
    None,
}

#[derive(Debug, clap::Args)]
pub struct InstallFlags {
    /// One of claude-desktop, claude-code, codex, cursor, vscode, zed, gemini, qwen, goose
    #[arg(required_unless_present = "list", hide_possible_values = true)]
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

    /// Variable of the client that has the token [default: MCP_HTTP_TOKEN]
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "auth")]
    pub token_env: Option<String>,

    /// How that server lets clients in: token or none [default: token]
    #[arg(long, value_name = "KIND", requires = "http", hide_possible_values = true)]
    pub auth: Option<AuthKind>,

    #[command(flatten, next_help_heading = "Options of the server")]
    pub shell: ShellFlags,

    /// Options of the server, as well
    #[arg(last = true, value_name = "OPTIONS", hide = true)]
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

    #[command(flatten)]
    pub shell: ShellFlags,
}

#[derive(Debug, clap::Args)]
pub struct DoctorFlags {
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
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

    #[command(flatten)]
    pub shell: ShellFlags,
}
