//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::settings::MAX_TIMEOUT;

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
    /// Call a tool once and print what it answers
    Call(CallFlags),
    /// Start and end processes for a server
    #[command(hide = true)]
    Agent,
}

#[derive(Debug, Subcommand)]
pub enum Server {
    /// Start an MCP server for shell command execution
    Shell(ShellFlags),
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
