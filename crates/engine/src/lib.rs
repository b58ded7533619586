//! Runs commands. Has not heard of MCP, HTTP or configuration files.
//!
//!     RunRequest ─▶ gate ─Cleared▶ agent ─pipes▶ run task ─▶ Output
//!                   │  ╲                             │
//!              Refused  audit trail ◀──────────── Outcome

mod bounds;
mod channel;
mod desk;
mod detached;
mod enclosure;
mod engine;
mod error;
mod feeder;
mod gate;
mod interpreter;
mod jobs;
mod outcome;
mod request;
mod run;
mod sessions;
mod similar;
mod stats;
mod store;
mod surroundings;
mod turns;
mod variables;
mod witness;

pub use desk::{Listed, Refusal, Refused, Tell, Visit, Wanted};
pub use detached::{Card, Ending, Shelf, Standing, record};
pub use enclosure::Confining;
pub use engine::{Engine, MAX_TIMEOUT, Settings};
pub use error::Error;
pub use interpreter::Absent;
pub use jobs::{
    Condition, Ended, Job, Jobs, Met, Place, Reserved, STOP_GRACE, State, Typing, wait,
};
pub use mcpz_agent::{
    CpuShare, Limit, Limits, Memory, OwnerLimits, give_memory_back, is_all_read, path_of,
};
pub use mcpz_policy::{Denial, Policy};
pub use outcome::{Closing, End, Outcome, Usage, signal_name, signal_number};
pub use request::{Command, Input, Origin, RunRequest, Size};
pub use run::{Life, Remote, Run, Saying};
pub use sessions::{SessionState, Sessions};
pub use similar::is_only_in_bash;
pub use stats::{ENDS, Latency, RANGES, Stats};
pub use store::{Found, Owner};
pub use surroundings::{Login, Settle, Surroundings, tell};
pub use turns::RunLimits;
pub use variables::Variables;
pub use witness::{Account, Witness};
