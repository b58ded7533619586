//! What the server is to do: flags first, then the configuration file, then the defaults.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_engine::{Engine, Pattern, Policy, SpillSettings};
use mcpz_server::{Shell, ToolSet, UnknownTool};
use rustix::fs::Access;

use crate::args::ShellFlags;
use crate::config::{self, Config, ConfigError};

/// The longest timeout, in seconds.
pub const MAX_TIMEOUT: u64 = mcpz_engine::MAX_TIMEOUT.as_secs();

const DEFAULT_TIMEOUT: u64 = 30;

/// How long outputs can be read after they were kept.
const DEFAULT_KEEP_TIME: Duration = Duration::from_secs(3600);

const DEFAULT_SHELL: &str = "/bin/sh";

#[derive(Debug)]
pub struct Settings {
    pub engine: mcpz_engine::Settings,
    pub tools: ToolSet,
    pub no_stderr: bool,
    pub verbose: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tools(#[from] UnknownTool),
    #[error("the timeout is {0} seconds, but must be from 1 to {MAX_TIMEOUT}")]
    Timeout(u64),
    #[error("the allow list is empty: leave it out to allow everything, or say what may run")]
    NothingAllowed,
    #[error("cannot use {} as the working directory", path.display())]
    WorkingDir { path: PathBuf, source: io::Error },
    #[error("cannot use {} as the shell", path.display())]
    Shell { path: PathBuf, source: io::Error },
}

impl Settings {
    pub fn load(flags: &ShellFlags) -> Result<Self, SettingsError> {
        let Config { shell_tool: file, policy } = config::load(flags.config.as_deref())?;
        let timeout = flags.timeout.or(file.timeout).unwrap_or(DEFAULT_TIMEOUT);
        if !(1..=MAX_TIMEOUT).contains(&timeout) {
            return Err(SettingsError::Timeout(timeout));
        }
        let tools = flags.tools.clone().or(file.tools.map(|names| names.join(",")));
        let engine = mcpz_engine::Settings {
            agent: "/proc/self/exe".into(),
            working_directory: working_dir(flags.working_dir.clone().or(file.working_dir))?,
            shell: shell(flags.shell.clone().or(file.shell))?,
            timeout: Duration::from_secs(timeout),
            policy: Policy {
                allow: allowed(patterns(flags.allow.as_deref(), policy.allow))?,
                deny: patterns(flags.deny.as_deref(), policy.deny).unwrap_or_default(),
            },
            spill: SpillSettings::new(std::env::temp_dir()),
            keep_time: DEFAULT_KEEP_TIME,
        };
        Ok(Self {
            engine,
            tools: tools.map_or_else(|| Ok(ToolSet::default()), |list| list.parse())?,
            no_stderr: flags.no_stderr || file.no_stderr.unwrap_or(false),
            verbose: flags.verbose || file.verbose.unwrap_or(false),
        })
    }

    /// The server these settings describe.
    pub fn shell(self) -> Shell {
        let shell = Shell::new(Engine::new(self.engine), self.tools);
        if self.no_stderr { shell.without_stderr() } else { shell }
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

/// The shell's full path. It is found once, by our own `PATH` and directory: a request can change
/// both.
fn shell(wanted: Option<PathBuf>) -> Result<PathBuf, SettingsError> {
    let path = wanted.unwrap_or_else(|| DEFAULT_SHELL.into());
    let find = || {
        let found = match path.as_os_str().as_encoded_bytes().contains(&b'/') {
            true => std::path::absolute(&path)?,
            false => on_path(&path).ok_or(io::ErrorKind::NotFound)?,
        };
        rustix::fs::access(&found, Access::EXEC_OK)?;
        Ok(found)
    };
    find().map_err(|source| SettingsError::Shell { path: path.clone(), source })
}

fn on_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|found| rustix::fs::access(found, Access::EXEC_OK).is_ok())
}

/// Patterns on the command line take the place of those in the file.
fn patterns(flag: Option<&str>, file: Option<Vec<String>>) -> Option<Vec<Pattern>> {
    let list = flag.map(str::to_owned).or_else(|| file.map(|patterns| patterns.join(",")))?;
    Some(Pattern::list(&list))
}

/// A list with nothing on it is a mistake: a variable that was not set must not open the door.
fn allowed(list: Option<Vec<Pattern>>) -> Result<Vec<Pattern>, SettingsError> {
    match list {
        Some(list) if list.is_empty() => Err(SettingsError::NothingAllowed),
        list => Ok(list.unwrap_or_default()),
    }
}
