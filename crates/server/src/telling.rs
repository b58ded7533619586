//! What the server tells a client about its work, if the client wants to know.

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
const APART: Duration = Duration::from_millis(20);

/// The least serious messages a client wants; none until it says so.
#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
#[derive(Debug, Clone, Default)]
pub struct Threshold(Arc<Mutex<Option<LoggingLevel>>>);

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
impl Threshold {
    pub fn set(&self, level: LoggingLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Whom to tell about one request: a request that stands alone says itself what it wants.
    pub fn teller(
        &self,
        context: &RequestContext<RoleServer>,
        voice: Voice,
        secrets: Secrets,
    ) -> Teller {
        let own = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let least = context.meta.log_level().or(own);
        Teller { voice, request: context.id.clone(), least, secrets }
    }
}

/// What a client hears of a request until it is answered. Clones are for the same.
#[derive(Clone)]
pub struct Voice {
    peer: Peer<RoleServer>,
    said: Arc<tokio::sync::Mutex<Said>>,
}

#[derive(Default)]
struct Said {
    /// Whether nothing more is said.
    silent: bool,
    /// When the last progress was.
    progress: Option<Instant>,
}

impl Voice {
    pub fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), said: Arc::default() }
    }

    pub async fn say(&self, news: ServerNotification) {
        let mut said = self.said.lock().await;
        if said.silent {
            return;
        }
        let progress = matches!(news, ServerNotification::ProgressNotification(_));
        // A client that cannot be told has left, which its own stream will tell.
        let _ = self.peer.send_notification(news).await;
        if progress {
            said.progress = Some(Instant::now());
        }
    }

    /// Says no more, once what is being said is said. Afterwards it is time for the answer.
    pub async fn fall_silent(&self) {
        self.said.lock().await.silent = true;
        self.stand_apart().await;
    }

    /// Waits until nobody reads the last progress together with what comes next.
    pub async fn stand_apart(&self) {
        let progress = self.said.lock().await.progress;
        if let Some(told) = progress {
            sleep_until(told + APART).await;
        }
    }
}

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
pub struct Teller {
    voice: Voice,
    /// What it is about: over HTTP, what is told comes with its answer.
    request: RequestId,
    least: Option<LoggingLevel>,
    /// What is not told.
    secrets: Secrets,
}

#[expect(deprecated, reason = "clients of all revisions but the newest have logging")]
impl Teller {
    async fn tell(&self, level: LoggingLevel, text: String) {
        if self.least.is_none_or(|least| severity(level) < severity(least)) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(level, json!(text));
        let mut message = LoggingMessageNotification::new(message);
        message.extensions.insert(OriginatingRequestId(self.request.clone()));
        self.voice.say(ServerNotification::LoggingMessageNotification(message)).await;
    }

    /// Tells why a command did not run.
    pub async fn tell_error(&self, error: &Error) {
        self.tell(LoggingLevel::Warning, self.secrets.mask(&error.chain()).into()).await;
    }

    /// Tells what became of a command, as far as it is worth telling.
    pub async fn tell_outcome(&self, outcome: &Result<Outcome, Error>) {
        let outcome = match outcome {
            Err(error) => return self.tell_error(error).await,
            Ok(outcome) => outcome,
        };
        if let Some(limit) = outcome.limit {
            self.tell(LoggingLevel::Warning, limit.to_string()).await;
        }
        let (level, text) = match outcome.end {
            End::Exited(code) => (LoggingLevel::Debug, format!("the command exited with {code}")),
            End::Signalled(signal) => {
                let name = mcpz_engine::signal_name(signal);
                (LoggingLevel::Info, format!("the command was ended by {name}"))
            }
            End::TimedOut { after } => {
                let seconds = after.as_secs_f64();
                (LoggingLevel::Warning, format!("the command was ended after {seconds} seconds"))
            }
            End::Cancelled => (LoggingLevel::Info, "the command was cancelled".to_owned()),
            End::Lost => (LoggingLevel::Error, "the command was lost".to_owned()),
            End::Closed(_) => (LoggingLevel::Info, "the command ended with the server".to_owned()),
        };
        self.tell(level, text).await;
        if !outcome.background.is_empty() {
            let text = format!("processes are still running: {:?}", outcome.background);
            self.tell(LoggingLevel::Notice, text).await;
        }
        if outcome.output.lost() > 0 {
            let text = format!("{} bytes of output could not be kept", outcome.output.lost());
            self.tell(LoggingLevel::Warning, text).await;
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
