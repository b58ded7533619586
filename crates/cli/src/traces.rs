//! Traces for a collector of OpenTelemetry, if the environment names one.
//!
//!     calls ─▶ Spans ─▶ thread ─ batch ─▶ OTLP over HTTP
//!
//! A thread of its own sends them, so that no call waits for a collector, be it slow, broken or not
//! there. What it cannot send it counts and drops. Without a collector there is neither.

mod protobuf;
mod sending;
mod settings;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcpz_server::Spans;
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::config::variable;
use crate::log::Format;
pub use settings::pairs;

use sending::Sending;
use settings::Settings;

/// How long what is left may take when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Sends traces until it is told to stop.
pub struct Traces {
    pub spans: Arc<Spans>,
    closing: watch::Sender<bool>,
    /// Gone when the thread is.
    ended: Receiver<()>,
}

impl Traces {
    /// Begins to, if that is wanted and can be done.
    pub fn begin(log: Format) -> Option<Self> {
        let read = |name: &str| variable(name)?.into_string().ok();
        let settings = match Settings::read(read) {
            Ok(settings) => settings?,
            Err(error) => {
                log.warn(&format!("no traces are sent: {error}"));
                return None;
            }
        };
        if let Some(name) = settings.json_variable {
            log.warn(&format!(
                "{name} is `http/json`, but mcpz sends traces as http/protobuf; set it to http/protobuf, or \
                 leave it unset"
            ));
        }
        let (spans, (closing, closed)) = (Arc::new(Spans::default()), watch::channel(false));
        let (end, ended) = channel();
        let sending = Sending::new(settings, spans.clone(), closed, log);
        let thread = std::thread::Builder::new().name("traces".into()).spawn(move || {
            if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
                runtime.block_on(sending.go_on());
            }
            drop(end);
        });
        match thread {
            Ok(_) => Some(Self { spans, closing, ended }),
            Err(error) => {
                log.warn(&format!("no traces are sent: there is no thread for them: {error}"));
                None
            }
        }
    }

    /// Sends what is left, if that can be done at once.
    pub fn finish(self) {
        self.closing.send_replace(true);
        let _ = self.ended.recv_timeout(LAST_WORDS);
    }
}
