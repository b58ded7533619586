//! What stands under the name of a session: its shell, once somebody has begun it, and a queue.
//!
//! Whoever is first in the queue and finds no shell begins one; the others find it when it is their
//! turn. So calls that come together share one shell, and it carries them out in the order they came.

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

/// A place in the queue of a session, from when it is made. Dropped, it is given up.
pub(crate) struct Queued(Pin<Box<dyn Future<Output = Result<Turn, Error>> + Send>>);

/// The session carries out nobody else's order.
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Default for Slot {
    fn default() -> Self {
        Self { queue: Arc::new(Semaphore::new(1)), session: Mutex::default() }
    }
}

impl Slot {
    /// The shell, if there is one that carries out orders.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.lock().clone().filter(|session| session.is_alive())
    }

    /// Notes the shell, for as long as it lives: what is left of it holds descriptors.
    pub fn set_session(self: &Arc<Self>, session: Arc<Session>) {
        let (slot, job) = (Arc::downgrade(self), session.job.clone());
        *self.lock() = Some(session);
        tokio::spawn(async move {
            job.gone().await;
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
        let permit = self.queue.clone().acquire_owned();
        let turn = async { Ok(Turn { _permit: permit.await.map_err(|_| Error::Closed)? }) };
        let mut turn: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(turn);
        // A place is taken when it is first asked for.
        match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Queued(Box::pin(std::future::ready(ready))),
            Poll::Pending => Queued(turn),
        }
    }

    /// Whether there is a shell, or somebody who waits for one.
    pub(super) fn is_used(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.session().is_some()
    }
}

impl Queued {
    pub async fn turn(self) -> Result<Turn, Error> {
        self.0.await
    }
}

impl From<Turn> for Queued {
    fn from(turn: Turn) -> Self {
        Self(Box::pin(std::future::ready(Ok(turn))))
    }
}
