//! Work that may block, on a thread of its own: or here, if there is none to be had.
//!
//! The runtime panics when it cannot make its first thread, and whoever has used up a limit of the
//! system would take down calls that have nothing to do with it. Work that cannot be put aside is done
//! at once instead, by whoever asks for it: others wait a moment longer, and nothing fails.

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
