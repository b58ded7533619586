//! The limits of `[limits]`, as the engine and the transports take them.

use std::time::Duration;

use mcpz_agent::{Limits, Memory, OwnerLimits};
use mcpz_engine::RunLimits;
use mcpz_output::SpillSettings;
use mcpz_server::MemoryLimits;

use super::SetupError;
use crate::environment;
use crate::settings::{self, Size};

/// With less, no shell starts.
const LEAST_MEMORY: u64 = 4_000_000;

/// With fewer, there is no room for the descriptors of a session.
const LEAST_FILES: u64 = 64;

/// With fewer, there is no room for the keepers of commands.
const LEAST_TOGETHER: u64 = 32;

pub fn runs(settings: &settings::Limits) -> Result<RunLimits, SetupError> {
    let at_least_one = |name, wanted: usize| match wanted {
        0 => Err(SetupError::Zero { name }),
        wanted => Ok(wanted),
    };
    Ok(RunLimits {
        total: at_least_one("runs", settings.runs())?,
        per_owner: at_least_one("runs_per_client", settings.runs_per_client())?,
        waiting: settings.waiting(),
        jobs: settings.jobs(),
        sessions: settings.sessions(),
        idle: Some(settings.idle()).filter(|time| *time > 0).map(Duration::from_secs),
    })
}

/// How much output is kept on disk. Without a limit for each client, one client leaves half to others.
pub fn spill(settings: &settings::Limits) -> SpillSettings {
    let total = settings.spill_total().0;
    let per_owner = settings.spill_per_client().map_or(total / 2, |size| size.0);
    SpillSettings {
        per_run: settings.spill_per_run().0,
        per_owner: per_owner.min(total),
        total,
        ..SpillSettings::new(environment::temporary_folder())
    }
}

/// How much memory messages may take. Without a limit for each client, it is a quarter of that.
pub fn messages(settings: &settings::Limits) -> Result<MemoryLimits, SetupError> {
    let least = MemoryLimits::LEAST;
    let enough = |name, size: Size| match size.in_memory() {
        bytes if bytes < least => Err(SetupError::TooLow { name, least: least as u64 }),
        bytes => Ok(bytes),
    };
    let total = enough("message_memory", settings.message_memory())?;
    let per_client = match settings.message_memory_per_client() {
        Some(size) => enough("message_memory_per_client", size)?,
        None => (total / 4).max(least),
    };
    Ok(MemoryLimits { total, per_client: per_client.min(total) })
}

/// What each command may use, and all of one client together.
pub fn usage(settings: &settings::Limits) -> Result<Limits, SetupError> {
    let default = Limits::default();
    let memory = memory("memory", settings.memory(), default.memory)?;
    let processes = at_least("processes", 1, settings.processes())?;
    // Where a command has no limit, all of them have none, unless there is a setting for it.
    let all_memory = match memory {
        Memory::Unlimited => Memory::Unlimited,
        _ => default.per_owner.memory,
    };
    let all_processes = match settings.processes_per_client() {
        Some(number) => at_least("processes_per_client", LEAST_TOGETHER, number)?,
        None => processes.and(default.per_owner.processes),
    };
    Ok(Limits {
        memory,
        processes,
        per_owner: OwnerLimits {
            memory: self::memory("memory_per_client", settings.memory_per_client(), all_memory)?,
            processes: all_processes,
            ..default.per_owner
        },
        open_files: at_least("open_files", LEAST_FILES, settings.open_files())?,
        file_size: at_least("file_size", 1, settings.file_size().0)?,
        cpu_time: at_least("cpu_time", 1, settings.cpu_time())?.map(Duration::from_secs),
        nice: match settings.nice() {
            nice @ 0..=19 => nice,
            nice => return Err(SetupError::Nice { nice }),
        },
        ..default
    })
}

/// A limit, for which 0 stands for none.
fn at_least(name: &'static str, least: u64, wanted: u64) -> Result<Option<u64>, SetupError> {
    match wanted {
        0 => Ok(None),
        wanted if wanted < least => Err(SetupError::TooLow { name, least }),
        wanted => Ok(Some(wanted)),
    }
}

fn memory(name: &'static str, wanted: Option<Size>, unset: Memory) -> Result<Memory, SetupError> {
    let Some(Size(bytes)) = wanted else { return Ok(unset) };
    Ok(at_least(name, LEAST_MEMORY, bytes)?.map_or(Memory::Unlimited, Memory::Bytes))
}
