//! Runs commands. Has not heard of MCP, HTTP, configuration files or terminals.
//!
//!     RunRequest ─▶ gate ─Cleared▶ agent ─pipes▶ run task ─▶ Output
//!                     │                              │
//!                  Refused                        Outcome

mod channel;
mod engine;
mod error;
mod gate;
mod nature;
mod outcome;
mod output;
mod page;
mod render;
mod request;
mod run;
mod spill;
mod text;

pub use engine::{Engine, MAX_TIMEOUT, Settings};
pub use error::Error;
pub use mcpz_policy::{Denial, Pattern, Policy};
pub use outcome::{End, Outcome, Usage, signal_name, signal_number};
pub use output::{Excerpt, Output, Stream};
pub use page::{Data, Page, PageRequest, Reader};
pub use render::{Newline, View};
pub use request::{Command, RunRequest};
pub use run::Run;
pub use spill::SpillSettings;
