//! Runs commands. Has not heard of MCP, HTTP or configuration files.
//!
//!     RunRequest ─▶ gate ─Cleared▶ agent ─pipes▶ run task ─▶ Output
//!                   │  ╲                             │
//!              Refused  audit trail ◀──────────── Outcome

mod audit;
mod bounds;
mod channel;
mod desk;
mod detached;
mod enclosure;
mod engine;
mod error;
mod excerpt;
mod feeder;
mod gate;
mod interpreter;
mod jobs;
mod json;
mod keys;
mod later;
mod mime;
mod nature;
mod outcome;
mod output;
mod page;
mod random;
mod reading;
mod render;
mod request;
mod room;
mod run;
mod screen;
mod search;
mod secrets;
mod sessions;
mod similar;
mod spill;
mod stats;
mod store;
mod surroundings;
mod text;
mod turns;
mod variables;
mod witness;
mod zip;

pub use audit::{
    AuditSettings, AuditTail, Defect, Escaping, Fault, Verified, audit_lines, rfc3339, verify,
    visible,
};
pub use desk::{Listed, Refusal, Refused, Tell, Visit, Wanted};
pub use detached::{Card, Ending, Shelf, Standing, record};
pub use enclosure::Confining;
pub use engine::{Engine, MAX_TIMEOUT, Settings};
pub use error::Error;
pub use excerpt::{Excerpt, shortened};
pub use interpreter::Absent;
pub use jobs::{
    Condition, Ended, Job, Jobs, Met, Place, Reserved, STOP_GRACE, State, Typing, wait,
};
pub use keys::{KEY_NAMES, key_bytes};
pub use later::Later;
pub use mcpz_agent::{
    CpuShare, Limit, Limits, Memory, Together, aside, give_memory_back, is_all_read, path_of,
};
pub use mcpz_policy::{Denial, Policy};
pub use mime::mime;
pub use outcome::{Closing, End, Outcome, Usage, signal_name, signal_number};
pub use output::{Excerpts, Output, Stream};
pub use page::{Data, Page, PageRequest, Reader, Stop};
pub use random::{random_bits, random_name};
pub use reading::Point;
pub use render::{Newline, View};
pub use request::{Command, Input, Origin, RunRequest, Size};
pub use room::{Measure, Room};
pub use run::{Life, Remote, Run, Saying};
pub use screen::Shown;
pub use search::{Filter, Summary};
pub use secrets::Secrets;
pub use sessions::{SessionState, Sessions};
pub use similar::is_only_in_bash;
pub use spill::SpillSettings;
pub use stats::{ENDS, Latency, RANGES, Stats};
pub use store::{Found, Owner};
pub use surroundings::{Login, Settle, Surroundings, tell};
pub use turns::RunLimits;
pub use variables::Variables;
pub use witness::{Account, Witness};
pub use zip::zip;
