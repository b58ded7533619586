//! Small parts for the crates that use tokio: threads for blocking work, deferred work, random names, folders of our
//! own, and messages of errors with their causes.
//!
//!     spawn_blocking(work) ─▶ a thread, or the caller's ─▶ result
//!     Later::add(work) ─▶ done when the runtime is idle

mod blocking;
mod causes;
mod later;
mod private_folder;
mod random;

pub use blocking::{Blocking, spawn_blocking};
pub use causes::with_causes;
pub use later::Later;
pub use private_folder::PrivateFolder;
pub use random::{random_bits, random_name};
