//! What is to be sent over a stream.
//!
//! Everything that is there is written at once: small writes one after the other take milliseconds through some
//! transports. Messages are always taken. What runs print has to wait while there is much already, so that a message
//! never waits behind more than [`ENOUGH`].

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::codec::{DATA_HEADER, Frame, MAX_DATA, PipeId};

/// Above this many bytes, data has to wait.
const ENOUGH: usize = 256 << 10;

/// Nobody who reads leaves so much unread: a few of the longest messages.
const TOO_MUCH: usize = 128 << 20;

/// The memory that is kept while there is little to send.
const IDLE: usize = 4 << 10;

#[derive(Default)]
pub struct Outgoing {
    state: Mutex<State>,
    /// Notified when there is something to send, or nothing more will come.
    filled: Notify,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// Memory for what comes while the rest is written.
    spare: Vec<u8>,
    /// How many bytes were sent since the last [`Outgoing::relax`].
    sent: usize,
    closed: bool,
    /// Those who wait for room.
    waiting: Vec<Waker>,
}

impl Outgoing {
    /// Fails only if the message is too long.
    pub fn message<M: Serialize>(&self, message: M) -> Result<(), super::codec::CodecError> {
        self.frame(&Frame::Message(message))
    }

    pub fn end(&self, pipe: PipeId) {
        let sent = self.frame(&Frame::<()>::End(pipe));
        debug_assert!(sent.is_ok(), "it has a fixed length");
    }

    pub fn credit(&self, pipe: PipeId, bytes: u32) {
        let sent = self.frame(&Frame::<()>::Credit(pipe, bytes));
        debug_assert!(sent.is_ok(), "it has a fixed length");
    }

    fn frame<M: Serialize>(&self, frame: &Frame<'_, M>) -> Result<(), super::codec::CodecError> {
        let mut state = self.lock();
        if !state.closed {
            frame.encode(&mut state.bytes)?;
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Sends what `read` reads into the room behind what is there, at most so many bytes, and returns how many those
    /// were.
    pub fn data(
        &self,
        pipe: PipeId,
        limit: usize,
        read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<&mut [u8]>,
    ) -> io::Result<usize> {
        let mut state = self.lock();
        let start = state.bytes.len();
        let limit = limit.min(MAX_DATA);
        state.bytes.extend_from_slice(&[0; DATA_HEADER]);
        state.bytes.reserve(limit);
        let read = read(&mut state.bytes.spare_capacity_mut()[..limit]).map(|read| read.len());
        let length = *read.as_ref().unwrap_or(&0);
        if length == 0 || state.closed {
            state.bytes.truncate(start);
            return read;
        }
        // SAFETY: so many bytes of the spare capacity were read into.
        unsafe { state.bytes.set_len(start + DATA_HEADER + length) };
        state.bytes[start..start + DATA_HEADER].copy_from_slice(&pipe.data_header(length));
        self.filled.notify_one();
        read
    }

    /// Ready when there is room for data.
    pub fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.bytes.len() < ENOUGH {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Gives back memory if little was sent since the last time.
    pub fn relax(&self) {
        let mut state = self.lock();
        let sent = std::mem::take(&mut state.sent);
        if sent < IDLE {
            state.bytes.shrink_to(IDLE);
            state.spare.shrink_to(IDLE);
        }
    }

    /// Whether so much waits that nobody can be reading it.
    pub fn is_stuck(&self) -> bool {
        self.lock().bytes.len() > TOO_MUCH
    }

    /// Nothing more is taken. What is there is still written.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Writes all that is to be sent, until this is closed.
    pub async fn write_to(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        loop {
            let (mut bytes, closed) = {
                let mut state = self.lock();
                let spare = std::mem::take(&mut state.spare);
                let bytes = std::mem::replace(&mut state.bytes, spare);
                state.sent += bytes.len();
                state.waiting.drain(..).for_each(Waker::wake);
                (bytes, state.closed)
            };
            let is_empty = bytes.is_empty();
            if !is_empty {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
                bytes.clear();
            }
            self.lock().spare = bytes;
            if is_empty && closed {
                return Ok(());
            }
            if is_empty {
                self.filled.notified().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
