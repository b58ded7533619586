//! Confines commands to what they may see and change of the machine, by namespaces, Landlock and seccomp.
//!
//! There are two layers, because each stops what the other lets through. Bubblewrap starts the agent once, in
//! namespaces of its own, where it sees the machine as a [`View`] describes it. Each command then applies
//! [`Restrictions`] to itself between fork and exec: Landlock, and a filter of system calls.
//!
//!     layer             what it lets through when it is alone
//!     ────────────────  ──────────────────────────────────────────────────────────────────────────────────────────
//!     Landlock          UDP, MPTCP, sockets with a path (before its version 9), changes to the modes, owners and
//!                       extended attributes of files, the sight of other processes
//!     bubblewrap        AF_VSOCK, io_uring, connections to sockets on a read-only mount
//!
//! `crates/cli/tests/leaks` is a table of attempts to get out, all of which must fail.
//!
//!     View ─ survey ─▶ Layout ─┬─ Bubblewrap ──▶ bwrap ─▶ agent ─▶ keeper ─▶ command   mounts, namespaces
//!                              ├─ Home ────────▶ helper: mounts what commands see of the homes
//!                              ├─ Guard ───────▶ thread: takes away what commands must not create
//!                              └─ Permissions ─▶ Restrictions ─┴────────────────┘       Landlock, seccomp
//!
//! A [`Layout`] is valid for the moment it was made: `bwrap` mounts over files that exist, and if such a file is
//! replaced outside, Linux removes the mount. [`Layout::change`] detects that, and then the sandbox must be created
//! again. In homes files are replaced all the time, so they are built the other way round (`homes.rs`).

#![expect(unsafe_code, reason = "restrictions are made of system calls")]

mod bubblewrap;
mod caches;
mod closed;
mod git_config;
mod guard;
mod homes;
mod known_paths;
mod layout;
mod mounts;
mod restrictions;
mod seccomp;
mod sockets;
mod support;
mod trial;
mod view;

pub use bubblewrap::{Bubblewrap, PreparedCommand, Version};
pub use caches::{CacheUsage, Layer, clear_caches, limit_caches};
pub use git_config::may_become;
pub use guard::{Fate, Guard, Taken, WatchedGuard};
pub use homes::{HIDE, Home, HomesLook, HomesOrder, PROTECT, serve_homes};
pub use known_paths::SERVICE_VARIABLES;
pub use layout::{Cover, Layout};
pub use mounts::{Mount, mounts};
pub use restrictions::{Permissions, RestrictionError, Restrictions};
pub use seccomp::Isolation;
pub use support::{Obstacle, Protection, Support};
pub use trial::{Hole, trial};
pub use view::{Mode, Network, View, ViewError};
