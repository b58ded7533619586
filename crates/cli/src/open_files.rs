//! How many files this process may have open.

use mcpz_engine::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides those of commands and connections.
const ALWAYS: u64 = 256;

/// Files that a command keeps open in the server: its keeper's socket, pipes, output.
const PER_COMMAND: u64 = 8;

/// Raises the limit as far as it goes; commands keep the old one. Returns how many connections to accept: if
/// there are too few files for all, three quarters of them are left to commands.
pub fn raise_limit(settings: &mut Settings, connections: usize) -> usize {
    let (limit, runs) = (getrlimit(Resource::Nofile), settings.runs);
    let commands =
        [runs.total, runs.jobs, runs.sessions].into_iter().fold(0, usize::saturating_add);
    let all = PER_COMMAND.saturating_mul(commands as u64).saturating_add(ALWAYS);
    let wanted = all.saturating_add(connections as u64);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        settings.limits.open_files_soft = limit.current;
    }
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < wanted => connections.min((most / 4).max(1) as usize),
        _ => connections,
    }
}
