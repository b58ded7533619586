//! `[limits]`: what commands may use, and how many there may be.

use mcpz_agent::Limits as ProcessLimits;
use mcpz_engine::RunLimits;
use mcpz_output::SpillSettings;
use mcpz_server::MemoryLimits;

use super::flag::Flag;
use super::flag::HelpPosition::Bounds;
use super::section::section;
use super::size::Size;

section! {
    /// What commands may use, and how many there may be.
    pub struct Limits {
        /// The most that is kept of one command's output.
        spill_per_run: Size = Size(SpillSettings::new("").per_run);

        /// The most that is kept of one client's outputs; its oldest goes first.
        spill_per_client: Option<Size> = None, words: "half of `spill_total`";

        /// The most that is kept of all outputs; the oldest of the client that has the most goes first.
        spill_total: Size = Size(SpillSettings::new("").total);

        /// Seconds an output can be read after its command ended.
        spill_time: u64 = 3600;

        /// The most memory that waiting requests and answers of all clients may take.
        message_memory: Size = Size(MemoryLimits::default().total as u64);

        /// The same for one client: at the limit no more is read of what it sends.
        message_memory_per_client: Option<Size> = None, words: "a quarter of `message_memory`";

        /// Commands that run at once; others wait for their turn.
        runs: usize = RunLimits::default().total;

        /// Commands of one client that run at once.
        runs_per_client: usize = RunLimits::default().per_owner;

        /// Commands that may wait; more are told to come again.
        waiting: usize = RunLimits::default().waiting;

        /// Jobs of one client that run at once.
        jobs: usize = RunLimits::default().jobs;

        /// Sessions of one client.
        sessions: usize = RunLimits::default().sessions;

        /// Seconds until a job or session that nobody uses is ended; 0 for never.
        idle: u64 = RunLimits::default().idle.map_or(0, |time| time.as_secs());

        /// The most memory a command may use; 0 for all there is.
        memory: Option<Size> = None,
            words: "80 % of it",
            flag: Flag {
                value: Some("SIZE"),
                ..Flag::new(
                    "memory",
                    Bounds(6),
                    "Most memory a command may use, such as 2GB; 0 for all [default: 80 %]",
                )
            };

        /// The most processes and threads of one command; 0 for any number.
        processes: u64 = ProcessLimits::default().processes.unwrap_or(0);

        /// What all commands of one client may use together, where a cgroup counts it; 0 for all there is.
        memory_per_client: Option<Size> = None, words: "80 % of it";

        /// How many processes and threads they may have together, where a cgroup counts them; 0 for any.
        processes_per_client: Option<u64> = None,
            like: ProcessLimits::default().per_owner.processes.unwrap_or(0);

        /// The most open files of one process; 0 for as many as the server was started with.
        open_files: u64 = ProcessLimits::default().open_files.unwrap_or(0),
            words: "as many as the server was started with";

        /// The longest file a command may write; 0 for any.
        file_size: Size = Size(ProcessLimits::default().file_size.unwrap_or(0)), words: "any";

        /// Seconds of CPU time, all processes of a command together; 0 for any.
        cpu_time: u64 = ProcessLimits::default().cpu_time.map_or(0, |time| time.as_secs()), words: "any";

        /// How much commands stand back for others, from 0 to 19.
        nice: u8 = ProcessLimits::default().nice;
    }
}
