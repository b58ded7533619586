//! Work that need not be done while somebody waits for an answer.
//!
//! Whoever makes the runtime has it done when there is nothing else to do ([`Later::catch_up`]): the
//! answer has been sent, or a command was started and has to be waited for. A runtime that is always
//! busy does it after a moment, and one that ends before it is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

/// How long work is put off at most.
const MOMENT: Duration = Duration::from_millis(100);

type Work = Box<dyn FnOnce() + Send>;

/// Work that is put off. Clones share it.
#[derive(Clone, Default)]
pub struct Later {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    work: Vec<Work>,
    /// Whether somebody will look after a moment.
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
        // A runtime that ends drops it at once.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(MOMENT).await;
                drop(promise);
            });
        }
    }

    /// Does all of it now, in the order it was added, and what is added meanwhile.
    pub fn catch_up(&self) {
        self.do_all(false);
    }

    fn do_all(&self, last: bool) {
        while let Some(work) = self.next(last) {
            work.into_iter().for_each(|work| work());
        }
    }

    /// What there is to do. If there is nothing, and `last` holds, nobody will look again.
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

/// Kept when it is dropped, be it by a runtime that ends.
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
