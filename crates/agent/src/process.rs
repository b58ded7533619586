//! One run, on this machine or in a place.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::frame::{Exit, Failure};
use crate::inspect::{Answer, Question};
use crate::limits::Limit;
use crate::near_process::NearProcess;
use crate::spawn_frame::SpawnFrame;
use crate::stream::FarProcess;

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

/// A run. Dropped before it is over, it is ended.
pub struct Process(Whereabouts);

enum Whereabouts {
    Near(Box<NearProcess>),
    Far(FarProcess),
}

impl Process {
    /// The next event; `Lost` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> ProcessEvent {
        match &mut self.0 {
            Whereabouts::Near(process) => process.next().await,
            Whereabouts::Far(process) => process.next().await,
        }
    }

    /// Whether the agent was killed or the place is gone, which ends the run.
    pub fn is_orphaned(&self) -> bool {
        match &self.0 {
            Whereabouts::Near(process) => process.is_orphaned(),
            Whereabouts::Far(process) => process.is_orphaned(),
        }
    }

    /// Sends SIGTERM to the whole process tree, and SIGKILL to what is left after the grace.
    pub fn kill(&mut self, grace: Duration) {
        match &mut self.0 {
            Whereabouts::Near(process) => process.kill(grace),
            Whereabouts::Far(process) => process.kill(grace),
        }
    }

    /// Sends a signal to the first process.
    pub fn signal(&mut self, signal: i32) {
        match &mut self.0 {
            Whereabouts::Near(process) => process.signal(signal),
            Whereabouts::Far(process) => process.signal(signal),
        }
    }

    /// Asks a question about it. [`ProcessEvent::Answered`] carries the answer, unless the run ends first.
    pub fn ask(&mut self, question: Question) {
        match &mut self.0 {
            Whereabouts::Near(process) => process.ask(question),
            Whereabouts::Far(process) => process.ask(question),
        }
    }
}

impl From<NearProcess> for Process {
    fn from(process: NearProcess) -> Self {
        Self(Whereabouts::Near(Box::new(process)))
    }
}

impl From<FarProcess> for Process {
    fn from(process: FarProcess) -> Self {
        Self(Whereabouts::Far(process))
    }
}
