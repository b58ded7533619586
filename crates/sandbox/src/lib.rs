//! What commands may reach, as the kernel enforces it.
//!
//! There are two rings. The outer one is made once: an agent is started by `bwrap` in namespaces of
//! its own, where it sees the machine as a [`View`] has it. The inner one is a [`Restrictions`] that each
//! command puts on itself between fork and exec: Landlock, and a filter of system calls. What
//! one of them lets through the other is there to stop.
//!
//!     View ─ survey ─▶ Layout ─┬─ command line ─▶ bwrap ─▶ agent ─▶ command   mounts, namespaces
//!                              └─ Permissions ─▶ Restrictions ─────────────────────▶ ┘      Landlock, seccomp
//!
//! A [`Layout`] is true for the moment it was made: `bwrap` mounts over files that are there, and
//! whoever replaces such a file outside takes the mount away with it. [`Layout::change`] tells, and
//! then the ring has to be made anew.

#![expect(unsafe_code, reason = "a seal is made of system calls")]

mod bubblewrap;
mod closed;
mod known_paths;
mod layout;
mod placeholders;
mod restrictions;
mod seccomp;
mod sockets;
mod support;
mod trial;
mod view;

pub use bubblewrap::{Bubblewrap, PreparedCommand, Version};
pub use known_paths::SERVICE_VARIABLES;
pub use layout::{Cover, Layout};
pub use placeholders::Placeholders;
pub use restrictions::{Permissions, RestrictionError, Restrictions};
pub use seccomp::Isolation;
pub use support::{Obstacle, Protection, Support};
pub use trial::{Hole, trial};
pub use view::{Mode, Network, View, ViewError};
