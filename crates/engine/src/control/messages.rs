//! The messages on a control socket.
//!
//! They are encoded with postcard, which writes variants by position: add new ones at the end.

use std::io;
use std::time::{Duration, SystemTime};

use mcpz_agent::{Answer, Question, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::jobs::{JobEnd, JobState};
use crate::outcome::End;
use crate::run::{Life, RunAction};
use mcpz_output::Stream;

/// How much to read at a time.
const READ_SIZE: usize = 64 << 10;

/// A request. It names a job by its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlRequest {
    List,
    /// Send a job's output and, with `stay`, everything that happens to it until none of its processes is left.
    Follow {
        run: String,
        wanted: OutputRange,
        stay: bool,
    },
    /// Ask its keeper.
    Look {
        run: String,
        question: Question,
    },
    Do {
        run: String,
        action: RunAction,
    },
    Places,
    /// End the places with this name.
    StopPlaces {
        name: String,
    },
    /// List the outputs that are kept or, with a pattern, those with lines that match.
    Outputs {
        pattern: Option<String>,
    },
    /// Send the next piece of a kept output.
    Read {
        run: String,
        stream: Stream,
        at: u64,
    },
}

/// Which part of a job's output to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputRange {
    Everything,
    /// From this offset in stdout on.
    After(u64),
    /// From this many bytes before the end on.
    Last(u64),
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlReply {
    Jobs(Vec<JobListing>),
    NoSuchJob,
    Output {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
    Life(Life),
    /// The answer to `Look`, if there is one.
    Seen(Option<Answer>),
    Ended(JobEnd),
    /// Access is denied, for this reason.
    Refused(String),
    /// Output that could not be kept and is sent only once. Any gap before it was lost.
    Passing {
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    },
    Places(Vec<PlaceListing>),
    /// How many places were ended.
    StoppedPlaces(usize),
    /// One of the outputs. `OutputsEnd` follows the last.
    Kept(OutputListing),
    /// Whether all outputs were searched: there is only so much time.
    OutputsEnd {
        complete: bool,
    },
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceListing {
    pub name: String,
    /// What it is, in a few words.
    pub kind: String,
    /// Who uses it, unless everybody may.
    pub owner: Option<String>,
    pub session: Option<String>,
    /// How many commands run there.
    pub commands: usize,
    /// The ids of those among them that are jobs.
    pub jobs: Vec<String>,
    pub age: Duration,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobListing {
    pub run: String,
    /// Its id in the tools.
    pub name: String,
    pub owner: String,
    pub command: String,
    pub state: JobState,
    pub pid: Option<i32>,
    pub started_at: SystemTime,
    pub duration: Duration,
    pub terminal: bool,
    pub detached: bool,
    /// Whether it takes input.
    pub writable: bool,
}

/// A kept output in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputListing {
    pub run: String,
    pub owner: String,
    /// The start of the command; empty if it is not known.
    pub command: String,
    pub started_at: SystemTime,
    /// How it ended, and how long it took, once it has.
    pub end: Option<(End, Duration)>,
    pub is_job: bool,
    /// The first lines that match.
    pub lines: Vec<String>,
    /// Whether more lines match.
    pub more: bool,
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

    /// The next message, or `None` at the end of the stream and after garbage. Dropping the future loses nothing.
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
