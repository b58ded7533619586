//! What commands may reach, as the kernel enforces it.
//!
//! There are two rings. The outer one is made once: an agent is started by `bwrap` in namespaces of
//! its own, where it sees the machine as a [`View`] has it. The inner one is a [`Seal`] that each
//! command puts on itself between fork and exec: Landlock, and a filter of system calls. What
//! one of them lets through the other is there to stop.
//!
//!     View ─ survey ─▶ Layout ─┬─ command line ─▶ bwrap ─▶ agent ─▶ command   mounts, namespaces
//!                              └─ Terms ─▶ Seal ─────────────────────▶ ┘      Landlock, seccomp
//!
//! A [`Layout`] is true for the moment it was made: `bwrap` mounts over files that are there, and
//! whoever replaces such a file outside takes the mount away with it. [`Layout::change`] tells, and
//! then the ring has to be made anew.

#![expect(unsafe_code, reason = "a seal is made of system calls")]

mod closed;
mod filter;
mod layout;
mod names;
mod placeholders;
mod probe;
mod ring;
mod seal;
mod sockets;
mod trial;
mod version;
mod view;

pub use filter::Around;
pub use layout::{Cover, Layout};
pub use names::WAYS_OUT;
pub use placeholders::Placeholders;
pub use probe::{Ground, Obstacle, Rung};
pub use ring::{Entrance, Ring};
pub use seal::{Seal, SealError, Terms};
pub use trial::{Hole, trial};
pub use version::Version;
pub use view::{Mode, Network, View, ViewError};
