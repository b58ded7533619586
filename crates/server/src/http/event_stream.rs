//! A stream of messages to a client, kept so that it can be read again after a lost connection.
//!
//! Writing never waits: messages are kept, and one reader at a time takes them from any place on. A slow reader costs a
//! bounded amount of memory, because notifications that nobody took are dropped, the oldest first; requests and
//! answers never are.
//!
//!     service loop ─▶ EventStream ─▶ EventReader ─▶ body of a response
//!                         ▲ a new reader (`Last-Event-ID`) replaces one whose connection was lost

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::StatusCode;

use crate::memory::Evictable;

/// How many bytes of notifications are kept.
const MAX_NOTIFICATIONS: usize = 256 << 10;

#[derive(Debug, Clone)]
pub struct Event {
    /// Its place in the stream, from 1 on.
    pub index: u64,
    /// The message, as JSON.
    pub data: Bytes,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Notification,
    /// The client has to answer it.
    Request,
    /// With the status of a response that has nothing else.
    Answer(StatusCode),
}

#[derive(Debug, Default)]
pub struct EventStream {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    last: u64,
    notification_bytes: usize,
    ended: bool,
    /// The last event that a reader took.
    taken: u64,
    /// Counts readers: only the newest reads.
    turn: u64,
    attached: bool,
    waker: Option<Waker>,
    /// While it is kept only in case a client resumes it.
    evictable: Option<Evictable>,
}

impl EventStream {
    pub fn push(&self, data: Bytes, kind: Kind) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.last += 1;
        let index = state.last;
        if kind == Kind::Notification {
            state.notification_bytes += data.len();
        }
        state.events.push_back(Event { index, data, kind });
        state.drop_surplus();
        state.wake();
    }

    /// Notes that nothing more follows.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    /// Notes that it is kept only in case a client resumes it.
    pub fn keep(&self, evictable: Evictable) {
        self.lock().evictable = Some(evictable);
    }

    /// Begins to read after an event. An earlier reader reads nothing more.
    pub fn read(self: &Arc<Self>, after: u64) -> EventReader {
        let mut state = self.lock();
        state.turn += 1;
        state.attached = true;
        state.wake();
        EventReader { stream: self.clone(), turn: state.turn, at: after }
    }

    /// Begins to read what no reader has taken yet.
    pub fn read_on(self: &Arc<Self>) -> EventReader {
        let taken = self.lock().taken;
        self.read(taken)
    }

    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether somebody is reading.
    pub fn is_attached(&self) -> bool {
        self.lock().attached
    }

    /// How many readers there were.
    pub fn turn(&self) -> u64 {
        self.lock().turn
    }

    /// How many bytes of it are kept.
    pub fn size(&self) -> usize {
        self.lock().events.iter().map(|event| event.data.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn drop_surplus(&mut self) {
        while self.notification_bytes > MAX_NOTIFICATIONS
            && let Some(at) = self.events.iter().position(|event| event.kind == Kind::Notification)
            && let Some(dropped) = self.events.remove(at)
        {
            self.notification_bytes -= dropped.data.len();
        }
    }
}

/// A reader's place in a stream.
#[derive(Debug)]
pub struct EventReader {
    stream: Arc<EventStream>,
    turn: u64,
    at: u64,
}

impl EventReader {
    /// The next event; `None` when there will be none, or another reader took over.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.stream.lock();
        if state.turn != self.turn {
            return Poll::Ready(None);
        }
        let next = state.events.iter().find(|event| event.index > self.at).cloned();
        if let Some(event) = next {
            self.at = event.index;
            state.taken = state.taken.max(event.index);
            return Poll::Ready(Some(event));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits until there is something to read, or never will be.
    pub async fn ready(&self) {
        std::future::poll_fn(|context| {
            let mut state = self.stream.lock();
            if state.turn != self.turn || state.ended || state.last > self.at {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The answer, if it is all there is to read.
    pub fn only_answer(&self) -> Option<(Bytes, StatusCode)> {
        let state = self.stream.lock();
        let mut rest = state.events.iter().filter(|event| event.index > self.at);
        let first = rest.next()?;
        match (first.kind, rest.next(), state.ended) {
            (Kind::Answer(status), None, true) => Some((first.data.clone(), status)),
            _ => None,
        }
    }

    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// The index of the last event that was read.
    pub fn at(&self) -> u64 {
        self.at
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        if state.turn == self.turn {
            state.attached = false;
            state.waker = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(reader: &mut EventReader) -> Vec<Bytes> {
        let mut taken = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = reader.poll_next(&mut context) {
            taken.push(event.data);
        }
        taken
    }

    #[test]
    fn a_new_reader_goes_on_where_the_last_one_was_and_takes_its_place() {
        let stream = Arc::new(EventStream::default());
        let mut first = stream.read(0);
        stream.push("one".into(), Kind::Notification);
        assert_eq!(take(&mut first), ["one"]);
        stream.push("two".into(), Kind::Notification);
        let mut second = stream.read(1);
        assert_eq!(take(&mut second), ["two"]);
        assert!(take(&mut first).is_empty());
        drop(first);
        assert!(stream.is_attached());
    }

    #[test]
    fn notifications_nobody_takes_are_dropped_and_answers_are_not() {
        let stream = Arc::new(EventStream::default());
        stream.push("answer".into(), Kind::Answer(StatusCode::OK));
        for _ in 0..1000 {
            stream.push(vec![b'x'; 1000].into(), Kind::Notification);
        }
        assert!(stream.size() <= MAX_NOTIFICATIONS + 6);
        assert_eq!(take(&mut stream.read(0))[0], "answer");
    }
}
