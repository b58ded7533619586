//! Runs commands, one by one, as jobs or in sessions, once policy and audit trail have let them pass. Knows nothing of
//! MCP, HTTP or configuration files.
//!
//!     RunRequest ─▶ gate ─Cleared▶ agent ─pipes▶ run task ─▶ Output
//!                   │  ╲                             │
//!              Refused  audit trail ◀──────────── Outcome
//!
//! A command that runs in the foreground is a [`Run`]. One nobody waits for is a [`Job`]: it was started as one, handed
//! over by its caller, or left behind by a command that ended. A session is a job whose shell takes commands.

mod bounds;
mod control;
mod detached;
mod engine;
mod environment;
mod error;
mod exec_rules;
mod gate;
mod jobs;
mod observer;
mod open_place;
mod outcome;
mod owner;
mod owner_identity;
mod place_settings;
mod places;
mod ready_places;
mod request;
mod resolved;
mod run;
mod sandbox;
mod sessions;
mod settings;
mod similar;
mod stats;
mod turns;
mod variables;

// The engine, and what it is made with.
pub use engine::Engine;
pub use environment::{Environment, Login, ResolveLogin, report_variables};
pub use place_settings::PlaceSettings;
pub use settings::{CacheSettings, RunLimits, SandboxSettings, Settings};
pub use stats::Latency;
pub use variables::Variables;

// Who asks, and for what.
pub use observer::{Finished, Observer};
pub use owner::{KeptOutput, Owner};
pub use request::{Command, Input, Origin, RunRequest, TerminalSize};

// What comes of it.
pub use error::Error;
pub use mcpz_agent::{Absent, Limit};
pub use outcome::{Closing, End, Outcome};
pub use run::{Run, RunAction};

// Commands that go on.
pub use jobs::{Condition, Job, JobEnd, JobOutcome, JobState, Met, Position, Typing};

// Jobs of other processes.
pub use control::{
    AccessDenied, Connection, ControlReply, JobListing, OutputRange, PeerRefusal, PlaceListing,
};
pub use detached::{JobFolder, JobsFolder, record};
