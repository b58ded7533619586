//! What a client hears of a request before its answer: progress, and log messages if it wants them.
//!
//! Nothing about a call may follow its answer, nor may a client read progress together with it (see `watcher.rs`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_engine::{End, Error, Outcome};
use mcpz_output::Secrets;
use rmcp::RoleServer;
#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
use rmcp::model::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, RequestId,
    ServerNotification,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

/// The least time between the last progress and the answer.
const PROGRESS_GAP: Duration = Duration::from_millis(20);

/// The least severe log messages a client wants; none until it says so.
#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
#[derive(Debug, Clone, Default)]
pub struct LogThreshold(Arc<Mutex<Option<LoggingLevel>>>);

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
impl LogThreshold {
    pub fn set(&self, level: LoggingLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The log of one request. A stateless request sets its own threshold.
    pub fn log(
        &self,
        context: &RequestContext<RoleServer>,
        notifier: Notifier,
        secrets: Secrets,
    ) -> ClientLog {
        let own = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let least = context.meta.log_level().or(own);
        ClientLog { notifier, request: context.id.clone(), least, secrets }
    }
}

/// Sends the notifications of one request, until it is answered. Clones share it.
#[derive(Clone)]
pub struct Notifier {
    peer: Peer<RoleServer>,
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Default)]
struct State {
    silenced: bool,
    last_progress: Option<Instant>,
}

impl Notifier {
    pub fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), state: Arc::default() }
    }

    pub async fn send(&self, notification: ServerNotification) {
        let mut state = self.state.lock().await;
        if state.silenced {
            return;
        }
        let is_progress = matches!(notification, ServerNotification::ProgressNotification(_));
        // If this fails the client has left, which the transport finds out by itself.
        let _ = self.peer.send_notification(notification).await;
        if is_progress {
            state.last_progress = Some(Instant::now());
        }
    }

    /// Waits for a notification that is being sent, and sends no more. Afterwards the answer may be sent.
    pub async fn silence(&self) {
        self.state.lock().await.silenced = true;
        self.wait_after_progress().await;
    }

    /// Waits until a client cannot read the last progress together with what comes next.
    pub async fn wait_after_progress(&self) {
        let progress = self.state.lock().await.last_progress;
        if let Some(sent) = progress {
            sleep_until(sent + PROGRESS_GAP).await;
        }
    }
}

/// Log messages for the client about one request.
#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
pub struct ClientLog {
    notifier: Notifier,
    /// Over HTTP, a message about a request comes on the same stream as its answer.
    request: RequestId,
    least: Option<LoggingLevel>,
    secrets: Secrets,
}

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
impl ClientLog {
    async fn log(&self, level: LoggingLevel, text: String) {
        if self.least.is_none_or(|least| severity(level) < severity(least)) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(level, json!(text));
        let mut message = LoggingMessageNotification::new(message);
        message.extensions.insert(OriginatingRequestId(self.request.clone()));
        self.notifier.send(ServerNotification::LoggingMessageNotification(message)).await;
    }

    /// Logs why a command did not run.
    pub async fn log_error(&self, error: &Error) {
        self.log(LoggingLevel::Warning, self.secrets.mask(&error.chain()).into()).await;
    }

    /// Logs how a command ended, and what is remarkable about it.
    pub async fn log_outcome(&self, outcome: &Result<Outcome, Error>) {
        let outcome = match outcome {
            Err(error) => return self.log_error(error).await,
            Ok(outcome) => outcome,
        };
        if let Some(limit) = outcome.limit {
            self.log(LoggingLevel::Warning, limit.to_string()).await;
        }
        let (level, text) = match outcome.end {
            End::Exited(code) => (LoggingLevel::Debug, format!("the command exited with {code}")),
            End::Signalled(signal) => {
                let name = mcpz_agent::signal_name(signal);
                (LoggingLevel::Info, format!("the command was ended by {name}"))
            }
            end @ End::TimedOut { .. } => (LoggingLevel::Warning, format!("the command {end}")),
            End::Cancelled => (LoggingLevel::Info, "the command was cancelled".to_owned()),
            End::Lost => {
                (LoggingLevel::Error, "the command was lost: its keeper was killed".to_owned())
            }
            End::Closed(_) => {
                (LoggingLevel::Info, "the command ended because the server shut down".to_owned())
            }
        };
        self.log(level, text).await;
        if !outcome.background.is_empty() {
            let text = format!("processes are still running: {:?}", outcome.background);
            self.log(LoggingLevel::Notice, text).await;
        }
        if outcome.output.lost() > 0 {
            let text = format!("{} bytes of output could not be kept", outcome.output.lost());
            self.log(LoggingLevel::Warning, text).await;
        }
    }
}

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
