//! What responses carry: a document, or events as they come.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use super::stream::{Event, Reading};

/// The most time in which a body of events says nothing, so that nobody between client and server
/// takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How much of what is there is sent at once.
const CHUNK: usize = 64 << 10;

pub enum Reply {
    Document(Option<Bytes>),
    Events(Box<Events>),
}

impl Reply {
    pub fn document(bytes: impl Into<Bytes>) -> Self {
        Self::Document(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }
}

/// A stream of events on its way to a client.
pub struct Events {
    reading: Reading,
    /// What the ids of its events begin with, where the stream can be resumed.
    name: Option<String>,
    /// The first thing to send.
    opening: Option<String>,
    silence: Pin<Box<Sleep>>,
    /// Kept until the body is done with, or dropped.
    _guard: Box<dyn Send + Sync>,
}

impl Events {
    pub fn new(
        reading: Reading,
        name: Option<String>,
        opening: Option<String>,
        guard: Box<dyn Send + Sync>,
    ) -> Self {
        Self { reading, name, opening, silence: Box::pin(sleep(KEEP_ALIVE)), _guard: guard }
    }

    fn write(&self, event: &Event, text: &mut String) {
        if let Some(name) = &self.name {
            let _ = writeln!(text, "id: {name}-{}", event.index);
        }
        // JSON has no line ends of its own.
        let _ = write!(text, "data: {}\n\n", String::from_utf8_lossy(&event.data));
    }
}

impl Body for Reply {
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
            match events.reading.poll_next(context) {
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
            // Registers for the next silence as well.
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
