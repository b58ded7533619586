//! How many connections a proxy serves, and how much time and memory each may take.

use std::time::Duration;

/// What a command may cost the proxy that serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Served at once; further clients wait until one of them disconnects.
    pub connections: usize,
    /// The size of the head of a request or a response.
    pub head_bytes: usize,
    /// The number of fields in a head.
    pub fields: usize,
    /// How long a head may take to arrive, and how long a client may wait before it sends one.
    pub head_time: Duration,
    /// How long the lookup of a name may take.
    pub lookup_time: Duration,
    /// How long a connection to one address may take; a name can have several.
    pub connect_time: Duration,
    /// How long a connection to a server stays open while no byte moves in either direction.
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
