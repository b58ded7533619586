//! What a server writes to standard error. Standard output belongs to the protocol.
//!
//! Lines for people or, with `--log-format json`, objects for programs and nothing else, from the first warning
//! to the reason why the server ends. A token that was generated is never among those objects, because logs are
//! kept and passed on: a person at a terminal sees it, or nobody. A client may not read what is written here, and
//! then the pipe fills up: lines are dropped, and nothing waits.

mod json;

use std::error::Error;
use std::fmt;
use std::io::{self, Stderr, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpz_audit::visible;
use mcpz_runtime::with_causes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The most that a pipe with room takes without blocking.
const PIECE: usize = 4096;

/// How tokio panics if it cannot start a thread.
const NO_THREAD: &str = "OS can't spawn worker thread";

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What an operator has to look at.
    Errors,
    /// Commands, and how they ended.
    Runs,
    Everything,
}

/// The format of everything that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Text,
    Json,
}

impl Format {
    /// Starts logging what mcpz itself does.
    pub fn start(self, detail: Detail) {
        let lines = match self {
            Self::Json => json::Lines.boxed(),
            Self::Text => tracing_subscriber::fmt::layer()
                .with_writer(|| NonBlocking(io::stderr()))
                .with_ansi(false)
                .with_target(false)
                .fmt_fields(Message)
                .boxed(),
        };
        let level = match detail {
            Detail::Errors => LevelFilter::ERROR,
            Detail::Runs => LevelFilter::INFO,
            Detail::Everything => LevelFilter::DEBUG,
        };
        let ours = Targets::new().with_target("mcpz", level);
        tracing_subscriber::registry().with(lines).with(ours).init();
    }

    /// Writes panics in the same format. If tokio cannot start a thread, it panics although the work is done
    /// anyway; that is a warning, once.
    pub fn catch_panics(self) {
        let (usual, warned) = (std::panic::take_hook(), Once::new());
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.to_string();
            if text.contains(NO_THREAD) {
                warned.call_once(|| {
                    self.warn("cannot start a thread: calls that wait for the disk delay others")
                });
            } else if self == Self::Json {
                let _ = io::stderr().write_all(&self.line(Level::ERROR, "", &text));
            } else {
                usual(panic);
            }
        }));
    }

    /// Writes a line, even if nothing is logged.
    pub fn say(self, text: &str) {
        let _ = NonBlocking(io::stderr()).write_all(&self.line(Level::INFO, "", text));
    }

    pub fn warn(self, text: &str) {
        let _ = NonBlocking(io::stderr()).write_all(&self.line(Level::WARN, "warning: ", text));
    }

    /// Writes why the program ends, with all causes.
    pub fn error(self, error: &dyn Error) {
        let text = with_causes(error);
        // It may block: nobody waits for us any more.
        let _ = io::stderr().write_all(&self.line(Level::ERROR, "", &text));
    }

    fn line(self, level: Level, kind: &str, text: &str) -> Vec<u8> {
        match self {
            Self::Text => format!("mcpz: {kind}{text}\n").into_bytes(),
            Self::Json => json::line(level, "mcpz", text, Default::default()),
        }
    }
}

/// Formats an event as its message, on one line. Its other fields tell programs the same.
struct Message;

impl<'w> FormatFields<'w> for Message {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let (message, _) = json::read(&fields);
        writer.write_str(&visible(&message))
    }
}

/// Whether the last line on stderr was cut off. Static, as there is only one stderr.
static UNFINISHED: AtomicBool = AtomicBool::new(false);

/// Writes as much as there is room for, without blocking.
struct NonBlocking(Stderr);

impl Write for NonBlocking {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = self.0.lock();
        for piece in line.chunks(PIECE) {
            let mut room = [PollFd::new(&stderr, PollFlags::OUT)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut room, Some(&at_once)).unwrap_or(0) == 0 {
                break;
            }
            if UNFINISHED.load(Ordering::Relaxed) && piece.as_ptr() == line.as_ptr() {
                stderr.write_all(b"\n")?;
            }
            stderr.write_all(piece)?;
            UNFINISHED.store(!piece.ends_with(b"\n"), Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
