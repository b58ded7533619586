//! Traces for an OpenTelemetry collector, if the environment names one.
//!
//!     calls ─▶ Spans ─▶ thread ─ batch ─▶ OTLP over HTTP
//!
//! The exporter has its own thread, so no call ever waits for a collector that is slow, broken or
//! unreachable. It counts and drops the spans that it cannot send. Without a collector there is no thread.
//!
//! It is our own code, over the client that also fetches keys (`fetch.rs`), because we need one message of OTLP.
//! OpenTelemetry's libraries would add about 20 crates, among them a runtime for batches and random numbers of
//! their own. The message is in Protocol Buffers, OTLP's default, which every collector accepts. gRPC is not
//! spoken: an environment that asks for it gets a warning, and no traces.

mod exporter;
mod protobuf;
mod settings;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcpz_server::Spans;
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::environment::variable;
use crate::log::Format;
pub use settings::pairs;

use exporter::Exporter;
use settings::Settings;

/// How long the server waits for the last spans to be sent when it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A running exporter.
pub struct Traces {
    pub spans: Arc<Spans>,
    closing: watch::Sender<bool>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Traces {
    /// Starts the exporter if the environment asks for traces. If that fails, the server works
    /// without them.
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
                "{name} is `http/json`, but mcpz sends traces as http/protobuf; set it to \
                 http/protobuf, or leave it unset"
            ));
        }
        let (spans, (closing, closed)) = (Arc::new(Spans::default()), watch::channel(false));
        let (end, ended) = channel();
        let exporter = Exporter::new(settings, spans.clone(), closed, log);
        let thread = std::thread::Builder::new().name("traces".into()).spawn(move || {
            if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
                runtime.block_on(exporter.run());
            }
            drop(end);
        });
        match thread {
            Ok(_) => Some(Self { spans, closing, ended }),
            Err(error) => {
                log.warn(&format!("no traces are sent: cannot start a thread for them: {error}"));
                None
            }
        }
    }

    /// Sends the spans that are left, if that takes no longer than [`FLUSH_TIMEOUT`].
    pub fn finish(self) {
        self.closing.send_replace(true);
        let _ = self.ended.recv_timeout(FLUSH_TIMEOUT);
    }
}
