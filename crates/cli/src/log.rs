//! Log lines on standard error, never on standard output: that belongs to the protocol.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging what mcpz itself does. Without this, nothing is logged.
pub fn start() {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let ours = Targets::new().with_target("mcpz", LevelFilter::DEBUG);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
