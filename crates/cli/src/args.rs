//! The command line: commands and their arguments.
//!
//! The flags that are settings come from the table of settings ([`crate::settings`]). Help has no long form and
//! fits one screen. Completions and the pages for man are generated from the same texts, so all three agree.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, ArgMatches, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::client::Client;
use crate::settings::{AuthKind, Scope, Settings, whole_number};

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
    // Its help has no line left on the screen for these.
    #[command(mut_arg("log-format", |flag| flag.hide(true)))]
    #[command(mut_arg("max-answer", |flag| flag.hide(true)))]
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
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20, value_parser = whole_number)]
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

/// The settings of `mcpz server shell`.
#[derive(Debug, Default)]
pub struct ServerFlags {
    pub settings: Settings,
}

/// The settings of every other command that runs or judges commands.
#[derive(Debug, Default)]
pub struct ShellFlags {
    pub settings: Settings,
}

impl ShellFlags {
    /// The group of these flags, for those that exclude them.
    const GROUP: &str = "ShellFlags";
}

impl clap::Args for ShellFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let flags = Settings::flags(Scope::Shell);
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
        ShellFlags::augment_args(command).args(Settings::flags(Scope::Server))
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
