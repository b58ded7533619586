//! What an engine is made with. Nothing of it changes while the engine lives; what a login shell adds to the
//! environment of commands is kept apart, and is set once.

use std::path::PathBuf;
use std::time::Duration;

use mcpz_agent::Limits;
use mcpz_audit::AuditSettings;
use mcpz_output::SpillSettings;
use mcpz_policy::Policy;
use mcpz_sandbox::{Bubblewrap, View};
use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Login};

/// The longest timeout there is: a day.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that is an agent when it is given the argument `agent`.
    pub agent: PathBuf,
    /// What commands start with, unless a login shell says otherwise.
    pub environment: Environment,
    /// The login shell to ask for another environment.
    pub login: Option<Login>,
    pub working_directory: PathBuf,
    pub timeout: Duration,
    pub policy: Policy,
    /// What `~` stands for in a command.
    pub home: Option<PathBuf>,
    pub runs: RunLimits,
    /// What each command may use.
    pub limits: Limits,
    pub spill: SpillSettings,
    /// How long outputs can be read.
    pub keep_time: Duration,
    /// Whether commands may start only in the working directory and below.
    pub stays_within: bool,
    /// Other directories they may start in, and below. Without `stays_within`, an empty list means anywhere.
    pub allowed_directories: Vec<PathBuf>,
    /// Whether the log and the audit trail contain the text of commands.
    pub log_commands: bool,
    pub audit: AuditSettings,
    /// The sandbox commands run in, if there is one.
    pub sandbox: Option<SandboxSettings>,
    /// The folder of detached jobs and control sockets.
    pub jobs_folder: Option<PathBuf>,
}

/// How commands are confined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxSettings {
    pub view: View,
    /// The namespaces around commands; without them, only the kernel's filters hold.
    pub ring: Option<Bubblewrap>,
    /// Where commands may connect to, in the syntax of `--net`. Commands share the machine's network only if the
    /// view says so.
    pub net: String,
}

/// How many commands may run and wait, and how long without being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// At once, in all.
    pub total: usize,
    /// At once, of one owner.
    pub per_owner: usize,
    /// How many may wait for their turn, in all.
    pub waiting: usize,
    /// How many jobs of one owner may run at once.
    pub jobs: usize,
    /// How many sessions one owner may have.
    pub sessions: usize,
    /// How long a job or a session may be idle before it is ended.
    pub idle: Option<Duration>,
}

impl Default for RunLimits {
    fn default() -> Self {
        let idle = Some(Duration::from_secs(86_400));
        Self { total: 512, per_owner: 256, waiting: 1024, jobs: 64, sessions: 16, idle }
    }
}
