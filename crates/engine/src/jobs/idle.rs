//! Jobs nobody has any use for are ended.
//!
//! A job is used while somebody waits for it or has a command carried out in its session, and when it
//! is asked for or prints something. One timer for each job sleeps until the time could be over; a
//! job that is used meanwhile is looked at again then, not before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{EndState, Job, STOP_GRACE};

/// How a job is used.
#[derive(Debug)]
pub struct Uses {
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// How many use it now.
    now: usize,
    last: Instant,
    /// How long nobody did, when it was ended for that.
    expired: Option<Duration>,
}

/// As long as there is this, a job is used.
#[derive(Debug)]
pub struct Use(Arc<Job>);

impl Drop for Use {
    fn drop(&mut self) {
        let mut seen = self.0.uses.lock();
        seen.now -= 1;
        seen.last = Instant::now();
    }
}

impl Default for Uses {
    fn default() -> Self {
        let seen = Seen { now: 0, last: Instant::now(), expired: None };
        Self { seen: Mutex::new(seen) }
    }
}

impl Uses {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Begins to use it.
    pub fn begin_use(self: &Arc<Self>) -> Use {
        self.uses.lock().now += 1;
        Use(self.clone())
    }

    /// How long nobody used it, if that is why it was ended.
    pub fn expired(&self) -> Option<Duration> {
        self.uses.lock().expired
    }

    /// How long it may go on without being used, or `None` if that is over.
    fn time_left(&self, limit: Duration) -> Option<Duration> {
        let mut seen = self.uses.lock();
        if seen.now > 0 {
            return Some(limit);
        }
        let last = self.output.last_arrival().map_or(seen.last, |printed| printed.max(seen.last));
        let left = limit.checked_sub(last.elapsed()).filter(|left| !left.is_zero());
        if left.is_none() {
            seen.expired = Some(limit);
        }
        left
    }
}

/// Ends a job with all it started when nobody has used it for so long.
pub async fn end_unused(job: Arc<Job>, limit: Duration) {
    let mut end = job.end.clone();
    while let Some(left) = job.time_left(limit) {
        let over =
            async { end.wait_for(|ended: &EndState| ended.survivors.is_some()).await.is_ok() };
        tokio::select! {
            _ = over => return,
            () = sleep(left) => {}
        }
    }
    job.stop(None, STOP_GRACE).await;
}
