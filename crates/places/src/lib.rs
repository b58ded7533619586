//! Where commands can run, other than on this machine.
//!
//!     Place ─ open ─▶ a byte stream to `mcpz agent --stream` in there ─▶ Opened: a link, facts, how to end it
//!
//! Each kind has a file, which makes a place, gets a byte stream to an agent inside, and ends it. Everything else is
//! the same for all of them, and happens on the two ends of the stream (`agent/src/stream.rs`).
//!
//!     process.rs  an agent on this machine, behind a stream     for tests and measurements
//!     ssh.rs      another host, by the user's own `ssh`
//!     slurm.rs    a step of a batch job
//!
//!     child.rs    the child process that these three talk through
//!     agent_file.rs  the program that becomes the agent

mod agent_file;
mod child;
mod error;
mod opening;
mod place;
mod process;
mod slurm;
mod ssh;

pub use error::PlaceError;
pub use opening::Opening;
pub use place::{Ending, Kind, Opened, Per, Place};
pub use slurm::Slurm;
pub use ssh::{InvalidHost, Ssh};
