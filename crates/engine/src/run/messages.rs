//! Messages to a run's task.

use std::time::Duration;

use mcpz_agent::{Answer, EncodedRules, Question};
use mcpz_output::Output;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Something to do with a run, from here or through the control socket of another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunAction {
    Write {
        bytes: Vec<u8>,
        /// Whether a person typed it.
        person: bool,
        /// How much must have been written before, if the policy judged the bytes as a continuation of that.
        before: Option<u64>,
    },
    /// No more input follows.
    CloseInput,
    Signal(i32),
    /// What ends it from now on counts as a stop.
    Stopping,
    /// Ends all of it, and kills what is left after the grace.
    Stop {
        grace: Duration,
    },
    /// Allows its processes to execute more than before.
    Permit(EncodedRules),
}

/// What a run's task receives. When all senders are gone, a run without an outcome is cancelled.
#[derive(Debug)]
pub(crate) enum Message {
    Do(RunAction),
    Cancel,
    /// A question for the run's keeper.
    Look(Question, oneshot::Sender<Answer>),
    /// It has become a job: its deadline is lifted, and what it leaves running belongs to the job.
    BecomeJob,
    /// From now on its output goes elsewhere. The sender is notified once everything before is kept.
    Switch(Output, oneshot::Sender<()>),
}
