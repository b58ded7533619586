//! What a client on standard input and output still has to get: answers to its requests, and messages
//! that are being written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

use crate::memory::Taken;

#[derive(Debug, Default)]
pub struct Owed {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that were passed on and not answered yet, and whether they will be. One that was
    /// cancelled never is, and its id is never free again: the service loop could take an old answer
    /// for a new one.
    requests: HashMap<RequestId, Request>,
    /// Messages that are not written yet.
    messages: usize,
}

#[derive(Debug)]
struct Request {
    will_be_answered: bool,
    /// What it takes.
    taken: Option<Taken>,
}

/// A message that is about to be written.
#[derive(Debug)]
pub struct Unwritten(Arc<Owed>);

impl Owed {
    /// Notes a request that is passed on. False if one with its id is still running.
    pub fn note_request(&self, id: &RequestId, will_be_answered: bool, taken: Taken) -> bool {
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return false;
        }
        state.requests.insert(id.clone(), Request { will_be_answered, taken: Some(taken) });
        true
    }

    /// Notes that a request will not be answered any more.
    pub fn note_cancelled(&self, id: &RequestId) {
        if let Some(request) = self.lock().requests.get_mut(id) {
            *request = Request { will_be_answered: false, taken: None };
        }
        self.changed.notify_waiters();
    }

    /// Notes that a request is answered. The answer is unwritten then. Returns what it took.
    pub fn note_answered(&self, id: &RequestId) -> Option<Taken> {
        self.lock().requests.remove(id)?.taken
    }

    /// A message that is owed until what is returned is dropped.
    pub fn message(self: &Arc<Self>) -> Unwritten {
        self.lock().messages += 1;
        Unwritten(self.clone())
    }

    /// Done when nothing is owed.
    pub async fn nothing(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().is_nothing() {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_nothing(&self) -> bool {
        self.messages == 0 && !self.requests.values().any(|request| request.will_be_answered)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.lock().messages -= 1;
        self.0.changed.notify_waiters();
    }
}
