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
    /// What commands may use, and how many may run.
    pub struct Limits {
        /// The most output to keep of one command.
        spill_per_run: Size = Size(SpillSettings::new("").per_run);

        /// The most output to keep of one client; its oldest is deleted first.
        spill_per_client: Option<Size> = None, words: "half of `spill_total`";

        /// The most output to keep in total; the oldest of the client with the most is deleted first.
        spill_total: Size = Size(SpillSettings::new("").total);

        /// Seconds that output can be read after its command has ended.
        spill_time: u64 = 3600;

        /// The most memory for the waiting requests and answers of all clients.
        message_memory: Size = Size(MemoryLimits::default().total as u64);

        /// The same for one client; at the limit, the server stops reading from it.
        message_memory_per_client: Option<Size> = None, words: "a quarter of `message_memory`";

        /// Commands that run at once; others wait.
        runs: usize = RunLimits::default().total;

        /// Commands of one client that run at once.
        runs_per_client: usize = RunLimits::default().per_owner;

        /// Commands that wait; more are refused and told to try again.
        waiting: usize = RunLimits::default().waiting;

        /// Jobs of one client that run at once.
        jobs: usize = RunLimits::default().jobs;

        /// Shell sessions of one client.
        sessions: usize = RunLimits::default().sessions;

        /// Seconds until an unused job or shell session is ended; 0 for never.
        idle: u64 = RunLimits::default().idle.map_or(0, |time| time.as_secs());

        /// The most memory a command may use; 0 for no limit.
        memory: Option<Size> = None,
            words: "80 % of the machine's",
            flag: Flag {
                value: Some("SIZE"),
                ..Flag::new(
                    "memory",
                    Bounds(9),
                    "Memory limit of a command, such as 2GB; 0 for none [default: 80 %]",
                )
            };

        /// The most processes and threads of one command; 0 for no limit.
        processes: u64 = ProcessLimits::default().processes.unwrap_or(0);

        /// The most memory that one client may use, if cgroups can limit it; 0 for no limit.
        memory_per_client: Option<Size> = None, words: "80 % of the machine's";

        /// The most processes and threads of one client together, if cgroups can limit them; 0 for no limit.
        processes_per_client: Option<u64> = None,
            like: ProcessLimits::default().per_owner.processes.unwrap_or(0);

        /// The most open files of one process; 0 for the limit that the server was started with.
        open_files: u64 = ProcessLimits::default().open_files.unwrap_or(0),
            words: "the limit that the server was started with";

        /// The largest file a command may write; 0 for no limit.
        file_size: Size = Size(ProcessLimits::default().file_size.unwrap_or(0)), words: "no limit";

        /// Seconds of CPU time for all processes of a command together; 0 for no limit.
        cpu_time: u64 = ProcessLimits::default().cpu_time.map_or(0, |time| time.as_secs()), words: "no limit";

        /// The niceness of commands, from 0 (highest priority) to 19 (lowest).
        nice: u8 = ProcessLimits::default().nice;
    }
}
