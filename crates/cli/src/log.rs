//! Log lines on standard error, never on standard output: that belongs to the protocol.
//!
//! Whoever started us may not read them, and then a pipe fills up: lines are dropped, and nothing
//! waits.

use std::io::{self, Stderr, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What can be written to a pipe that has room, without waiting.
const PIECE: usize = 4096;

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
        .with_writer(|| Hasty(io::stderr()))
        .with_ansi(false)
        .with_target(false);
    let level = match detail {
        Detail::Runs => LevelFilter::INFO,
        Detail::Everything => LevelFilter::DEBUG,
    };
    let ours = Targets::new().with_target("mcpz", level);
    tracing_subscriber::registry().with(lines).with(ours).init();
}

/// Says something to whoever started us, whether or not there is a log.
pub fn warn(text: &str) {
    let _ = writeln!(Hasty(io::stderr()), "mcpz: warning: {text}");
}

/// Writes what there is room for.
struct Hasty(Stderr);

impl Write for Hasty {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = self.0.lock();
        for piece in line.chunks(PIECE) {
            let mut room = [PollFd::new(&stderr, PollFlags::OUT)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut room, Some(&at_once)).unwrap_or(0) == 0 {
                break;
            }
            stderr.write_all(piece)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
