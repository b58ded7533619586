//! Starts, watches and ends processes, outside of the server's own process. Linux only.
//!
//! The server never forks: it may have many threads and much memory, so a fork would be slow and, between threads,
//! dangerous. It starts an agent, the same binary as a small process with one thread, which forks keepers. A keeper
//! starts one program at a time and stays until nothing of it is left. A detached job has a recorder instead of a
//! server and an agent.
//!
//!     server: Link ══ AgentRequest, AgentEvent ══ agent        serve_stdin
//!               │                                   ├─ keeper ─ program, and all it starts
//!            Process ══ KeeperRequest, KeeperEvent ═╛
//!
//!     recorder: OwnKeeper, Process ════════════════ keeper ─ program
//!
//! A run's stdio are pipes or a terminal that the keeper creates; the server reads and writes them directly. Creating
//! processes needs `unsafe` code, which is why this crate may have it.
//!
//! Server, agent, keepers and recorders are not dumpable, so no command can read their memory or environment. The
//! price: unless it is root's, such a process cannot read its own `/proc/self/auxv` either. rustix reads that file
//! before Linux 6.4 and panics if it cannot, unless it asks libc instead (its feature `use-libc-auxv`).
//!
//! # What ends a run, and why nothing survives it
//!
//!     what happens             who notices                   what follows
//!     ───────────────────────  ────────────────────────────  ─────────────────────────────────────────────────────
//!     timeout, cancellation    the run's task in the server  `Kill`: SIGTERM and SIGCONT to the whole tree, and
//!                                                            after the grace SIGKILL until no child is left
//!     the client closes stdin  the server                    It answers open calls, within `finish_time` and while
//!                                                            the client reads. Then it closes as below and also
//!                                                            answers the calls that this ended.
//!     SIGTERM, SIGINT, SIGHUP  the server                    It hangs up on all keepers and the agent, and waits
//!     to the server                                          until the agent has exited.
//!     the server is killed     the agent: its stream ends    It ends all runs at once, with SIGKILL after 200 ms. A
//!     or hangs up                                            keeper exits once nothing is left below it. It ends its
//!                                                            run itself if the agent is gone, or has not done so
//!                                                            after 20 s.
//!     the agent is killed      the server: the stream ends,  It hangs up on all keepers, and each ends its run,
//!                              or the pidfd tells            which counts as lost. It clears the agent's cgroups
//!                                                            and starts another agent for the next run, and for
//!                                                            runs whose keeper had not read the request.
//!     the agent is killed      the server, by SIGCHLD: it    It kills and reaps them (`children.rs`).
//!     with its keepers, or a   is a subreaper and inherits
//!     recorder with its keeper their processes
//!     the agent or a keeper    the server, the agent or the  SIGCONT; in a sandbox, to all our processes found
//!     is stopped               recorder, by SIGCHLD; the     there. If the agent was killed, the server continues
//!                              server, when it closes or a   to resume its keepers, for 5 s at most.
//!                              keeper has not reported a
//!                              start after 250 ms; a keeper
//!                              whose server is gone; the
//!                              kernel, when the parent ends
//!                              (`PR_SET_PDEATHSIG`)
//!     a keeper is killed       the kernel, the agent         The first process dies with its parent
//!                                                            (`PR_SET_PDEATHSIG`). The others become children of
//!                                                            the agent, a subreaper too, which kills them before
//!                                                            the run is reported as lost.
//!     the server is killed     the supervisor of that        It ends the program, if that does not end by itself
//!     while a program leads    program: its stream ends      within 5 s.
//!     to a place
//!     the server of a          nobody                        Nothing: the recorder continues.
//!     detached job ends
//!     a recorder is killed     its keeper: its stream ends   It ends the tree; the job is lost.
//!     a recorder's keeper      the recorder: its stream      It kills the tree; the job is lost.
//!     is killed                ends

#![expect(unsafe_code, reason = "processes are made of system calls")]

mod agent;
mod agent_process;
mod ancestry;
mod beneath;
mod cgroup;
mod children;
mod descriptor;
mod error;
mod exec_lock;
mod exec_rules;
mod frame;
mod git_configs;
mod inspect;
mod keeper;
mod keeper_count;
mod launcher;
mod limit_watch;
mod limits;
mod link;
mod listening;
mod lookup;
mod maker;
mod marker;
mod memory;
mod near_link;
mod near_process;
mod oom_score;
mod own_program;
mod pool;
mod process;
mod process_event;
mod recorder;
mod signal_names;
mod signals;
mod socket;
mod spawn_frame;
mod stdio;
mod stream;
mod supervise;
mod tree;
mod usage;

pub use agent::{AgentError, serve_stdin};
pub use ancestry::{Ancestry, Identity, ProcessHandle, Supervisor};
pub use beneath::{BeneathError, matching_roots, open_beneath};
pub use cgroup::AgentCgroups;
pub use children::{inherit_orphans, keep_awake, start as start_child, wait as wait_for_child};
pub use descriptor::{is_all_read, path_of};
pub use error::LinkError;
pub use exec_lock::can_lock;
pub use exec_rules::{
    AllowedCall, AllowedProgram, Argument, CallLimit, EncodedRules, ExecRules, MayRun,
    RefusedBecause, RefusedExec,
};
pub use frame::{
    Attached, Confinement, Directory, Exit, Failure, FrameError, MAX_FRAME, Program, REPLY_FD,
    Spawn, Stage, Status, Stdin, Usage, decode, encode,
};
pub use git_configs::SharedConfig;
pub use inspect::{Answer, InputMode, InputReader, Question};
pub use limits::{CpuShare, Limit, Limits, Memory, OwnerLimits};
pub use link::Link;
pub use lookup::{Absent, Found, Lookup, look_up};
pub use maker::{InvalidMaker, Maker, MakerState};
pub use memory::{give_memory_back, release_code_pages, return_large_blocks_at_once};
pub use own_program::{OWN_PROGRAM, program_path};
pub use pool::FIRST_OWNER;
pub use process::Process;
pub use process_event::{ProcessEvent, Started};
pub use recorder::{InheritedStdio, OwnKeeper, daemonize};
pub use signal_names::{signal_name, signal_number};
pub use spawn_frame::{SpawnFrame, Unsent};
#[cfg(fuzzing)]
pub use stream::play_place;
pub use stream::{
    Broken, FarLink, PlaceFacts, RelayError, StreamError, TOKEN_LENGTH, WELCOME, serve_stream,
};
pub use supervise::supervise;
