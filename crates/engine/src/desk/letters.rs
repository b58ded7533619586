//! What is said at a desk, as frames.

use std::io;
use std::time::{Duration, SystemTime};

use mcpz_agent::{Answer, Question, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::detached::Ending;
use crate::jobs::State;
use crate::run::{Life, Saying};
use mcpz_output::Stream;

/// How much is read at a time.
const READ_SIZE: usize = 64 << 10;

/// What somebody wants to know or to have done. Jobs are named by their runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    List,
    /// What a job has printed and, if somebody stays, what it prints and what becomes of it, until
    /// nothing is left of it.
    Follow {
        run: String,
        wanted: Wanted,
        stay: bool,
    },
    /// Something its keeper knows.
    Look {
        run: String,
        question: Question,
    },
    Say {
        run: String,
        saying: Saying,
    },
}

/// Which part of what a job prints somebody wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    Everything,
    /// From so many bytes of stdout on.
    After(u64),
    /// From so many bytes before its end on.
    Last(u64),
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tell {
    Jobs(Vec<Listed>),
    NoSuchJob,
    Output {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
    Life(Life),
    /// What was asked for with `Look`, if anybody can tell.
    Seen(Option<Answer>),
    Ended(Ending),
    /// Nothing is told to this visitor, and why.
    Refused(String),
    /// Output for which there was no room any more, so that it is nowhere else. What is missing before
    /// it was lost.
    Passing {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
}

/// A job, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub run: String,
    /// What a model calls it.
    pub name: String,
    pub owner: String,
    pub command: String,
    pub state: State,
    pub pid: Option<i32>,
    pub started_at: SystemTime,
    pub duration: Duration,
    pub terminal: bool,
    pub detached: bool,
    /// Whether it can be written to.
    pub writable: bool,
}

/// One side's letters, as they arrive.
pub struct Mailbox<R> {
    stream: R,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Mailbox<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    /// The next letter; nothing when there are no more, or what comes is none. Nothing is lost if it
    /// is dropped before it is done.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            match decode(&self.bytes) {
                Ok(Some((letter, length))) => {
                    self.bytes.drain(..length);
                    return Some(letter);
                }
                Ok(None) => {}
                Err(_) => return None,
            }
            self.bytes.reserve(READ_SIZE);
            if self.stream.read_buf(&mut self.bytes).await.ok()? == 0 {
                return None;
            }
        }
    }
}

pub fn letter<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
