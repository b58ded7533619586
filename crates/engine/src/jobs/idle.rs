//! Ends jobs that nobody uses.
//!
//! A job is in use while someone waits for it or runs a command in its session, and at the moment it is looked up or
//! prints something. Each job has one timer, which sleeps until the job could have expired and then checks when it was
//! last used. Using a job costs nothing, and an idle job wakes nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{EndState, Job};

/// When a job was last used.
#[derive(Debug)]
pub struct IdleClock {
    activity: Mutex<Activity>,
}

#[derive(Debug)]
struct Activity {
    /// How many use it now.
    users: usize,
    last: Instant,
    /// How long it was idle, if that ended it.
    expired: Option<Duration>,
}

/// Keeps a job in use.
#[derive(Debug)]
pub struct UseGuard(Arc<Job>);

impl Drop for UseGuard {
    fn drop(&mut self) {
        let mut activity = self.0.idle_clock.lock();
        activity.users -= 1;
        activity.last = Instant::now();
    }
}

impl Default for IdleClock {
    fn default() -> Self {
        let activity = Activity { users: 0, last: Instant::now(), expired: None };
        Self { activity: Mutex::new(activity) }
    }
}

impl IdleClock {
    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Marks it as in use.
    pub fn begin_use(self: &Arc<Self>) -> UseGuard {
        self.idle_clock.lock().users += 1;
        UseGuard(self.clone())
    }

    /// How long it was idle, if that ended it.
    pub fn expired(&self) -> Option<Duration> {
        self.idle_clock.lock().expired
    }

    /// How much longer it may be idle, or `None` if its time is up.
    fn time_left(&self, limit: Duration) -> Option<Duration> {
        let mut activity = self.idle_clock.lock();
        if activity.users > 0 {
            return Some(limit);
        }
        let last =
            self.output.last_arrival().map_or(activity.last, |printed| printed.max(activity.last));
        let left = limit.checked_sub(last.elapsed()).filter(|left| !left.is_zero());
        if left.is_none() {
            activity.expired = Some(limit);
        }
        left
    }
}

/// Ends a job and everything it started once nobody has used it for this long.
pub async fn end_when_idle(job: Arc<Job>, limit: Duration) {
    let mut end = job.end.clone();
    while let Some(left) = job.time_left(limit) {
        let over =
            async { end.wait_for(|ended: &EndState| ended.survivors.is_some()).await.is_ok() };
        tokio::select! {
            _ = over => return,
            () = sleep(left) => {}
        }
    }
    job.stop(None, Job::STOP_GRACE).await;
}
