//! What a server is built from: the settings, checked and turned into what the engine and the tools take.
//!
//! `mcpz call`, `check` and `doctor` use the same, so they see what a server with these settings would see.

mod limits;
mod lock;
mod places;
mod tools;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_audit::AuditSettings;
use mcpz_engine::{Engine, PlaceSettings};
use mcpz_runtime::Later;
use mcpz_server::{
    FaceSettings, MaxAnswer, MemoryLimits, ShellServer, Spans, ToolSet, UnknownTool,
};

use crate::command_environment::{
    CommandEnvironment, InvalidPattern, UnusableShell, VariableFilter,
};
use crate::environment;
use crate::log::Format;
use crate::policy::{self, PolicyError};
use crate::sandbox::{SandboxError, SandboxRequest};
use crate::settings::{self, MAX_TIMEOUT, Settings};
use places::PlacesError;

#[derive(Debug)]
pub struct Setup {
    pub engine: mcpz_engine::Settings,
    pub tools: ToolSet,
    pub faces: FaceSettings,
    pub sandbox: SandboxRequest,
    pub no_stderr: bool,
    pub verbose: bool,
    /// How long calls may take to finish once the client has closed its input.
    pub finish_time: Duration,
    pub log: Format,
    /// Why the kernel does not hold commands to the policy, although it should.
    pub no_lock: Option<io::Error>,
    /// How much memory messages may take.
    pub memory: MemoryLimits,
    /// Where calls are traced, if they are.
    pub spans: Option<Arc<Spans>>,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Tools(#[from] UnknownTool),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Environment(#[from] InvalidPattern),
    #[error(
        "the default_timeout is {} seconds, longer than the max_timeout of {}; change one of them",
        default.as_secs(), max.as_secs()
    )]
    TimeoutOrder { default: Duration, max: Duration },
    #[error("the {name} is {seconds} seconds, but must be from 1 to {MAX_TIMEOUT}")]
    Time { name: &'static str, seconds: u64 },
    #[error(
        "max_answer is {characters} characters, but must be from {} to {}",
        MaxAnswer::LEAST,
        MaxAnswer::MOST
    )]
    MaxAnswer { characters: usize },
    #[error("{name} is 0, but must be at least 1")]
    Zero { name: &'static str },
    #[error("the {name} of [limits] must be at least {least}, or 0 for no limit")]
    TooLow { name: &'static str, least: u64 },
    #[error("the nice of [limits] is {nice}, but must be from 0 to 19")]
    Nice { nice: u8 },
    #[error(
        "there is no folder for the audit records; set HOME or XDG_STATE_HOME, or folder in [audit]"
    )]
    NoAuditFolder,
    #[error(
        "the max_size of [audit] is {bytes}, but must be at least {} bytes",
        AuditSettings::MIN_SIZE
    )]
    AuditSize { bytes: u64 },
    #[error("cannot use {} as the folder of the audit records", path.display())]
    AuditFolder { path: PathBuf, source: io::Error },
    #[error("cannot use {} as the working directory", path.display())]
    WorkingDir { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error(transparent)]
    Shell(#[from] UnusableShell),
    #[error(
        "lock in [policy] is true, but this kernel cannot ask before a program is executed; leave it out or set it to \
         false"
    )]
    NoLock { source: io::Error },
}

impl Setup {
    /// `token` is one that was generated for the HTTP server because the settings have none.
    pub fn new(settings: &Settings, token: Option<String>) -> Result<Self, SetupError> {
        let policy = policy::load(settings)?;
        let tool = &settings.shell_tool;
        let log = tool.log_format();
        let environment = Arc::new(CommandEnvironment {
            filter: VariableFilter::new(tool.env_pass(), tool.env_drop(), &policy)?,
            tells_of_agents: settings.environment.agent(),
            shell: tool.shell(),
            mask_secrets: tool.mask_secrets(),
            mask_tokens: tool.mask_tokens(),
            secrets: tool.secrets(),
            tokens: settings.http.tokens().into_values().chain(token).collect(),
            log,
        });
        let login = tool.login_env();
        let ours = environment::variables();
        // The `PATH` of the login shell may have it.
        let shell = match environment.find_shell(&ours) {
            Err(_) if login && environment.needs_lookup() => environment.fallback_shell(),
            found => found?,
        };
        let places = places::places(settings, &environment)?;
        let offered = places.as_ref().map(PlaceSettings::offered).unwrap_or_default();
        let faces = FaceSettings { places: offered, ..tools::faces(settings)? };
        let lock = lock::lock(&policy, settings.policy.lock())?;
        let engine = mcpz_engine::Settings {
            agent: "/proc/self/exe".into(),
            environment: environment.build(&ours, shell),
            login: login.then(|| environment.clone().login(ours)),
            // A directory that was named is meant to keep commands in it.
            stays_within: tool.working_dir().is_some(),
            working_directory: working_dir(tool.working_dir())?,
            timeout: faces.timeout,
            policy,
            lock: lock.on,
            home: environment::home(),
            runs: limits::runs(&settings.limits)?,
            limits: limits::usage(&settings.limits)?,
            spill: limits::spill(&settings.limits),
            keep_time: seconds("spill_time", settings.limits.spill_time())?,
            allowed_directories: tool.allowed_directories(),
            log_commands: tool.log_commands(),
            audit: audit(&settings.audit)?,
            jobs_folder: environment::jobs_folder(),
            places,
            sandbox: None,
        };
        let hidden = hidden(&engine, settings);
        Ok(Self {
            engine,
            sandbox: SandboxRequest { settings: settings.sandbox.clone(), hidden, log },
            tools: tool.tools().0.parse()?,
            faces,
            no_stderr: tool.no_stderr(),
            verbose: tool.verbose(),
            finish_time: finish_time(tool.finish_time().0)?,
            log,
            no_lock: lock.missing,
            memory: limits::messages(&settings.limits)?,
            spans: None,
        })
    }

    /// The same with the sandbox that is asked for, which is tried out.
    pub fn confined(mut self) -> Result<Self, SandboxError> {
        self.engine.sandbox = self.sandbox.confining(&self.engine)?;
        Ok(self)
    }

    /// The server. Must be called within a tokio runtime.
    pub fn shell(self, later: Later) -> ShellServer {
        let shell = ShellServer::new(Engine::new(self.engine, later), self.tools, self.faces);
        let shell = if self.no_stderr { shell.without_stderr() } else { shell };
        match self.spans {
            Some(spans) => shell.traced(spans),
            None => shell,
        }
    }
}

/// What commands in a sandbox must not see: the records about them, and what lets HTTP clients in.
fn hidden(engine: &mcpz_engine::Settings, settings: &Settings) -> Vec<PathBuf> {
    let has_tokens = !settings.http.tokens().is_empty();
    let config = has_tokens.then(|| settings::file_path(settings.startup.config())).flatten();
    let ours = [Some(engine.audit.folder.clone()), environment::state_folder(), config];
    let key = settings.http.tls_key().and_then(|key| std::path::absolute(key).ok());
    ours.into_iter().flatten().chain(key).collect()
}

fn audit(settings: &settings::Audit) -> Result<AuditSettings, SetupError> {
    let max_size = settings.max_size().0;
    if max_size < AuditSettings::MIN_SIZE {
        return Err(SetupError::AuditSize { bytes: max_size });
    }
    let keep = settings.keep();
    Ok(AuditSettings { max_size, keep, ..AuditSettings::new(audit_folder(settings)?) })
}

/// Where the audit records are.
pub fn audit_folder(settings: &settings::Audit) -> Result<PathBuf, SetupError> {
    let path = settings.folder().or_else(environment::state_folder);
    let path = path.ok_or(SetupError::NoAuditFolder)?;
    std::path::absolute(&path).map_err(|source| SetupError::AuditFolder { path, source })
}

fn seconds(name: &'static str, seconds: u64) -> Result<Duration, SetupError> {
    match (1..=MAX_TIMEOUT).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(SetupError::Time { name, seconds }),
    }
}

/// Unlike other times, this one may be 0.
fn finish_time(wanted: u64) -> Result<Duration, SetupError> {
    match wanted {
        0 => Ok(Duration::ZERO),
        time => seconds("finish_time", time),
    }
}

fn working_dir(wanted: Option<PathBuf>) -> Result<PathBuf, SetupError> {
    let path = wanted.unwrap_or_else(|| ".".into());
    let usable = || {
        let full = std::path::absolute(&path)?;
        match std::fs::metadata(&full)?.is_dir() {
            true => Ok(full),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    };
    usable().map_err(|source| SetupError::WorkingDir { path: path.clone(), source })
}
