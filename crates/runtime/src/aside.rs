//! Work that may block, on a thread of its own, or on the caller's if no thread can be created.
//!
//! The runtime panics when it cannot create its first thread, for instance because the user has reached a
//! limit on processes. Such work then runs on the caller's thread: other calls wait a little longer, but
//! none of them fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// What comes of work that was put aside.
pub enum Aside<T> {
    Elsewhere(JoinHandle<Option<T>>),
    /// Until it was taken.
    Done(Option<T>),
}

/// Puts work aside that may block.
pub fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Aside<T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    // A runtime that could not make a thread still has the work in its queue, for one it makes later.
    let started = catch_unwind(AssertUnwindSafe(|| spawn_blocking(move || do_once(&theirs))));
    match started {
        Ok(handle) => Aside::Elsewhere(handle),
        Err(_) => Aside::Done(do_once(&work)),
    }
}

/// Does what nobody has done yet.
fn do_once<T>(work: &Mutex<Option<impl FnOnce() -> T>>) -> Option<T> {
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    work.map(|work| work())
}

impl<T> Future for Aside<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        const ONCE: &str = "it is done once, and asked for once";
        match self.get_mut() {
            Self::Elsewhere(handle) => {
                Pin::new(handle).poll(context).map_ok(|done| done.expect(ONCE))
            }
            Self::Done(done) => Poll::Ready(Ok(done.take().expect(ONCE))),
        }
    }
}

// What is kept is never pinned: it is moved out.
impl<T> Unpin for Aside<T> {}
