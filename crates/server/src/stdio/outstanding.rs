//! What a client on stdio still has to get: answers to its requests, and messages that are being written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

use crate::memory::RequestMemory;

#[derive(Debug, Default)]
pub struct Outstanding {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that were passed on and have no answer yet. A cancelled one never gets an answer, and its id is never
    /// free again: the service loop could mistake an old answer for a new one.
    requests: HashMap<RequestId, Request>,
    /// How many messages are not written yet.
    messages: usize,
}

#[derive(Debug)]
struct Request {
    will_be_answered: bool,
    memory: Option<RequestMemory>,
}

/// A message that is about to be written. It is outstanding until this is dropped.
#[derive(Debug)]
pub struct Unwritten(Arc<Outstanding>);

impl Outstanding {
    /// Notes a request that is passed on. False if one with its id is still running.
    pub fn note_request(
        &self,
        id: &RequestId,
        will_be_answered: bool,
        memory: RequestMemory,
    ) -> bool {
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return false;
        }
        state.requests.insert(id.clone(), Request { will_be_answered, memory: Some(memory) });
        true
    }

    /// Notes that a request will not be answered.
    pub fn note_cancelled(&self, id: &RequestId) {
        if let Some(request) = self.lock().requests.get_mut(id) {
            *request = Request { will_be_answered: false, memory: None };
        }
        self.changed.notify_waiters();
    }

    /// Notes that a request is answered, and returns its memory. The answer must be [`Unwritten`] by then.
    pub fn note_answered(&self, id: &RequestId) -> Option<RequestMemory> {
        self.lock().requests.remove(id)?.memory
    }

    pub fn message(self: &Arc<Self>) -> Unwritten {
        self.lock().messages += 1;
        Unwritten(self.clone())
    }

    /// Waits until nothing is outstanding.
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
