//! How many files this process may have open.

use mcpz_engine::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Those that are open regardless of commands and connections.
const ALWAYS: u64 = 256;

/// What a command has open in the server: the way to its keeper, its pipes, its output.
const PER_COMMAND: u64 = 8;

/// Raises our limit of open files as far as we may; commands keep the old one. Returns how many connections
/// there may be: where files are scarce, three quarters of them are left to commands.
pub fn make_room(settings: &mut Settings, connections: usize) -> usize {
    let (limit, runs) = (getrlimit(Resource::Nofile), settings.runs);
    let commands =
        [runs.total, runs.jobs, runs.sessions].into_iter().fold(0, usize::saturating_add);
    let all = PER_COMMAND.saturating_mul(commands as u64).saturating_add(ALWAYS);
    let wanted = all.saturating_add(connections as u64);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        settings.limits.open_files_at_first = limit.current;
    }
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < wanted => connections.min((most / 4).max(1) as usize),
        _ => connections,
    }
}
