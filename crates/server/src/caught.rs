//! Calls that panic are answered, too.
//!
//! The protocol's library runs each request in a task of its own, and says nothing of one that panics:
//! its client would wait for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::ErrorData;

/// What a client is told. Why is on stderr.
pub const FAILED: &str = "the server failed to carry out this call; its log says more";

/// The call panicked.
#[derive(Debug, thiserror::Error)]
#[error("{FAILED}")]
pub struct Panicked;

impl From<Panicked> for ErrorData {
    fn from(_: Panicked) -> Self {
        Self::internal_error(FAILED, None)
    }
}

/// Something to be done, whose panic is a way to end.
pub struct Caught<F>(Pin<Box<F>>);

impl<F> Caught<F> {
    pub fn new(work: F) -> Self {
        Self(Box::pin(work))
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // It is not polled again, and what it shares with others has no state in between: locks that
        // were held are taken over as they are.
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
    async fn a_panic_is_an_end_and_nothing_else_is() {
        assert!(matches!(Caught::new(async { 7 }).await, Ok(7)));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("as it should")
        };
        let caught: Result<(), Panicked> = Caught::new(panics).await;
        assert_eq!(ErrorData::from(caught.err().unwrap()).message, FAILED);
    }
}
