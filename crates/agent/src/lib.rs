//! Starts, watches and ends processes, outside of the server's own process.
//!
//! The server never forks. It starts an agent, a small process that forks keepers; a keeper starts one program at a
//! time and stays until nothing of it is left. A detached job has a recorder instead of a server and an agent.
//!
//!     server: Link ══ AgentRequest, AgentEvent ══ agent        serve_stdin
//!               │                                   ├─ keeper ─ program, and all it starts
//!            Process ══ KeeperRequest, KeeperEvent ═╛
//!
//!     recorder: OwnKeeper, Process ════════════════ keeper ─ program
//!
//! A run's stdio are pipes or a terminal that the keeper creates; the server reads and writes them directly. Creating
//! processes needs `unsafe` code, which is why this crate may have it.

#![expect(unsafe_code, reason = "processes are made of system calls")]

mod agent;
mod agent_process;
mod ancestry;
mod cgroup;
mod descriptor;
mod error;
mod frame;
mod inspect;
mod keeper;
mod keeper_count;
mod launcher;
mod limit_watch;
mod limits;
mod link;
mod marker;
mod memory;
mod oom_score;
mod pool;
mod process;
mod recorder;
mod signals;
mod socket;
mod spawn_frame;
mod stdio;
mod tree;
mod usage;

pub use agent::{AgentError, serve_stdin};
pub use ancestry::{Ancestry, Identity, ProcessHandle, Supervisor};
pub use cgroup::AgentCgroups;
pub use descriptor::{is_all_read, path_of};
pub use error::LinkError;
pub use frame::{
    Attached, CONTROL_FD, Confinement, Directory, Exit, Failure, FrameError, MAX_FRAME, Program,
    REPLY_FD, Spawn, Stage, Status, Stdin, Usage, decode, encode,
};
pub use inspect::{Answer, Question, Reader};
pub use limits::{CpuShare, Limit, Limits, Memory, OwnerLimits};
pub use link::{Link, Unsent};
pub use memory::{give_memory_back, release_code_pages, return_large_blocks_at_once};
pub use pool::FIRST_OWNER;
pub use process::{Process, ProcessEvent, Started};
pub use recorder::{InheritedStdio, OwnKeeper, daemonize};
pub use spawn_frame::SpawnFrame;
