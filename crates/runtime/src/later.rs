//! Deferred work, to keep it off the path of an answer.
//!
//!     add ─▶ queue ─┬─ catch_up ──▶ done, when the runtime is idle
//!                   ├─ timer ─────▶ done, if the runtime stays busy
//!                   └─ drop ──────▶ done, if the runtime ends
//!
//! The code that builds the runtime calls [`Later::catch_up`] when there is nothing else to do: an answer was sent,
//! or a command was started. Nothing that was added is ever lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

/// How long work is deferred at most.
const MAX_DELAY: Duration = Duration::from_millis(100);

type Work = Box<dyn FnOnce() + Send>;

/// A queue of deferred work. Clones share it.
#[derive(Clone, Default)]
pub struct Later {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    work: Vec<Work>,
    /// Whether a timer is set.
    promised: bool,
}

impl Later {
    pub fn add(&self, work: impl FnOnce() + Send + 'static) {
        let promised = {
            let mut shared = self.lock();
            shared.work.push(Box::new(work));
            std::mem::replace(&mut shared.promised, true)
        };
        if promised {
            return;
        }
        let promise = Promise(self.clone());
        // Without a runtime the promise is dropped at once, which does the work.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(MAX_DELAY).await;
                drop(promise);
            });
        }
    }

    /// Does all work now, in the order it was added, including what is added meanwhile.
    pub fn catch_up(&self) {
        self.do_all(false);
    }

    fn do_all(&self, last: bool) {
        while let Some(work) = self.next(last) {
            work.into_iter().for_each(|work| work());
        }
    }

    /// The work to do. If there is none and `last` is set, the next `add` sets a new timer.
    fn next(&self, last: bool) -> Option<Vec<Work>> {
        let mut shared = self.lock();
        if shared.work.is_empty() {
            shared.promised &= !last;
            return None;
        }
        Some(std::mem::take(&mut shared.work))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does the work when it is dropped: by the timer, or by a runtime that ends.
struct Promise(Later);

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.do_all(true);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_was_put_off_is_done_in_its_order_after_a_moment() {
        let (later, (done, mut told)) = (Later::default(), mpsc::unbounded_channel());
        for number in 0..3 {
            let done = done.clone();
            later.add(move || done.send(number).unwrap());
        }
        assert!(told.try_recv().is_err());
        for number in 0..3 {
            assert_eq!(told.recv().await, Some(number));
        }
    }

    #[test]
    fn what_was_put_off_is_done_when_the_runtime_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (done, mut told) = mpsc::unbounded_channel();
        let later = Later::default();
        runtime.block_on(async {
            let more = later.clone();
            later.add(move || more.add(move || done.send("done").unwrap()));
        });
        assert!(told.try_recv().is_err());
        drop(runtime);
        assert_eq!(told.try_recv(), Ok("done"));
        later.add(|| {});
        assert!(later.lock().work.is_empty(), "where there is no runtime, it is done at once");
    }
}
