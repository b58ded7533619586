//! One stream of messages to a client: what was said, kept so that it can be read again.
//!
//! Whoever says something never waits: messages are noted, and one reader at a time takes them from
//! any place on. A reader that falls behind costs a bounded amount of memory, as notices that nobody
//! took are dropped, oldest first; questions and answers never are.
//!
//!     service loop ─▶ Stream (noted events) ─▶ Reading ─▶ body of a response
//!                         ▲ a new reader takes the place of one that was lost

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::StatusCode;

use crate::memory::Kept;

/// How many bytes of notices are kept.
const MAX_NOTICES: usize = 256 << 10;

/// Something that was said.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its place in the stream, from 1 on.
    pub index: u64,
    /// The message, as JSON.
    pub data: Bytes,
    kind: Kind,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something that is good to know.
    Notice,
    /// Something the client has to answer.
    Question,
    /// With what a response is marked that has nothing else.
    Answer(StatusCode),
}

#[derive(Debug, Default)]
pub struct Stream {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    last: u64,
    notices: usize,
    ended: bool,
    /// The last event that somebody took.
    taken: u64,
    /// Counts readers: only the newest reads.
    turn: u64,
    attached: bool,
    waker: Option<Waker>,
    /// While it is kept only because somebody might come back for it.
    kept: Option<Kept>,
}

impl Stream {
    pub fn say(&self, data: Bytes, kind: Kind) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.last += 1;
        let index = state.last;
        if kind == Kind::Notice {
            state.notices += data.len();
        }
        state.events.push_back(Event { index, data, kind });
        state.drop_surplus();
        state.wake();
    }

    /// Nothing more will be said.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    /// Notes that it is kept only because somebody might come back for it.
    pub fn keep(&self, kept: Kept) {
        self.lock().kept = Some(kept);
    }

    /// Begins to read after an event. Whoever read before reads no more.
    pub fn read(self: &Arc<Self>, after: u64) -> Reading {
        let mut state = self.lock();
        state.turn += 1;
        state.attached = true;
        state.wake();
        Reading { stream: self.clone(), turn: state.turn, at: after }
    }

    /// Begins to read what nobody has taken yet.
    pub fn read_on(self: &Arc<Self>) -> Reading {
        let taken = self.lock().taken;
        self.read(taken)
    }

    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether somebody reads.
    pub fn is_attached(&self) -> bool {
        self.lock().attached
    }

    /// How often somebody began to read.
    pub fn turn(&self) -> u64 {
        self.lock().turn
    }

    /// What is kept of it, in bytes.
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
        while self.notices > MAX_NOTICES
            && let Some(at) = self.events.iter().position(|event| event.kind == Kind::Notice)
            && let Some(dropped) = self.events.remove(at)
        {
            self.notices -= dropped.data.len();
        }
    }
}

/// A reader's place in a stream.
#[derive(Debug)]
pub struct Reading {
    stream: Arc<Stream>,
    turn: u64,
    at: u64,
}

impl Reading {
    /// The next event; `None` when there will be none, or another reads now.
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

    /// The one answer that is all there is to read, if so.
    pub fn only_answer(&self) -> Option<(Bytes, StatusCode)> {
        let state = self.stream.lock();
        let mut rest = state.events.iter().filter(|event| event.index > self.at);
        let first = rest.next()?;
        match (first.kind, rest.next(), state.ended) {
            (Kind::Answer(status), None, true) => Some((first.data.clone(), status)),
            _ => None,
        }
    }

    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// The last event that was read.
    pub fn at(&self) -> u64 {
        self.at
    }
}

impl Drop for Reading {
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

    fn take(reading: &mut Reading) -> Vec<Bytes> {
        let mut taken = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = reading.poll_next(&mut context) {
            taken.push(event.data);
        }
        taken
    }

    #[test]
    fn a_new_reader_goes_on_where_the_last_one_was_and_takes_its_place() {
        let stream = Arc::new(Stream::default());
        let mut first = stream.read(0);
        stream.say("one".into(), Kind::Notice);
        assert_eq!(take(&mut first), ["one"]);
        stream.say("two".into(), Kind::Notice);
        let mut second = stream.read(1);
        assert_eq!(take(&mut second), ["two"]);
        assert!(take(&mut first).is_empty());
        drop(first);
        assert!(stream.is_attached());
    }

    #[test]
    fn notices_nobody_takes_are_dropped_and_answers_are_not() {
        let stream = Arc::new(Stream::default());
        stream.say("answer".into(), Kind::Answer(StatusCode::OK));
        for _ in 0..1000 {
            stream.say(vec![b'x'; 1000].into(), Kind::Notice);
        }
        assert!(stream.size() <= MAX_NOTICES + 6);
        assert_eq!(take(&mut stream.read(0))[0], "answer");
    }
}
