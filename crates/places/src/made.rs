//! A place that was made.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::child::Child;
use crate::error::PlaceError;

/// A place that was made, with a stream to the agent that starts in it.
pub struct Made {
    pub stream: Box<dyn ByteStream>,
    pub ending: Box<dyn Ending>,
}

pub trait ByteStream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> ByteStream for S {}

/// What is left to do when a place has ended.
pub trait Ending: Send {
    /// The place is open. What was said until now does not tell why it ends.
    fn opened(&mut self) {}

    /// Why the place has ended, if it was not us who ended it and somebody can tell. Does not take long.
    fn reason(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async { None })
    }

    /// Ends what leads to the place, and removes what was made for it. Returns what it has said, if that may explain a
    /// failure.
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = String> + Send>>;
}

impl Made {
    pub fn through(mut child: Child) -> Result<Self, PlaceError> {
        Ok(Self { stream: Box::new(child.take_stream()?), ending: Box::new(child) })
    }
}

impl Ending for Child {
    fn opened(&mut self) {
        self.forget_words();
    }

    fn reason(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(self.last_words())
    }

    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin((*self).end())
    }
}
