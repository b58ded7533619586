//! When to send progress about a command, and what it says.

use std::time::Duration;

use mcpz_output::{Output, Stream};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The least time between two notifications.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long after the first output the first progress is sent: many commands have ended by then.
const FIRST: Duration = Duration::from_millis(50);

/// The most time between two notifications while the command prints nothing.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub struct Progress {
    token: ProgressToken,
    output: Output,
    streams: &'static [Stream],
    arrived: watch::Receiver<u64>,
    /// How many bytes of output the last notification counted.
    seen: u64,
    /// The last value that was sent: the bytes, and one for each notification without new ones.
    sent: u64,
    last: Option<Instant>,
    began: Instant,
}

impl Progress {
    pub fn new(token: ProgressToken, output: Output, streams: &'static [Stream]) -> Self {
        let (arrived, began) = (output.watch(), Instant::now());
        Self { token, output, streams, arrived, seen: 0, sent: 0, last: None, began }
    }

    /// The next notification, when it is time for it. A dropped future loses nothing.
    pub async fn next(&mut self) -> ProgressNotificationParam {
        let silent_until = self.last.unwrap_or(self.began) + HEARTBEAT;
        tokio::select! {
            () = self.more() => {
                let first = Instant::now() + FIRST;
                sleep_until(self.last.map_or(first, |last| last + INTERVAL)).await;
            }
            () = sleep_until(silent_until) => {}
        }
        // A silent command counts one up, because progress must increase.
        self.seen = self.output.length();
        self.sent = self.seen.max(self.sent + 1);
        self.last = Some(Instant::now());
        let progress = ProgressNotificationParam::new(self.token.clone(), self.sent as f64);
        progress.with_message(self.output.last_lines(self.streams))
    }

    async fn more(&self) {
        // The sender lives as long as the output we hold.
        let _ = self.arrived.clone().wait_for(|arrived| *arrived > self.seen).await;
    }
}
