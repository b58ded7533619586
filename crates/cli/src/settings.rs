//! What the server is to do: flags first, then the configuration file, then the defaults.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_audit::AuditSettings;
use mcpz_engine::{Engine, Limits, Memory, RunLimits, Surroundings, Together};
use mcpz_output::SpillSettings;
use mcpz_runtime::Later;
use mcpz_server::{
    ExecuteSettings, FaceSettings, MaxAnswer, MemoryLimits, Shell, ShellSettings, Spans, ToolSet,
    UnknownTool,
};

use crate::args::ShellFlags;
use crate::command_environment::{
    CommandEnvironment, InvalidPattern, UnusableShell, VariableFilter,
};
use crate::config::{self, Config};
use crate::environment;
use crate::log::Format;
use crate::policy::{self, PolicyError};
use crate::sandbox::{SandboxError, Wanted};
use crate::size::Size;

/// The longest timeout, in seconds.
pub const MAX_TIMEOUT: u64 = mcpz_engine::MAX_TIMEOUT.as_secs();

/// How long calls may take to finish once the client has closed its input, in seconds.
pub const DEFAULT_FINISH_TIME: u64 = 1;

/// With less, no shell starts.
const LEAST_MEMORY: u64 = 4_000_000;

/// With less, there is no room for the descriptors a session has.
const LEAST_FILES: u64 = 64;

/// With less, there is no room for the processes that mind commands.
const LEAST_TOGETHER: u64 = 32;

/// How long outputs can be read after their commands ended, in seconds.
pub const DEFAULT_SPILL_TIME: u64 = 3600;

pub const DEFAULT_SHELL: &str = "/bin/sh";

#[derive(Debug)]
pub struct Settings {
    pub engine: mcpz_engine::Settings,
    pub tools: ToolSet,
    pub faces: FaceSettings,
    pub sandbox: Wanted,
    pub no_stderr: bool,
    pub verbose: bool,
    /// How long calls may take to finish once the client has closed its input.
    pub finish_time: Duration,
    pub log: Format,
    /// What messages may take.
    pub memory: MemoryLimits,
    /// Where calls are traced, if they are.
    pub spans: Option<Arc<Spans>>,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Tools(#[from] UnknownTool),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Environment(#[from] InvalidPattern),
    #[error(
        "the default_timeout is {} seconds, longer than the max_timeout of {}: change one of them",
        default.as_secs(), max.as_secs()
    )]
    TimeoutOrder { default: Duration, max: Duration },
    #[error("{name} is `{text}`, but must be a number of bytes")]
    Number { name: &'static str, text: String },
    #[error("the {name} is {seconds} seconds, but must be from 1 to {MAX_TIMEOUT}")]
    Time { name: &'static str, seconds: u64 },
    #[error(
        "max_answer is {characters} characters, but must be from {} to {}",
        MaxAnswer::LEAST,
        MaxAnswer::MOST
    )]
    Answer { characters: usize },
    #[error("{name} is 0, but must be at least 1")]
    Nothing { name: &'static str },
    #[error("the {name} of [limits] must be at least {least}, or 0 for no limit")]
    TooLittle { name: &'static str, least: u64 },
    #[error("the nice of [limits] is {nice}, but must be from 0 to 19")]
    Nice { nice: u8 },
    #[error(
        "there is no place for the audit records: set HOME or XDG_STATE_HOME, or folder in [audit]"
    )]
    NoAuditFolder,
    #[error(
        "the max_size of [audit] is {bytes} bytes, but must be at least {}",
        AuditSettings::MIN_SIZE
    )]
    AuditSize { bytes: u64 },
    #[error("cannot use {} as the folder of the audit records", path.display())]
    AuditFolder { path: PathBuf, source: io::Error },
    #[error("cannot use {} as the working directory", path.display())]
    WorkingDir { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Shell(#[from] UnusableShell),
}

impl Settings {
    /// What flags and file say together. `made` is a token that neither of them, nor the
    /// environment, has.
    pub fn load(
        flags: &ShellFlags,
        config: Config,
        made: Option<String>,
    ) -> Result<Self, SettingsError> {
        let policy = policy::load(flags, &config)?;
        let Config { shell_tool: file, limits, audit, http, sandbox, .. } = config;
        let log = flags.log_format.or(file.log_format).unwrap_or_default();
        let environment = CommandEnvironment {
            filter: VariableFilter::load(&file, &policy)?,
            shell: flags.shell.clone().or(file.shell.clone()).unwrap_or(DEFAULT_SHELL.into()),
            mask_secrets: file.mask_secrets.unwrap_or(true),
            secrets: file.secrets.clone().unwrap_or_default(),
            tokens: http.tokens.clone().unwrap_or_default().into_values().chain(made).collect(),
            log,
        };
        let login = flags.login_env || file.login_env.unwrap_or(false);
        let ours = environment::variables();
        // The `PATH` of the login shell may have it.
        let shell = match environment.find_shell(&ours) {
            Err(_) if login && environment.needs_lookup() => environment.fallback_shell(),
            found => found?,
        };
        let Surroundings { variables, shell, secrets } = environment.build(&ours, shell);
        let faces = faces(flags, &file)?;
        let named = flags.working_dir.clone().or(file.working_dir.clone());
        let tools = flags.tools.clone().or(file.tools.as_ref().map(|names| names.join(",")));
        let engine = mcpz_engine::Settings {
            agent: "/proc/self/exe".into(),
            variables,
            login: login.then(|| environment.login(ours)),
            secrets,
            // A directory that was named is meant to keep commands in it.
            stays_within: named.is_some(),
            working_directory: working_dir(named)?,
            shell,
            timeout: faces.timeout,
            policy,
            home: environment::home(),
            runs: runs(&limits)?,
            limits: usage(flags.memory, &limits)?,
            spill: spill(&limits),
            keep_time: seconds("spill_time", limits.spill_time.unwrap_or(DEFAULT_SPILL_TIME))?,
            allowed_directories: file.allowed_directories.clone().unwrap_or_default(),
            log_commands: file.log_commands.unwrap_or(true),
            audit: audit_settings(&audit)?,
            jobs_folder: environment::jobs_folder(),
            confining: None,
        };
        let hidden = hidden(&engine, &http, flags);
        let (mode, net) = (flags.sandbox, flags.net.clone());
        let sandbox = Wanted { mode, net, file: sandbox, hidden, log };
        Ok(Self {
            engine,
            sandbox,
            tools: tools.map_or_else(|| Ok(ToolSet::default()), |list| list.parse())?,
            faces,
            no_stderr: flags.no_stderr || file.no_stderr.unwrap_or(false),
            verbose: flags.verbose || file.verbose.unwrap_or(false),
            finish_time: finish_time(file.finish_time)?,
            log,
            memory: messages(&limits)?,
            spans: None,
        })
    }

    /// The same with the sandbox that is asked for, which is tried out.
    pub fn confined(mut self) -> Result<Self, SandboxError> {
        self.engine.confining = self.sandbox.confining(&self.engine)?;
        Ok(self)
    }

    /// The server these settings describe. Must be called within a tokio runtime.
    pub fn shell(self, later: Later) -> Shell {
        let shell = Shell::new(Engine::new(self.engine, later), self.tools, self.faces);
        let shell = if self.no_stderr { shell.without_stderr() } else { shell };
        match self.spans {
            Some(spans) => shell.traced(spans),
            None => shell,
        }
    }
}

/// What of ours a confined command must not see: its record, and what lets people in.
fn hidden(engine: &mcpz_engine::Settings, http: &config::Http, flags: &ShellFlags) -> Vec<PathBuf> {
    let tokens = http.tokens.is_some().then(|| config::path(flags.config.as_deref())).flatten();
    let ours = [Some(engine.audit.folder.clone()), environment::state_folder(), tokens];
    ours.into_iter().flatten().chain(http.tls_key.clone()).collect()
}

fn audit_settings(file: &config::Audit) -> Result<AuditSettings, SettingsError> {
    let default = AuditSettings::new(audit_folder(file)?);
    let max_size = file.max_size.map_or(default.max_size, |size| size.0);
    if max_size < AuditSettings::MIN_SIZE {
        return Err(SettingsError::AuditSize { bytes: max_size });
    }
    Ok(AuditSettings { max_size, keep: file.keep.unwrap_or(default.keep), ..default })
}

/// Where the audit records are.
pub fn audit_folder(file: &config::Audit) -> Result<PathBuf, SettingsError> {
    let path = file.folder.clone().or_else(environment::state_folder);
    let path = path.ok_or(SettingsError::NoAuditFolder)?;
    std::path::absolute(&path).map_err(|source| SettingsError::AuditFolder { path, source })
}

fn runs(limits: &config::Limits) -> Result<RunLimits, SettingsError> {
    let default = RunLimits::default();
    let at_least_one = |name, wanted: Option<usize>, otherwise| match wanted {
        Some(0) => Err(SettingsError::Nothing { name }),
        wanted => Ok(wanted.unwrap_or(otherwise)),
    };
    Ok(RunLimits {
        total: at_least_one("runs", limits.runs, default.total)?,
        per_owner: at_least_one("runs_per_client", limits.runs_per_client, default.per_owner)?,
        waiting: limits.waiting.unwrap_or(default.waiting),
        jobs: limits.jobs.unwrap_or(default.jobs),
        sessions: limits.sessions.unwrap_or(default.sessions),
        idle: match limits.idle {
            Some(0) => None,
            wanted => wanted.map(Duration::from_secs).or(default.idle),
        },
    })
}

/// How much output is kept on the disk. Who sets no limit for each client has one that leaves room for
/// others.
fn spill(limits: &config::Limits) -> SpillSettings {
    let default = SpillSettings::new(environment::temporary_folder());
    let size = |wanted: Option<Size>, otherwise| wanted.map_or(otherwise, |size| size.0);
    let total = size(limits.spill_total, default.total);
    SpillSettings {
        per_run: size(limits.spill_per_run, default.per_run),
        per_owner: size(limits.spill_per_client, total / 2).min(total),
        total,
        ..default
    }
}

/// How much memory messages may take. Who sets no limit for each client has one that leaves room for others.
fn messages(limits: &config::Limits) -> Result<MemoryLimits, SettingsError> {
    let default = MemoryLimits::default();
    let size = |name, wanted: Option<Size>, otherwise| match wanted {
        Some(Size(bytes)) if bytes < MemoryLimits::LEAST as u64 => {
            Err(SettingsError::TooLittle { name, least: MemoryLimits::LEAST as u64 })
        }
        Some(Size(bytes)) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
        None => Ok(otherwise),
    };
    let total = size("message_memory", limits.message_memory, default.total)?;
    let own = size(
        "message_memory_per_client",
        limits.message_memory_per_client,
        (total / 4).max(MemoryLimits::LEAST),
    )?;
    Ok(MemoryLimits { total, per_client: own.min(total) })
}

/// What each command may use; 0 stands for all there is.
fn usage(memory: Option<Size>, limits: &config::Limits) -> Result<Limits, SettingsError> {
    let default = Limits::default();
    let at_least = |name, least, wanted: Option<u64>, otherwise| match wanted {
        None => Ok(otherwise),
        Some(0) => Ok(None),
        Some(wanted) if wanted < least => Err(SettingsError::TooLittle { name, least }),
        Some(wanted) => Ok(Some(wanted)),
    };
    let memory_of = |name, wanted: Option<Size>, otherwise| {
        let wanted = wanted.map(|size| size.0);
        let least = at_least(name, LEAST_MEMORY, wanted, None);
        least.map(|bytes| match bytes {
            Some(bytes) => Memory::Bytes(bytes),
            None if wanted.is_some() => Memory::Unlimited,
            None => otherwise,
        })
    };
    let memory = memory_of("memory", memory.or(limits.memory), default.memory)?;
    let processes = at_least("processes", 1, limits.processes, default.processes)?;
    // Who may have all there is needs no other limit.
    let all = match memory {
        Memory::Unlimited => Memory::Unlimited,
        _ => default.together.memory,
    };
    let most = processes.and(default.together.processes);
    let file_size = limits.file_size.map(|size| size.0);
    Ok(Limits {
        memory,
        processes,
        together: Together {
            memory: memory_of("memory_per_client", limits.memory_per_client, all)?,
            processes: at_least(
                "processes_per_client",
                LEAST_TOGETHER,
                limits.processes_per_client,
                most,
            )?,
            ..default.together
        },
        open_files: at_least("open_files", LEAST_FILES, limits.open_files, default.open_files)?,
        file_size: at_least("file_size", 1, file_size, default.file_size)?,
        cpu_time: at_least("cpu_time", 1, limits.cpu_time, None)?.map(Duration::from_secs),
        nice: match limits.nice.unwrap_or(default.nice) {
            nice @ 0..=19 => nice,
            nice => return Err(SettingsError::Nice { nice }),
        },
        ..default
    })
}

/// What can be set for single tools. A timeout that is set is that of all of them.
fn faces(flags: &ShellFlags, file: &config::ShellTool) -> Result<FaceSettings, SettingsError> {
    let default = FaceSettings::default();
    let time = |name, time: Option<u64>| time.map(|time| seconds(name, time)).transpose();
    let timeout = time("timeout", flags.timeout.or(file.timeout))?;
    Ok(FaceSettings {
        shell: shell_face(flags, file)?,
        execute: execute_face()?,
        timeout: timeout.unwrap_or(default.timeout),
        long_timeout: timeout.unwrap_or(default.long_timeout),
        background_after: time(
            "background_after",
            flags.background_after.or(file.background_after),
        )?,
        max_answer: max_answer(flags.max_answer.or(file.max_answer))?,
    })
}

/// The timeout of this tool: the flag's, its own of the file, that of all tools, or the default.
fn shell_face(
    flags: &ShellFlags,
    file: &config::ShellTool,
) -> Result<ShellSettings, SettingsError> {
    let default = ShellSettings::default();
    let time = |name, time: Option<u64>, otherwise| match time {
        Some(time) => seconds(name, time),
        None => Ok(otherwise),
    };
    let max_timeout = time("max_timeout", file.max_timeout, default.max_timeout)?;
    let others = time("timeout", flags.timeout.or(file.timeout), default.default_timeout)?;
    let own = file.default_timeout.filter(|_| flags.timeout.is_none());
    let default_timeout = time("default_timeout", own, others.min(max_timeout))?;
    if default_timeout > max_timeout {
        let (default, max) = (default_timeout, max_timeout);
        return Err(SettingsError::TimeoutOrder { default, max });
    }
    let most = |size: Size| usize::try_from(size.0).unwrap_or(usize::MAX);
    let max_output = file.max_output_size.map_or(default.max_output, most);
    if max_output == 0 {
        return Err(SettingsError::Nothing { name: "max_output_size" });
    }
    Ok(ShellSettings { default_timeout, max_timeout, max_output })
}

fn max_answer(chosen: Option<usize>) -> Result<MaxAnswer, SettingsError> {
    match chosen {
        None => Ok(MaxAnswer::default()),
        Some(characters) if (MaxAnswer::LEAST..=MaxAnswer::MOST).contains(&characters) => {
            Ok(MaxAnswer::chosen(characters))
        }
        Some(characters) => Err(SettingsError::Answer { characters }),
    }
}

fn execute_face() -> Result<ExecuteSettings, SettingsError> {
    let default = ExecuteSettings::default();
    let number = |name: &'static str, otherwise| match environment::text(name) {
        None => Ok(otherwise),
        Some(text) => text.parse().map_err(|_| SettingsError::Number { name, text }),
    };
    Ok(ExecuteSettings {
        max_output_bytes: number("MCP_EXEC_MAX_OUTPUT_BYTES", default.max_output_bytes)?,
        log_full_output: environment::text("MCP_EXEC_LOG_FULL_OUTPUT")
            .is_some_and(|text| text == "1"),
        log_output_bytes: number("MCP_EXEC_LOG_OUTPUT_BYTES", default.log_output_bytes)?,
    })
}

fn seconds(name: &'static str, seconds: u64) -> Result<Duration, SettingsError> {
    match (1..=MAX_TIMEOUT).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(SettingsError::Time { name, seconds }),
    }
}

/// Unlike other times, this one may be none at all.
fn finish_time(wanted: Option<u64>) -> Result<Duration, SettingsError> {
    match wanted.unwrap_or(DEFAULT_FINISH_TIME) {
        0 => Ok(Duration::ZERO),
        time => seconds("finish_time", time),
    }
}

fn working_dir(wanted: Option<PathBuf>) -> Result<PathBuf, SettingsError> {
    let path = wanted.unwrap_or_else(|| ".".into());
    let usable = || {
        let full = std::path::absolute(&path)?;
        match std::fs::metadata(&full)?.is_dir() {
            true => Ok(full),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    };
    usable().map_err(|source| SettingsError::WorkingDir { path: path.clone(), source })
}
