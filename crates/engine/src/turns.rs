//! Limits how many commands run at once. Others wait for their turn, up to a limit; beyond it they fail with
//! [`Error::Busy`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::settings::RunLimits;

#[derive(Debug)]
pub struct Turns {
    all: Arc<Semaphore>,
    waiting: AtomicUsize,
    limits: RunLimits,
}

/// One owner's share.
#[derive(Debug)]
pub struct Share {
    runs: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to run a command, returned when dropped.
#[derive(Debug)]
pub struct Turn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    pub fn new(limits: RunLimits) -> Self {
        let all = Arc::new(Semaphore::new(limits.total));
        Self { all, waiting: AtomicUsize::new(0), limits }
    }

    pub fn share(&self) -> Share {
        let runs = Arc::new(Semaphore::new(self.limits.per_owner));
        Share { runs, waiting: AtomicUsize::new(0) }
    }

    /// Waits until one more command may run.
    pub async fn take(&self, share: &Share) -> Result<Turn, Error> {
        if let Ok(_own) = share.runs.clone().try_acquire_owned()
            && let Ok(_all) = self.all.clone().try_acquire_owned()
        {
            return Ok(Turn { _own, _all });
        }
        // Half of all waiting places at most, so that one owner cannot take those of others.
        let _own_waiter = join_queue(&share.waiting, self.limits.waiting.div_ceil(2))?;
        let _waiter = join_queue(&self.waiting, self.limits.waiting)?;
        // The owner's own limit first: a command that waits for it must not hold a place that others could use.
        let _own = share.runs.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let _all = self.all.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        Ok(Turn { _own, _all })
    }
}

fn join_queue(waiting: &AtomicUsize, limit: usize) -> Result<Waiter<'_>, Error> {
    let waiter = Waiter(waiting);
    match waiting.fetch_add(1, Ordering::Relaxed) < limit {
        true => Ok(waiter),
        false => Err(Error::Busy),
    }
}

/// A command that waits.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(total: usize, per_owner: usize, waiting: usize) -> Turns {
        Turns::new(RunLimits { total, per_owner, waiting, ..RunLimits::default() })
    }

    #[tokio::test]
    async fn commands_wait_for_a_turn_and_fail_when_too_many_wait() {
        let turns = turns(9, 1, 1);
        let share = turns.share();
        let first = turns.take(&share).await.unwrap();
        let mut second = Box::pin(turns.take(&share));
        assert!(futures_now(&mut second).is_none(), "it waits");
        assert!(matches!(turns.take(&share).await, Err(Error::Busy)));
        drop(first);
        second.await.unwrap();
        turns.take(&share).await.unwrap();
    }

    #[tokio::test]
    async fn one_owner_cannot_take_all_turns() {
        let turns = turns(2, 1, 9);
        let (greedy, modest) = (turns.share(), turns.share());
        let _one = turns.take(&greedy).await.unwrap();
        let mut two = Box::pin(turns.take(&greedy));
        assert!(futures_now(&mut two).is_none());
        turns.take(&modest).await.unwrap();
    }

    /// The result of a future, if it is ready now.
    fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
