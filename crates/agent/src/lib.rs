//! The process that starts and ends all others, and how to talk to it.
//!
//! [`serve_stdin`] is the agent's whole life; [`Link`] is the other side. Starting a
//! program and waiting for it cannot be done without `unsafe` code.

#![expect(unsafe_code, reason = "processes are made of system calls")]

mod agent;
mod agent_process;
mod alone;
mod ancestry;
mod cgroup;
mod child;
mod code;
mod crowd;
mod ends;
mod error;
mod frame;
mod heap;
mod keeper;
mod limits;
mod link;
mod look;
mod mark;
mod opened;
mod pool;
mod process;
mod signals;
mod tally;
mod tree;
mod unread;
mod watch;
mod wire;

pub use agent::{AgentError, serve_stdin};
pub use alone::{Given, Keep, stand_alone};
pub use ancestry::{Ancestry, Held, Identity, Supervisor};
pub use cgroup::Groups;
pub use code::forget as forget_code;
pub use error::LinkError;
pub use frame::{
    ANSWERS_FD, Confinement, Directory, Enclosed, Exit, Failure, FrameError, MAX_FRAME, ORDERS_FD,
    Program, Spawn, Stage, Status, Stdin, Usage, decode, encode,
};
pub use heap::{give_memory_back, return_large_blocks_at_once};
pub use limits::{CpuShare, Limit, Limits, Memory, Together};
pub use link::{Link, Unsent};
pub use look::{Question, Reader, Seen};
pub use opened::path_of;
pub use pool::FIRST_OWNER;
pub use process::{Happening, Letter, Process, Started};
pub use unread::is_all_read;
