//! Log lines on standard error, never on standard output: that belongs to the protocol.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What is run, and what came of it.
    Runs,
    Everything,
}

/// Starts logging what mcpz itself does. Without this, nothing is logged.
pub fn start(detail: Detail) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let level = match detail {
        Detail::Runs => LevelFilter::INFO,
        Detail::Everything => LevelFilter::DEBUG,
    };
    let ours = Targets::new().with_target("mcpz", level);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
