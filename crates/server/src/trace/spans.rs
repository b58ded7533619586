//! Spans, and the queue in which they wait for the exporter.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcpz_runtime::random_bits;
use tokio::sync::Notify;

use super::SpanIds;

/// The longest text of an attribute, in bytes.
const MAX_TEXT: usize = 1024;

/// Something that was done, from when to when.
#[derive(Debug, Clone)]
pub struct Span {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub ids: SpanIds,
    /// The id of the span above.
    pub parent: Option<u64>,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Server,
    Client,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Text(String),
    Number(i64),
    Seconds(Duration),
    Yes,
}

impl<T: Into<String>> From<T> for Attribute {
    fn from(text: T) -> Self {
        Self::Text(cut(text.into()))
    }
}

impl Span {
    /// A span that begins now, below another or at the top of a new trace.
    pub(super) fn begin(kind: Kind, above: Option<&SpanIds>) -> Option<Self> {
        let (ids, now) = (random_bits().ok()?, SystemTime::now());
        // An id must not be all zeros.
        let span = (ids as u64) | 1;
        let ids = match above {
            Some(above) => SpanIds { span, ..above.clone() },
            None => SpanIds {
                trace: random_bits().ok()? | 1,
                span,
                state: String::new(),
                sampled: true,
            },
        };
        Some(Self {
            name: Cow::Borrowed(""),
            kind,
            ids,
            parent: above.map(|above| above.span),
            start: now,
            end: now,
            attributes: Vec::new(),
            failure: None,
        })
    }

    pub(super) fn add(&mut self, name: &'static str, value: impl Into<Attribute>) {
        self.attributes.push((name, value.into()));
    }

    pub(super) fn fail(&mut self, kind: impl Into<String>, message: &str) {
        self.add("error.type", kind.into());
        self.failure = Some(cut(message.to_owned()));
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = text.floor_char_boundary(MAX_TEXT);
        text.truncate(end);
        text.push('…');
        // Many may wait in the queue.
        text.shrink_to_fit();
    }
    text
}

/// Spans that wait for the exporter. Adding one never waits: when there are too many, it is dropped.
#[derive(Debug, Default)]
pub struct Spans {
    waiting: Mutex<VecDeque<Span>>,
    dropped: AtomicU64,
    arrived: Notify,
}

impl Spans {
    /// How many are exported together.
    pub const BATCH: usize = 512;

    /// How many may wait.
    const MOST: usize = 4 * Self::BATCH;

    pub(super) fn add(&self, span: Span) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= Self::MOST {
            self.drop_more(1);
            return;
        }
        waiting.push_back(span);
        // Waking the exporter more often would cost more than the span.
        if waiting.len() == 1 || waiting.len() == Self::BATCH {
            self.arrived.notify_one();
        }
    }

    /// Waits until there are some, and the next time until there are enough for a batch.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes the oldest spans, at most a batch.
    pub fn take(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let length = waiting.len().min(Self::BATCH);
        let batch = waiting.drain(..length).collect();
        if waiting.is_empty() {
            waiting.shrink_to(0);
        }
        batch
    }

    /// Counts spans that will not be exported.
    pub fn drop_more(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How many were dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_takes_no_more_than_what_is_shown_of_it() {
        let text = cut("é".repeat(1 << 20));
        assert!(text.ends_with('…') && text.len() <= MAX_TEXT + 3, "{}", text.len());
        assert!(text.capacity() < 2 * MAX_TEXT, "{}", text.capacity());
    }

    #[test]
    fn as_many_wait_as_may_and_the_rest_is_counted() {
        let (spans, span) = (Spans::default(), Span::begin(Kind::Server, None).unwrap());
        for number in 0..Spans::MOST as u64 + 3 {
            let ids = SpanIds { span: number + 1, ..span.ids.clone() };
            spans.add(Span { ids, ..span.clone() });
        }
        assert_eq!((spans.take_dropped(), spans.take_dropped()), (3, 0));
        let mut taken = Vec::new();
        while let batch @ [_, ..] = &spans.take()[..] {
            assert!(batch.len() <= Spans::BATCH);
            taken.extend(batch.iter().map(|span| span.ids.span));
        }
        assert!(taken.iter().copied().eq(1..=Spans::MOST as u64));
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let Attribute::Text(text) = Attribute::from("é".repeat(2000) + "x") else { panic!() };
        assert_eq!(text, "é".repeat(512) + "…");
    }
}
