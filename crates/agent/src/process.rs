//! One run, on this machine or in a place.

use std::time::Duration;

use crate::inspect::Question;
use crate::near_process::NearProcess;
use crate::process_event::ProcessEvent;
use crate::stream::FarProcess;

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
