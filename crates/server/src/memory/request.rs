//! The memory of one request and its answer.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::{Direction, MemoryAccount, Reservation};

/// Room for a request until it is answered, and room for the answer from before it is built until the transport counts
/// it. It travels to the handler in the request's extensions.
#[derive(Debug, Clone)]
pub struct RequestMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    account: Arc<MemoryAccount>,
    _request: Option<Arc<Reservation>>,
    answer: Mutex<Option<Reservation>>,
}

impl RequestMemory {
    pub fn new(account: Arc<MemoryAccount>, request: Option<Arc<Reservation>>) -> Self {
        Self(Arc::new(Shared { account, _request: request, answer: Mutex::default() }))
    }

    /// Waits until there is room for an answer of about this size, or the request is cancelled.
    pub async fn wait_for_room(&self, bytes: usize, cancelled: &CancellationToken) {
        // Release first: calls that each hold some room while waiting for more would deadlock.
        self.release_answer();
        let room = self.0.account.wait_to_reserve(Direction::Outgoing, bytes);
        let reserved = cancelled.run_until_cancelled(room).await;
        *self.0.answer.lock().unwrap_or_else(PoisonError::into_inner) = reserved;
    }

    /// Releases the room for the answer: from now on the transport counts it.
    pub fn release_answer(&self) {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
