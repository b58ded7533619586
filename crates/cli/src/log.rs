//! Log lines on standard error, never on standard output: that belongs to the protocol.
//!
//! Lines are written by a thread of their own. Whoever started us may not read them, and then a
//! pipe fills up: lines are dropped, and nothing waits.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How many lines may wait to be written.
const WAITING: usize = 1024;

/// How long the last lines may take when the program ends.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What is run, and what came of it.
    Runs,
    Everything,
}

/// Keeps the log until it is dropped, when what was logged is written, if somebody takes it.
#[must_use]
pub struct Log {
    ending: SyncSender<Vec<u8>>,
    written: Receiver<()>,
}

/// Starts logging what mcpz itself does. Without this, nothing is logged.
pub fn start(detail: Detail) -> Log {
    let (lines, waiting) = sync_channel::<Vec<u8>>(WAITING);
    let (done, written) = channel();
    std::thread::spawn(move || {
        // An empty line is no line of ours: it says that there are no more.
        while let Some(line) = waiting.recv().ok().filter(|line| !line.is_empty()) {
            let _ = io::stderr().write_all(&line);
        }
        let _ = done.send(());
    });
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(Lines(lines.clone()))
        .with_ansi(false)
        .with_target(false);
    let level = match detail {
        Detail::Runs => LevelFilter::INFO,
        Detail::Everything => LevelFilter::DEBUG,
    };
    let ours = Targets::new().with_target("mcpz", level);
    tracing_subscriber::registry().with(layer).with(ours).init();
    Log { ending: lines, written }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.ending.try_send(Vec::new()).is_ok() {
            let _ = self.written.recv_timeout(LAST_WORDS);
        }
    }
}

/// Takes lines as they are logged.
#[derive(Clone)]
struct Lines(SyncSender<Vec<u8>>);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
