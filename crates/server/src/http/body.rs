//! The bodies of responses: a document, or events as they come.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use super::event_stream::{Event, EventReader};

/// The longest silence of an event stream, so that no proxy between client and server takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How many bytes are sent at once.
const CHUNK: usize = 64 << 10;

pub enum ResponseBody {
    Document(Option<Bytes>),
    Events(Box<EventBody>),
}

impl ResponseBody {
    pub fn document(bytes: impl Into<Bytes>) -> Self {
        Self::Document(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }
}

/// A stream of events on its way to a client.
pub struct EventBody {
    reader: EventReader,
    /// The prefix of the ids of its events, if the stream can be resumed.
    name: Option<String>,
    /// The first thing to send.
    opening: Option<String>,
    silence: Pin<Box<Sleep>>,
    /// Dropped with the body: when it was sent, or its connection was lost.
    _guard: Box<dyn Send + Sync>,
}

impl EventBody {
    pub fn new(
        reader: EventReader,
        name: Option<String>,
        opening: Option<String>,
        guard: Box<dyn Send + Sync>,
    ) -> Self {
        Self { reader, name, opening, silence: Box::pin(sleep(KEEP_ALIVE)), _guard: guard }
    }

    fn write(&self, event: &Event, text: &mut String) {
        if let Some(name) = &self.name {
            let _ = writeln!(text, "id: {name}-{}", event.index);
        }
        // Compact JSON has no line ends.
        let _ = write!(text, "data: {}\n\n", String::from_utf8_lossy(&event.data));
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        let events = match self.get_mut() {
            Self::Document(document) => return document.take().map_or(Poll::Ready(None), frame),
            Self::Events(events) => events,
        };
        let mut text = events.opening.take().unwrap_or_default();
        let ended = loop {
            match events.reader.poll_next(context) {
                Poll::Ready(Some(event)) => events.write(&event, &mut text),
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
            if text.len() > CHUNK {
                break false;
            }
        };
        if !text.is_empty() {
            events.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return frame(text.into());
        }
        if ended {
            return Poll::Ready(None);
        }
        if events.silence.as_mut().poll(context).is_ready() {
            events.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            // Polled again to be woken after the next silence, too.
            let _ = events.silence.as_mut().poll(context);
            return frame(Bytes::from_static(b":\n\n"));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Document(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Document(document) => {
                http_body::SizeHint::with_exact(document.as_ref().map_or(0, Bytes::len) as u64)
            }
            Self::Events(_) => http_body::SizeHint::default(),
        }
    }
}
