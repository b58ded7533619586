//! Sends spans to a collector, one batch at a time.
//!
//! A batch that the collector may accept later is sent again; any other is dropped and counted, and the
//! log says so at most once a minute.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{StatusCode, Uri};
use mcpz_server::{Span, Spans};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::protobuf;
use super::settings::Settings;
use crate::fetch::{Client, post};
use crate::log::Format;

const MAX_ATTEMPTS: u32 = 4;

/// The pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause, also if the collector asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The shortest time between two warnings about dropped spans.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

const MAX_RESPONSE_BYTES: usize = 64 << 10;

pub struct Exporter {
    settings: Settings,
    spans: Arc<Spans>,
    closed: watch::Receiver<bool>,
    log: Format,
    client: Client,
    /// Why the last batch was dropped. Nothing yet if only the queue was full.
    last_error: Option<SendError>,
    last_warning: Option<Instant>,
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Connection(#[from] io::Error),
    #[error("no response within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the response was {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
}

impl SendError {
    /// How long to wait before the next attempt, or nothing if another would fail as well.
    fn pause(&self, attempt: u32) -> Option<Duration> {
        let usual = FIRST_PAUSE * 2u32.pow(attempt - 1);
        let pause = match self {
            Self::Connection(_) | Self::Timeout(_) => usual,
            Self::Status { status, retry_after } => match *status {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => retry_after.unwrap_or(usual),
                _ => return None,
            },
        };
        Some(pause.min(MAX_PAUSE))
    }
}

impl Exporter {
    pub fn new(
        settings: Settings,
        spans: Arc<Spans>,
        closed: watch::Receiver<bool>,
        log: Format,
    ) -> Self {
        let client = Client::default();
        Self { settings, spans, closed, log, client, last_error: None, last_warning: None }
    }

    /// Runs until it is told to end and no span is left.
    pub async fn run(mut self) {
        loop {
            self.gather().await;
            loop {
                let batch = self.spans.take();
                if batch.is_empty() {
                    break;
                }
                self.send(&batch).await;
                self.warn_about_dropped();
            }
            if self.is_closing() {
                return;
            }
        }
    }

    /// Waits for a first span, and then until there are enough for a batch or the delay is over. The
    /// server's end cuts it short.
    async fn gather(&self) {
        let enough = async {
            self.spans.arrived().await;
            let _ = timeout(self.settings.delay, self.spans.arrived()).await;
        };
        tokio::select! {
            () = self.closing() => {}
            () = enough => {}
        }
    }

    async fn closing(&self) {
        let _ = self.closed.clone().wait_for(|closed| *closed).await;
    }

    fn is_closing(&self) -> bool {
        *self.closed.borrow()
    }

    async fn send(&mut self, batch: &[Span]) {
        let body = protobuf::encode(&self.settings.resource, batch);
        for attempt in 1..=MAX_ATTEMPTS {
            let is_last = attempt == MAX_ATTEMPTS || self.is_closing();
            let Err(error) = self.try_send(body.clone()).await else { return };
            let Some(pause) = error.pause(attempt).filter(|_| !is_last) else {
                self.last_error = Some(error);
                break;
            };
            tokio::select! {
                () = self.closing() => {}
                () = sleep(pause) => {}
            }
        }
        self.spans.drop_more(batch.len());
    }

    async fn try_send(&self, body: Vec<u8>) -> Result<(), SendError> {
        let mut request = post(self.settings.endpoint.clone(), body);
        let headers = request.headers_mut();
        headers.extend(self.settings.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = concat!("mcpz/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let limit = self.settings.timeout;
        let sending = self.client.send(request, MAX_RESPONSE_BYTES);
        let response = timeout(limit, sending).await.map_err(|_| SendError::Timeout(limit))??;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let retry_after = response.headers().get(RETRY_AFTER);
        let seconds = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        Err(SendError::Status { status, retry_after: seconds.map(Duration::from_secs) })
    }

    /// Warns about dropped spans, once in a while and at the end.
    fn warn_about_dropped(&mut self) {
        let is_soon = self.last_warning.is_some_and(|last| last.elapsed() < WARNING_INTERVAL);
        if is_soon && !self.is_closing() {
            return;
        }
        let dropped = match self.spans.take_dropped() {
            0 => return,
            1 => "1 span was".to_owned(),
            number => format!("{number} spans were"),
        };
        self.last_warning = Some(Instant::now());
        let endpoint = without_credentials(&self.settings.endpoint);
        let reason = match &self.last_error {
            Some(error) => error.to_string(),
            None => "too many at once".to_owned(),
        };
        self.log.warn(&format!(
            "{dropped} not sent to {endpoint}: {reason}; check OTEL_EXPORTER_OTLP_ENDPOINT, or leave it \
             unset to send none"
        ));
    }
}

fn without_credentials(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{}://{host}{}", uri.scheme_str().unwrap_or_default(), uri.path())
}
