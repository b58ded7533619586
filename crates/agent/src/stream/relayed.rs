//! One run in a place, as its relay sees it.

use std::sync::Arc;

use rustix::io::Errno;
use tokio::sync::mpsc;

use super::backlog::Waiting;
use super::codec::{FromPlace, REPLIES, RunEvent, RunRequest, STDERR, STDIN, STDOUT, StartedPipes};
use super::outgoing::Outgoing;
use super::pipes::{Arrival, Pipes};
use crate::frame::{Failure, Stage};
use crate::near_process::NearProcess;
use crate::process_event::{ProcessEvent, Started};

/// What the server sends for a run.
pub enum Order {
    Arrived(Arrival),
    Request(RunRequest),
}

pub struct RelayedRun {
    run: u64,
    outgoing: Arc<Outgoing>,
    pipes: Pipes,
    /// An event that waits until all that was printed before it is sent.
    held: Option<RunEvent>,
}

impl RelayedRun {
    pub fn new(run: u64, outgoing: Arc<Outgoing>) -> Self {
        let pipes = Pipes::new(run, outgoing.clone());
        Self { run, outgoing, pipes, held: None }
    }

    /// Reports that nothing could be started.
    pub fn fail(self, failure: Failure) {
        self.report(RunEvent::Failed(failure));
    }

    fn report(&self, event: RunEvent) {
        // Only a request to start something can be too long.
        let _ = self.outgoing.message(FromPlace::Run { run: self.run, event });
    }

    /// Passes everything on until the run has ended. If the server loses interest, the run is ended.
    pub async fn relay(
        mut self,
        mut process: NearProcess,
        mut orders: mpsc::UnboundedReceiver<(Order, Waiting)>,
    ) {
        loop {
            if self.pipes.drain()
                && let Some(event) = self.held.take()
            {
                let is_last = event.is_last();
                self.report(event);
                if is_last {
                    return;
                }
            }
            tokio::select! {
                biased;
                order = orders.recv() => {
                    let Some((order, _waiting)) = order else { return };
                    if !self.obey(&mut process, order) {
                        return self.report(RunEvent::Lost);
                    }
                }
                event = process.next(), if self.held.is_none() => {
                    let event = match event {
                        ProcessEvent::Started(started) => self.started(started),
                        ProcessEvent::Answered(answer) => {
                            self.report(RunEvent::Answered(answer));
                            None
                        }
                        ProcessEvent::NotStarted(_) => Some(RunEvent::NotStarted),
                        // Its agent was killed, and it ended for that.
                        _ if process.is_orphaned() => Some(RunEvent::Lost),
                        ProcessEvent::Exited { exit, gone } => Some(RunEvent::Exited { exit, gone }),
                        ProcessEvent::Gone { survivors, limit } => {
                            Some(RunEvent::Gone { survivors, limit })
                        }
                        ProcessEvent::Failed(failure) => Some(RunEvent::Failed(failure)),
                        ProcessEvent::Lost => Some(RunEvent::Lost),
                    };
                    if event.is_some() {
                        self.pipes.begin_drain();
                    }
                    self.held = event;
                }
                () = self.pipes.step() => {}
            }
        }
    }

    /// False if the server broke the protocol.
    fn obey(&mut self, process: &mut NearProcess, order: Order) -> bool {
        match order {
            Order::Arrived(arrival) => return self.pipes.take(arrival).is_ok(),
            Order::Request(RunRequest::Kill { grace }) => process.kill(grace),
            Order::Request(RunRequest::Signal(signal)) => process.signal(signal),
            Order::Request(RunRequest::Ask(question)) => process.ask(question),
        }
        true
    }

    /// Takes the pipes of a program that runs, and reports it.
    fn started(&mut self, started: Started) -> Option<RunEvent> {
        let Started { pid, stdout, stderr, stdin, replies } = started;
        let terminal = stderr.is_none();
        let pipes = StartedPipes {
            terminal,
            stderr: stderr.is_some(),
            stdin: stdin.is_some(),
            replies: replies.is_some(),
        };
        let added = self
            .pipes
            .add_source(STDOUT, stdout, terminal)
            .and_then(|()| stderr.map_or(Ok(()), |fd| self.pipes.add_source(STDERR, fd, false)))
            .and_then(|()| replies.map_or(Ok(()), |fd| self.pipes.add_source(REPLIES, fd, false)))
            .and_then(|()| stdin.map_or(Ok(()), |fd| self.pipes.add_sink(STDIN, fd)));
        match added {
            Ok(()) => {
                self.report(RunEvent::Started { pid, pipes });
                None
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::MFILE.raw_os_error());
                Some(RunEvent::Failed(Failure { stage: Stage::Resources, errno }))
            }
        }
    }
}
