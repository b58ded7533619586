//! What an engine is made with. Settings never change; what a login shell adds to the environment is set once,
//! elsewhere.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use mcpz_agent::Limits;
use mcpz_audit::AuditSettings;
use mcpz_output::SpillSettings;
use mcpz_policy::Policy;
use mcpz_sandbox::{Bubblewrap, View};
use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Login};
use crate::place_settings::PlaceSettings;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that becomes an agent when it gets the argument `agent`.
    pub agent: PathBuf,
    /// The environment of commands, unless a login shell reports another one.
    pub environment: Environment,
    /// The login shell to ask for the environment.
    pub login: Option<Login>,
    pub working_directory: PathBuf,
    pub timeout: Duration,
    pub policy: Policy,
    /// Whether the kernel holds commands to what the policy understood.
    pub lock: bool,
    /// What `~` stands for in a command.
    pub home: Option<PathBuf>,
    pub runs: RunLimits,
    /// What each command may use.
    pub limits: Limits,
    pub spill: SpillSettings,
    /// How long outputs stay readable.
    pub keep_time: Duration,
    /// Whether commands may start only in the working directory and below.
    pub stays_within: bool,
    /// Other directories they may start in, and below. Without `stays_within`, an empty list means anywhere.
    pub allowed_directories: Vec<PathBuf>,
    /// Whether the log and the audit trail contain the text of commands.
    pub log_commands: bool,
    pub audit: AuditSettings,
    /// Where commands can run besides this machine.
    pub places: Option<PlaceSettings>,
    /// The sandbox of commands, if they have one.
    pub sandbox: Option<SandboxSettings>,
    /// The folder of detached jobs and control sockets.
    pub jobs_folder: Option<PathBuf>,
}

impl Settings {
    /// The longest timeout there is: a day.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);
}

/// How commands are confined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxSettings {
    pub view: View,
    /// The namespaces around commands. Without them, only Landlock and seccomp confine commands.
    pub ring: Option<Bubblewrap>,
    /// Where commands may connect to, in the syntax of `--net`. Commands share the machine's network only if the view
    /// says so.
    pub net: String,
    /// The folder for what commands must not create.
    pub quarantine: PathBuf,
    /// Ports of the sandbox that programs on this machine can connect to.
    pub publish: Vec<RangeInclusive<u16>>,
    /// Where commands write to caches, if they may.
    pub caches: Option<CacheSettings>,
}

/// Layers for the caches in a home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CacheSettings {
    pub home: PathBuf,
    /// The folder of all layers.
    pub folder: PathBuf,
    /// How large they may become together.
    pub limit: u64,
}

/// How many commands may run and wait, and how long they may be idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// How many may run at once.
    pub total: usize,
    /// How many of one owner may run at once.
    pub per_owner: usize,
    /// How many may wait for their turn.
    pub waiting: usize,
    /// How many jobs of one owner may run at once.
    pub jobs: usize,
    /// How many sessions one owner may have.
    pub sessions: usize,
    /// How long a job or session may be idle before it is ended.
    pub idle: Option<Duration>,
}

impl Default for RunLimits {
    fn default() -> Self {
        let idle = Some(Duration::from_secs(86_400));
        Self { total: 512, per_owner: 256, waiting: 1024, jobs: 64, sessions: 16, idle }
    }
}
