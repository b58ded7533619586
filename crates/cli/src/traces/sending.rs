//! Sends spans to a collector, a batch at a time.

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

/// How often a batch is sent.
const TRIES: u32 = 4;

/// How long a collector is left alone after a failure; twice as long after the next.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest a collector may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The least time between two words about what was dropped.
const WORDS: Duration = Duration::from_secs(60);

/// The longest answer that is read.
const MAX_ANSWER: usize = 64 << 10;

pub struct Sending {
    settings: Settings,
    spans: Arc<Spans>,
    closed: watch::Receiver<bool>,
    log: Format,
    client: Client,
    /// Why the last batch that was dropped was.
    why: String,
    /// When something was last said about it.
    said: Option<Instant>,
}

/// Why a batch was not taken.
enum Failure {
    /// It would not be the next time.
    Final(String),
    Passing {
        why: String,
        pause: Option<Duration>,
    },
}

impl Sending {
    pub fn new(
        settings: Settings,
        spans: Arc<Spans>,
        closed: watch::Receiver<bool>,
        log: Format,
    ) -> Self {
        let (client, why) = (Client::default(), "too many at once".to_owned());
        Self { settings, spans, closed, log, client, why, said: None }
    }

    /// Sends until there is nothing left after it was told to end.
    pub async fn go_on(mut self) {
        loop {
            self.gather().await;
            loop {
                let batch = self.spans.take();
                if batch.is_empty() {
                    break;
                }
                self.send(&batch).await;
                self.tell_dropped();
            }
            if self.is_closing() {
                return;
            }
        }
    }

    /// Done some time after the first span came, when there are enough, or at the end.
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
        for tried in 1..=TRIES {
            let last = tried == TRIES || self.is_closing();
            let pause = match self.try_send(body.clone()).await {
                Ok(()) => return,
                Err(Failure::Passing { pause, .. }) if !last => {
                    pause.unwrap_or(PAUSE * 2u32.pow(tried - 1)).min(MAX_PAUSE)
                }
                Err(Failure::Final(why) | Failure::Passing { why, .. }) => {
                    self.why = why;
                    break;
                }
            };
            tokio::select! {
                () = self.closing() => {}
                () = sleep(pause) => {}
            }
        }
        self.spans.drop_more(batch.len());
    }

    async fn try_send(&self, body: Vec<u8>) -> Result<(), Failure> {
        let mut request = post(self.settings.endpoint.clone(), body);
        let headers = request.headers_mut();
        headers.extend(self.settings.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = concat!("mcpz/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let passing = |error: io::Error| Failure::Passing { why: error.to_string(), pause: None };
        let late = |_| {
            let why = format!("no answer within {} ms", self.settings.timeout.as_millis());
            Failure::Passing { why, pause: None }
        };
        let sending = self.client.send(request, MAX_ANSWER);
        let response = timeout(self.settings.timeout, sending).await.map_err(late)?;
        let response = response.map_err(passing)?;
        let status = response.status();
        let why = format!("the answer was {status}");
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let asked = response.headers().get(RETRY_AFTER);
                let seconds = asked.and_then(|asked| asked.to_str().ok()?.parse().ok());
                Err(Failure::Passing { why, pause: seconds.map(Duration::from_secs) })
            }
            _ => Err(Failure::Final(why)),
        }
    }

    /// Says what was dropped, once in a while and at the end.
    fn tell_dropped(&mut self) {
        let soon = self.said.is_some_and(|said| said.elapsed() < WORDS);
        if soon && !self.is_closing() {
            return;
        }
        let dropped = self.spans.take_dropped();
        if dropped > 0 {
            self.said = Some(Instant::now());
            let (place, why) = (shown(&self.settings.endpoint), &self.why);
            self.log.warn(&format!(
                "{dropped} spans were not sent to {place}: {why}; check \
                 OTEL_EXPORTER_OTLP_ENDPOINT, or leave it unset to send none"
            ));
        }
    }
}

/// An address without who asks there.
fn shown(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let place = authority.rsplit('@').next().unwrap_or_default();
    format!("{}://{place}{}", uri.scheme_str().unwrap_or_default(), uri.path())
}
