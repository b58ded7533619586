//! Runs blocking work on a thread of its own, or on the caller's thread if none can be created.
//!
//! Tokio panics if it cannot create its first blocking thread, for instance because the user has reached the limit on
//! processes. The work then runs on the caller's thread: other calls wait a little longer, but none fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::task::{self, JoinError, JoinHandle};

/// The future result of blocking work.
pub enum Blocking<T> {
    OnThread(JoinHandle<Option<T>>),
    /// Done on the caller's thread; `None` once it was polled.
    Done(Option<T>),
}

/// Starts blocking work at once.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    // If tokio panics here, its queue still holds the work, and a later thread may try to run it again.
    let started = catch_unwind(AssertUnwindSafe(|| task::spawn_blocking(move || do_once(&theirs))));
    match started {
        Ok(handle) => Blocking::OnThread(handle),
        Err(_) => Blocking::Done(do_once(&work)),
    }
}

/// Runs the work, unless another thread has.
fn do_once<T>(work: &Mutex<Option<impl FnOnce() -> T>>) -> Option<T> {
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    work.map(|work| work())
}

impl<T> Future for Blocking<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        const ONCE: &str = "the work runs once, and its result is taken once";
        match self.get_mut() {
            Self::OnThread(handle) => {
                Pin::new(handle).poll(context).map_ok(|done| done.expect(ONCE))
            }
            Self::Done(done) => Poll::Ready(Ok(done.take().expect(ONCE))),
        }
    }
}

// The result is never pinned: it is moved out.
impl<T> Unpin for Blocking<T> {}
