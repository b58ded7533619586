//! What is said on a control socket, as frames.

use std::io;
use std::time::{Duration, SystemTime};

use mcpz_agent::{Answer, Question, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::jobs::{JobEnd, State};
use crate::run::{Action, Life};
use mcpz_output::Stream;

/// How much is read at a time.
const READ_SIZE: usize = 64 << 10;

/// What is asked. Jobs are named by their runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    List,
    /// What a job has printed and, with `stay`, what it prints and what becomes of it until nothing of it is left.
    Follow {
        run: String,
        wanted: OutputRange,
        stay: bool,
    },
    /// A question for its keeper.
    Look {
        run: String,
        question: Question,
    },
    Say {
        run: String,
        saying: Action,
    },
}

/// Which part of a job's output to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputRange {
    Everything,
    /// From so many bytes of stdout on.
    After(u64),
    /// From so many bytes before its end on.
    Last(u64),
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Jobs(Vec<JobListing>),
    NoSuchJob,
    Output {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
    Life(Life),
    /// What was asked for with `Look`, if anybody can tell.
    Seen(Option<Answer>),
    Ended(JobEnd),
    /// Access is denied, for this reason.
    Refused(String),
    /// Output that could not be kept, and is sent once. What is missing before it was lost.
    Passing {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobListing {
    pub run: String,
    /// Its id in the tools.
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

/// Reads messages from a stream.
pub struct MessageReader<R> {
    stream: R,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    /// The next message; nothing at the end of the stream, or when it is garbage. Nothing is lost if the future is
    /// dropped before it is done.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            match decode(&self.bytes) {
                Ok(Some((message, length))) => {
                    self.bytes.drain(..length);
                    return Some(message);
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

pub fn message<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
