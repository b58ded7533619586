//! Small parts for the crates that use tokio: threads for blocking work, deferred work, random names, and messages
//! of errors with their causes.
//!
//!     spawn_blocking(work) ─▶ a thread, or the caller's ─▶ result
//!     Later::add(work) ─▶ done when the runtime is idle

mod blocking;
mod causes;
mod later;
mod random;

pub use blocking::{Blocking, spawn_blocking};
pub use causes::with_causes;
pub use later::Later;
pub use random::{random_bits, random_name};
