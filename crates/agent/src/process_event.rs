//! What happens to a run.

use std::os::fd::OwnedFd;

use crate::frame::{Exit, Failure};
use crate::inspect::Answer;
use crate::limits::Limit;
use crate::spawn_frame::SpawnFrame;

/// What happens to one run, in this order.
#[derive(Debug)]
pub enum ProcessEvent {
    /// The keeper was killed, or was never started, before it read the request. Another agent can start
    /// the program.
    NotStarted(SpawnFrame),
    Failed(Failure),
    Started(Started),
    Exited {
        exit: Exit,
        gone: bool,
    },
    Gone {
        survivors: Vec<i32>,
        limit: Option<Limit>,
    },
    /// The answer to the oldest open question.
    Answered(Answer),
    /// The keeper was killed. Nothing of the run is left.
    Lost,
}

/// A program that runs, and our ends of its pipes, which do not block.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    /// Everything the program prints, if it has a terminal; otherwise its stdout.
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
    pub stdin: Option<OwnedFd>,
    /// What the program replies, if it has a pipe for that.
    pub replies: Option<OwnedFd>,
}
