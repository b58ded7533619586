//! What one proxy may cost: connections, sizes and times.

use std::time::Duration;

/// What one proxy may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open at once; more wait for their turn.
    pub connections: usize,
    /// Of a request or an answer, without its body.
    pub head_bytes: usize,
    /// In a head.
    pub fields: usize,
    /// For a head to arrive.
    pub head_time: Duration,
    /// For a name to be found.
    pub lookup_time: Duration,
    /// For each address of a name.
    pub connect_time: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_bytes: 64 * 1024,
            fields: 128,
            head_time: Duration::from_secs(30),
            lookup_time: Duration::from_secs(15),
            connect_time: Duration::from_secs(10),
            idle: Duration::from_secs(15 * 60),
        }
    }
}
