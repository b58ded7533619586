//! Runs commands. Knows nothing of MCP, HTTP or configuration files.
//!
//!     RunRequest ─▶ gate ─Cleared▶ agent ─pipes▶ run task ─▶ Output
//!                   │  ╲                             │
//!              Refused  audit trail ◀──────────── Outcome
//!
//! A command that runs in the foreground is a [`Run`]. One nobody waits for is a [`Job`]: it was started as one, handed
//! over by its caller, or left behind by a command that ended. A session is a job whose shell takes commands.

mod bounds;
mod client;
mod control;
mod detached;
mod engine;
mod environment;
mod error;
mod gate;
mod interpreter;
mod jobs;
mod observer;
mod outcome;
mod owner;
mod request;
mod resolved;
mod run;
mod sandbox;
mod sessions;
mod settings;
mod signals;
mod similar;
mod stats;
mod turns;
mod variables;

pub use client::{Client, Found};
pub use control::{Connection, JobListing, OutputRange, Refusal, Refused, Reply};
pub use detached::{JobFolder, JobsFolder, record};
pub use engine::Engine;
pub use environment::{Environment, Login, ResolveLogin, report_variables};
pub use error::Error;
pub use interpreter::Absent;
pub use jobs::{
    Condition, EndState, Job, JobEnd, JobOutcome, Jobs, Met, Place, Reserved, STOP_GRACE, State,
    Typing, wait,
};
pub use mcpz_agent::Limit;
pub use observer::{Finished, Observer};
pub use outcome::{Closing, End, Outcome, SessionState};
pub use request::{Command, Input, Origin, RunRequest, Size};
pub use run::{Action, Life, Run};
pub use settings::{MAX_TIMEOUT, RunLimits, SandboxSettings, Settings};
pub use signals::{signal_name, signal_number};
pub use similar::is_only_in_bash;
pub use stats::{ENDS, Latency, RANGES, Stats};
pub use variables::Variables;
