//! The command line: commands and their arguments.
//!
//! The flags that are settings come from the table of settings ([`crate::settings`]). Help has no long form and
//! fits one screen. Completions and the pages for man are generated from the same texts, so all three agree.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, ArgMatches, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::age::parse_age;
use crate::client::Client;
use crate::settings::{AuthKind, CONFIG_HELP, Scope, Settings, whole_number};

/// Lets language models run commands over the Model Context Protocol
#[derive(Debug, Parser)]
#[command(
    name = "mcpz",
    version,
    after_help = "Exit codes: 0 on success, 1 on error, 2 for invalid flags; the help of a command lists any others"
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
    /// Add mcpz to a client's configuration file
    // Its help has no line left on the screen for these; the heading of the server's options says where they are.
    #[command(mut_arg("hide", |flag| flag.hide(true)))]
    #[command(mut_arg("write", |flag| flag.hide(true)))]
    #[command(mut_arg("publish", |flag| flag.hide(true)))]
    Install(InstallFlags),
    /// Call a tool once and print its answer
    #[command(
        after_help = "Exit codes: the command's own, 124 after a timeout, 128 plus the signal number, \
                      130 if interrupted, 1 if it was refused or could not start"
    )]
    Call(CallFlags),
    /// Check whether a command may run, and why not
    #[command(
        after_help = "Exit codes: 0 if the command may run, or after a batch; 1 if not, or on error"
    )]
    Check(CheckFlags),
    /// Test a policy
    Policy {
        #[command(subcommand)]
        policy: PolicyCommand,
    },
    /// Show and verify the records of what ran and what was refused
    Audit {
        #[command(subcommand)]
        audit: Audit,
    },
    /// Show the commands that ran or were refused, newest last
    History(HistoryFlags),
    /// List, follow, stop and attach to background jobs
    Jobs {
        #[command(subcommand)]
        jobs: JobsCommand,
    },
    /// List the places that commands run in, or end one
    Places {
        #[command(subcommand)]
        places: Option<PlacesCommand>,

        /// Print the places as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show or clear what commands in sandboxes wrote to caches
    Cache {
        #[command(subcommand)]
        cache: CacheCommand,
    },
    /// Check this machine and the settings, and suggest fixes
    #[command(after_help = "Exit codes: 0 if a server can start, 1 if not")]
    Doctor(DoctorFlags),
    /// Check whether an HTTP server is healthy
    #[command(
        after_help = "Exit codes: 0 if the server is healthy, 1 if not, or if it does not answer within 10 seconds"
    )]
    Health {
        /// URL to check [default: /healthz at $MCP_HTTP_BIND, or on port 8000 of this machine]
        url: Option<String>,
    },
    /// Print a completion script for a shell
    Completions {
        /// One of bash, elvish, fish, powershell, zsh
        #[arg(hide_possible_values = true)]
        shell: Shell,
    },
    /// Print the man page of mcpz, or write those of all commands
    Man {
        /// Folder to write the pages to
        dir: Option<PathBuf>,
    },
    /// Try to get out of a sandbox
    #[command(hide = true)]
    Trial { terms: String },
    /// Keep the homes of a sandbox up to date
    #[command(hide = true)]
    Homes,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check the rules of a configuration file against their own examples
    #[command(after_help = "Exit codes: 0 if all examples pass, 1 if not, or on error")]
    Test {
        /// A configuration file with a [policy] table
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum CacheCommand {
    /// Print the folder and how large it is
    Show,
    /// Remove everything that no sandbox uses at the moment
    Clear,
}

#[derive(Debug, Subcommand)]
pub enum PlacesCommand {
    /// End a place of all servers, with everything that runs there; the next command makes it again
    Stop {
        /// Name of the place
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List the jobs of all servers; * marks detached jobs, which outlive their server
    List {
        /// Print the jobs as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the output of a job
    Logs {
        /// Job name, or at least the first 4 characters of its run id
        job: String,

        /// Keep printing until the job ends
        #[arg(short, long)]
        follow: bool,
    },
    /// Stop a job and everything it started
    Stop {
        /// Job name, or at least the first 4 characters of its run id
        job: String,
    },
    /// Attach to a job's terminal, to type what no model should see; Ctrl-] detaches
    #[command(
        after_help = "Exit codes: 0 if you detach or the job ends, 128 plus the signal number, 1 on error"
    )]
    Attach {
        /// Job name, or at least the first 4 characters of its run id
        job: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that no record was changed, moved or removed
    #[command(after_help = "Exit codes: 0 if all records are intact, 1 if not, or on error")]
    Verify(AuditFlags),
    /// Print the last records, one per line
    Tail {
        /// Number of records
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20, value_parser = whole_number)]
        lines: usize,

        /// Keep printing new records as they are written
        #[arg(short, long)]
        follow: bool,

        #[command(flatten)]
        audit: AuditFlags,
    },
    /// Print all records of a run
    Show {
        /// Run id, or a unique prefix of it
        id: String,

        #[command(flatten)]
        audit: AuditFlags,
    },
}

#[derive(Debug, clap::Args)]
pub struct AuditFlags {
    /// Folder of the records [default: folder in [audit], or $XDG_STATE_HOME/mcpz]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    #[arg(long, value_name = "FILE", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct HistoryFlags {
    /// Only commands that match this regular expression, or whose kept output does
    #[arg(long, value_name = "REGEX")]
    pub grep: Option<String>,

    /// Only commands that failed, timed out, were killed, lost or refused
    #[arg(long)]
    pub failed: bool,

    /// Only commands that started in this time, such as 30s, 10m, 1h or 2d
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub since: Option<Duration>,

    /// Number of commands, the newest
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100, value_parser = whole_number)]
    pub lines: usize,

    /// Print the commands as JSON
    #[arg(long)]
    pub json: bool,

    /// Print the output of a command that a server keeps; the first characters of its run id are enough
    #[arg(long, value_name = "RUN", conflicts_with_all = ["grep", "failed", "since", "lines", "json"])]
    pub output: Option<String>,

    #[command(flatten)]
    pub audit: AuditFlags,
}

#[derive(Debug, Subcommand)]
pub enum Server {
    /// Start an MCP server for shell command execution
    #[command(
        after_help = "Exit codes: 0 if the client or a signal ends it, 1 if it cannot start, 2 for invalid flags"
    )]
    Shell(ServerFlags),
}

/// The settings of `mcpz server shell`.
#[derive(Debug, Default)]
pub struct ServerFlags {
    pub settings: Settings,
}

/// The flags of `mcpz server shell` that are not about HTTP, for a command that passes them on.
#[derive(Debug)]
pub struct StdioFlags;

impl StdioFlags {
    /// The group of these flags, for those that exclude them.
    const GROUP: &str = "StdioFlags";
}

/// The settings of every other command that runs or judges commands.
#[derive(Debug, Default)]
pub struct ShellFlags {
    pub settings: Settings,
}

impl clap::Args for ShellFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Settings::flags(Scope::Shell))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::Args for StdioFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let flags = [Scope::Shell, Scope::Stdio].map(Settings::flags).concat();
        let names = flags.iter().map(|flag| flag.get_id().clone());
        let group = ArgGroup::new(Self::GROUP).multiple(true).args(names);
        command.args(flags).group(group)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::Args for ServerFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        StdioFlags::augment_args(command).args(Settings::flags(Scope::Server))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ShellFlags {
    fn from_arg_matches(flags: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { settings: Settings::from_flags(flags, Scope::Shell) })
    }

    fn update_from_arg_matches(&mut self, flags: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(flags)?;
        Ok(())
    }
}

impl FromArgMatches for StdioFlags {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(flags: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { settings: Settings::from_flags(flags, Scope::Server) })
    }

    fn update_from_arg_matches(&mut self, flags: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(flags)?;
        Ok(())
    }
}

#[derive(Debug, clap::Args)]
pub struct InstallFlags {
    /// One of claude-desktop, claude-code, codex, cursor, vscode, zed, gemini, qwen, goose
    #[arg(required_unless_present = "list", hide_possible_values = true)]
    pub client: Option<Client>,

    /// List the clients on this machine and the mcpz servers they have
    #[arg(long, conflicts_with_all = ["client", "print", "remove", "force", "http", "server"])]
    pub list: bool,

    /// Show the file and what to add to it, without writing
    #[arg(long)]
    pub print: bool,

    /// Remove the server from the client's configuration file
    #[arg(long)]
    pub remove: bool,

    /// Write despite a missing client, taken name or failing server
    #[arg(long)]
    pub force: bool,

    /// Name of the server in the client
    #[arg(long, default_value = "shell")]
    pub name: String,

    /// Project folder, to add the server to that project only
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,

    /// URL of a running server, instead of one that the client starts
    #[arg(long, value_name = "URL", conflicts_with_all = [StdioFlags::GROUP, "server"])]
    pub http: Option<String>,

    /// Token for that server; it is written to the file
    #[arg(long, requires = "http", conflicts_with_all = ["token_env", "auth"])]
    pub token: Option<String>,

    /// Client's environment variable for the token [default: MCP_HTTP_TOKEN]
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "auth")]
    pub token_env: Option<String>,

    /// Authentication of that server: token or none [default: token]
    #[arg(long, value_name = "KIND", requires = "http", hide_possible_values = true)]
    pub auth: Option<AuthKind>,

    #[command(flatten, next_help_heading = "Server options (`mcpz server shell --help` has more)")]
    pub stdio: StdioFlags,

    /// More server options
    #[arg(last = true, value_name = "OPTIONS", hide = true)]
    pub server: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct CallFlags {
    /// Tool to call, such as execute_command
    pub tool: String,

    /// Arguments, such as command="ls -l" timeout=5 environment.LANG=C; stdin=- passes standard input to the command
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
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub shell: ShellFlags,
}

#[derive(Debug, clap::Args)]
pub struct CheckFlags {
    /// Command to check
    #[arg(required_unless_present = "batch")]
    pub command: Option<String>,

    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,

    /// Read one JSON object per line, {"policy": {"allow": [], "deny": [], "write_dirs": []},
    /// "command": "...", "shell": "bash"}, and print allow or deny for each
    #[arg(long, conflicts_with_all = ["command", "json"])]
    pub batch: bool,

    #[command(flatten)]
    pub shell: ShellFlags,
}
