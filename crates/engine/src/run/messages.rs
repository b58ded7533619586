//! What a run's task is told while the run goes on.

use std::time::Duration;

use mcpz_agent::{Answer, Question};
use mcpz_output::Output;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// What someone does with a run, here or through the control socket of another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Write {
        bytes: Vec<u8>,
        /// Whether a person typed it.
        person: bool,
        /// How much must have been written before, if the bytes were judged as a continuation of that.
        before: Option<u64>,
    },
    /// Nothing more is written.
    CloseInput,
    Signal(i32),
    /// What ends it now counts as a stop.
    Stopping,
    /// All of it is to end; what does not within this time is killed.
    Stop {
        grace: Duration,
    },
}

/// What a run's task receives. When all senders are gone, a run that was not answered for is cancelled.
#[derive(Debug)]
pub(crate) enum Message {
    Do(Action),
    Cancel,
    /// Asks the run's keeper something.
    Look(Question, oneshot::Sender<Answer>),
    /// It has become a job: its deadline is lifted, and what it leaves running belongs to the job.
    BecomeJob,
    /// What it prints from now on belongs to another output. The sender is told when everything before is kept.
    Switch(Output, oneshot::Sender<()>),
}
