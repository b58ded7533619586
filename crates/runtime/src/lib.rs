//! What every process of ours needs besides tokio: threads for blocking work, deferred work, random names, and errors
//! with their causes.

mod aside;
mod causes;
mod later;
mod random;

pub use aside::{Aside, aside};
pub use causes::with_causes;
pub use later::Later;
pub use random::{random_bits, random_name};
