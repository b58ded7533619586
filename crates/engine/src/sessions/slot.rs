//! What the name of a session stands for: its shell, once someone has started it, and a queue.
//!
//! Calls join the queue as they arrive. The first one that finds no shell starts one; the others find it when it is
//! their turn. So concurrent calls share one shell, which runs them in the order they came.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Session;
use crate::error::Error;

#[derive(Debug)]
pub(crate) struct Slot {
    queue: Arc<Semaphore>,
    session: Mutex<Option<Arc<Session>>>,
}

/// A place in the queue of a session, taken when this is made and given up when it is dropped.
pub(crate) struct Queued(Pin<Box<dyn Future<Output = Result<SessionPermit, Error>> + Send>>);

/// The exclusive right to use a session's shell.
pub(crate) struct SessionPermit {
    _permit: OwnedSemaphorePermit,
}

impl Default for Slot {
    fn default() -> Self {
        Self { queue: Arc::new(Semaphore::new(1)), session: Mutex::default() }
    }
}

impl Slot {
    /// The shell, if one takes commands.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.lock().clone().filter(|session| session.is_alive())
    }

    /// Sets the shell, and removes it when it has ended: it holds descriptors.
    pub fn set_session(self: &Arc<Self>, session: Arc<Session>) {
        let (slot, job) = (Arc::downgrade(self), session.job.clone());
        *self.lock() = Some(session);
        tokio::spawn(async move {
            job.wait_until_gone().await;
            if let Some(slot) = slot.upgrade() {
                slot.lock().take_if(|session| !session.is_alive());
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place in the queue.
    pub fn queue(&self) -> Queued {
        let acquiring = self.queue.clone().acquire_owned();
        let permit =
            async { Ok(SessionPermit { _permit: acquiring.await.map_err(|_| Error::Closed)? }) };
        let mut permit: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(permit);
        // The semaphore queues a future when it is first polled.
        match permit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Queued(Box::pin(std::future::ready(ready))),
            Poll::Pending => Queued(permit),
        }
    }

    /// Whether it has a shell, or someone waits for one.
    pub(super) fn is_used(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.session().is_some()
    }
}

impl Queued {
    pub async fn permit(self) -> Result<SessionPermit, Error> {
        self.0.await
    }
}

impl From<SessionPermit> for Queued {
    fn from(permit: SessionPermit) -> Self {
        Self(Box::pin(std::future::ready(Ok(permit))))
    }
}
