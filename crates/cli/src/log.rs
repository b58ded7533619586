//! What a server says on standard error, never on standard output: that belongs to the protocol.
//!
//! Lines for people or, with `--log-format json`, objects for programs: then nothing else is said
//! there. Whoever started us may not read them, and then a pipe fills up: lines are dropped, and
//! nothing waits.

mod json;

use std::error::Error;
use std::fmt;
use std::io::{self, Stderr, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpz_audit::visible;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What can be written to a pipe that has room, without waiting.
const PIECE: usize = 4096;

/// How the runtime panics that cannot make a thread.
const NO_THREAD: &str = "OS can't spawn worker thread";

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What somebody has to see to.
    Faults,
    /// What is run, and what came of it.
    Runs,
    Everything,
}

/// The form of all that is said.
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
                .with_writer(|| Hasty(io::stderr()))
                .with_ansi(false)
                .with_target(false)
                .fmt_fields(Message)
                .boxed(),
        };
        let level = match detail {
            Detail::Faults => LevelFilter::ERROR,
            Detail::Runs => LevelFilter::INFO,
            Detail::Everything => LevelFilter::DEBUG,
        };
        let ours = Targets::new().with_target("mcpz", level);
        tracing_subscriber::registry().with(lines).with(ours).init();
    }

    /// Has panics said in the same form. That no thread can be made is one for the runtime alone: what
    /// it could not put aside is done all the same, and is said once.
    pub fn catch_panics(self) {
        let (usual, told) = (std::panic::take_hook(), Once::new());
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.to_string();
            if text.contains(NO_THREAD) {
                told.call_once(|| {
                    self.warn("no thread can be made: what waits for a disk holds up others")
                });
            } else if self == Self::Json {
                let _ = io::stderr().write_all(&self.line(Level::ERROR, "", &text));
            } else {
                usual(panic);
            }
        }));
    }

    /// Says something to whoever started us, whether or not there is a log.
    pub fn say(self, text: &str) {
        let _ = Hasty(io::stderr()).write_all(&self.line(Level::INFO, "", text));
    }

    pub fn warn(self, text: &str) {
        let _ = Hasty(io::stderr()).write_all(&self.line(Level::WARN, "warning: ", text));
    }

    /// Says why we end, with all causes.
    pub fn complain(self, error: &dyn Error) {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        // Nobody is kept waiting any more.
        let _ = io::stderr().write_all(&self.line(Level::ERROR, "", &text));
    }

    fn line(self, level: Level, kind: &str, text: &str) -> Vec<u8> {
        match self {
            Self::Text => format!("mcpz: {kind}{text}\n").into_bytes(),
            Self::Json => json::line(level, "mcpz", text, Default::default()),
        }
    }
}

/// Shows of an event what it says, on one line. Its other fields say the same to programs.
struct Message;

impl<'w> FormatFields<'w> for Message {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let (message, _) = json::read(&fields);
        writer.write_str(&visible(&message))
    }
}

/// Whether the last line on stderr, of which there is one, has no end.
static TORN: AtomicBool = AtomicBool::new(false);

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
            if TORN.load(Ordering::Relaxed) && piece.as_ptr() == line.as_ptr() {
                stderr.write_all(b"\n")?;
            }
            stderr.write_all(piece)?;
            TORN.store(!piece.ends_with(b"\n"), Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
