//! Answers calls that panic.
//!
//! The protocol's library runs each request in a task of its own, and sends nothing if the task panics: the client
//! would wait for ever. Releases unwind for this (no `panic = "abort"`), so one call fails and the others go on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::ErrorData;

/// What the client reads. The reason is on stderr.
pub const FAILED: &str = "the server failed to run this call; its log says why";

#[derive(Debug, thiserror::Error)]
#[error("{FAILED}")]
pub struct Panicked;

impl From<Panicked> for ErrorData {
    fn from(_: Panicked) -> Self {
        Self::internal_error(FAILED, None)
    }
}

/// A future whose panic is a result.
pub struct CatchPanic<F>(Pin<Box<F>>);

impl<F> CatchPanic<F> {
    pub fn new(work: F) -> Self {
        Self(Box::pin(work))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // It is not polled again, and everything it shares with others stays consistent: poisoned locks are taken over
        // as they are.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_result() {
        assert!(matches!(CatchPanic::new(async { 7 }).await, Ok(7)));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("as it should")
        };
        let caught: Result<(), Panicked> = CatchPanic::new(panics).await;
        assert_eq!(ErrorData::from(caught.err().unwrap()).message, FAILED);
    }
}
