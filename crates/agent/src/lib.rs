//! The process that starts and ends all others, and how to talk to it.
//!
//! [`serve_stdin`] is the agent's whole life; [`Link`] is the other side. This is the only crate
//! with `unsafe` code: starting a program and waiting for it cannot be done without.

#![expect(unsafe_code, reason = "processes are made of system calls")]

mod agent;
mod alone;
mod cgroup;
mod child;
mod ends;
mod frame;
mod keeper;
mod limits;
mod link;
mod process;
mod signals;
mod tree;
mod watch;
mod wire;

pub use agent::{AgentError, serve_stdin};
pub use alone::{Given, Keep, kill_all_below, stand_alone};
pub use cgroup::Groups;
pub use frame::{
    ANSWERS_FD, Directory, Enclosed, Exit, Failure, FrameError, MAX_FRAME, ORDERS_FD, Program,
    Spawn, Stage, Status, Stdin, Usage, decode, encode,
};
pub use limits::{Limit, Limits, Memory};
pub use link::{Link, LinkError};
pub use process::{Happening, Process, Started};
pub use tree::descendants;
