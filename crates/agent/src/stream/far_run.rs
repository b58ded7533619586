//! One run in a place, as the server sees it.
//!
//! A task holds ordinary pipes for it: the engine reads the output of a run in a place, and writes its input, as it
//! does with any other.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::mpsc;

use super::backlog::Waiting;
use super::codec::{REPLIES, RunEvent, RunRequest, STDERR, STDIN, STDOUT, StartedPipes, ToPlace};
use super::far::{Far, Order, Orders};
use super::pipes::{Pipes, Position, Violation};
use crate::frame::{Failure, Stage};
use crate::inspect::Question;
use crate::process_event::{ProcessEvent, Started};
use crate::spawn_frame::SpawnFrame;

/// A run in a place.
pub struct FarProcess {
    far: Arc<Far>,
    events: mpsc::UnboundedReceiver<ProcessEvent>,
    orders: Orders,
    /// The request that starts the run, until the place has reported something.
    frame: Option<SpawnFrame>,
    over: bool,
}

impl FarProcess {
    pub(super) fn new(
        far: Arc<Far>,
        events: mpsc::UnboundedReceiver<ProcessEvent>,
        orders: Orders,
        frame: SpawnFrame,
    ) -> Self {
        Self { far, events, orders, frame: Some(frame), over: false }
    }

    /// The next event; `Lost` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> ProcessEvent {
        if self.over {
            return ProcessEvent::Lost;
        }
        let Some(event) = self.events.recv().await else {
            self.over = true;
            // The task ends without a word only if the place has not started it.
            return self.frame.take().map_or(ProcessEvent::Lost, ProcessEvent::NotStarted);
        };
        self.frame = None;
        self.over = match &event {
            ProcessEvent::Exited { gone, .. } => *gone,
            ProcessEvent::Started(_) | ProcessEvent::Answered(_) => false,
            _ => true,
        };
        event
    }

    /// Whether the place is gone, which ends the run.
    pub fn is_orphaned(&self) -> bool {
        self.far.is_closed()
    }

    pub fn kill(&mut self, grace: Duration) {
        self.request(RunRequest::Kill { grace });
    }

    pub fn signal(&mut self, signal: i32) {
        self.request(RunRequest::Signal(signal));
    }

    pub fn ask(&mut self, question: Question) {
        self.request(RunRequest::Ask(question));
    }

    fn request(&self, request: RunRequest) {
        let _ = self.orders.send((Order::Request(request), None));
    }
}

impl Drop for FarProcess {
    fn drop(&mut self) {
        let _ = self.orders.send((Order::Drop, None));
    }
}

/// The task of a run.
pub struct FarRun {
    run: u64,
    far: Arc<Far>,
    pipes: Pipes,
    events: mpsc::UnboundedSender<ProcessEvent>,
    /// Events that wait until what arrived before them is written.
    held: VecDeque<(Position, RunEvent)>,
    has_started: bool,
    has_exited: bool,
    /// Whether its last event has come.
    is_over: bool,
    /// How many questions are open.
    asked: usize,
}

/// What becomes of a task after an order.
enum Next {
    Continue,
    /// It is over here, and in the place.
    Over,
    /// Nobody is interested in it any more.
    Dropped,
}

impl FarRun {
    pub(super) fn start(
        run: u64,
        far: Arc<Far>,
        orders: mpsc::UnboundedReceiver<(Order, Option<Waiting>)>,
        events: mpsc::UnboundedSender<ProcessEvent>,
    ) {
        let pipes = Pipes::new(run, far.outgoing.clone());
        let task = Self {
            run,
            far,
            pipes,
            events,
            held: VecDeque::new(),
            has_started: false,
            has_exited: false,
            is_over: false,
            asked: 0,
        };
        tokio::spawn(task.serve(orders));
    }

    async fn serve(mut self, mut orders: mpsc::UnboundedReceiver<(Order, Option<Waiting>)>) {
        loop {
            let next = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some((order, _waiting)) => self.obey(order).unwrap_or_else(|violation| {
                        self.far.give_up(violation);
                        Next::Continue
                    }),
                    None => Next::Dropped,
                },
                () = self.pipes.step() => Next::Continue,
            };
            match next {
                Next::Continue if self.deliver() => break,
                Next::Continue => {}
                Next::Over => break,
                Next::Dropped => {
                    let _ = self.far.outgoing.message(ToPlace::Drop { run: self.run });
                    break;
                }
            }
        }
        self.far.forget(self.run);
    }

    fn obey(&mut self, order: Order) -> Result<Next, Violation> {
        match order {
            Order::Arrived(arrival) => self.pipes.take(arrival)?,
            Order::Event(RunEvent::NotStarted) => return Ok(Next::Over),
            Order::Event(RunEvent::Started { .. })
                if std::mem::replace(&mut self.has_started, true) =>
            {
                return Err(Violation("it started a run twice"));
            }
            Order::Event(RunEvent::Started { pid, pipes }) => match self.open(pid, pipes) {
                Ok(started) => drop(self.events.send(ProcessEvent::Started(started))),
                Err(errno) => {
                    let failure = Failure { stage: Stage::Resources, errno: errno.raw_os_error() };
                    let _ = self.events.send(ProcessEvent::Failed(failure));
                    return Ok(Next::Dropped);
                }
            },
            Order::Event(_) if self.is_over => {}
            Order::Event(event) => {
                self.check(&event)?;
                self.is_over = event.is_last();
                self.held.push_back((self.pipes.position(), event));
            }
            Order::Request(request) => {
                // What was written before the request arrives before it.
                self.pipes.begin_drain();
                self.pipes.drain();
                self.asked += usize::from(matches!(request, RunRequest::Ask(_)));
                let _ = self.far.outgoing.message(ToPlace::Run { run: self.run, request });
            }
            Order::Drop => return Ok(Next::Dropped),
        }
        Ok(Next::Continue)
    }

    /// Nothing ends twice, and there is one answer to a question.
    fn check(&mut self, event: &RunEvent) -> Result<(), Violation> {
        match event {
            RunEvent::Exited { .. } if std::mem::replace(&mut self.has_exited, true) => {
                Err(Violation("a program exited twice"))
            }
            RunEvent::Answered(_) => {
                let left = self.asked.checked_sub(1);
                self.asked = left.ok_or(Violation("it answered what nobody asked"))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Passes on the events whose turn it is. True after the last one.
    fn deliver(&mut self) -> bool {
        while let Some((position, _)) = self.held.front() {
            if !self.pipes.has_written(*position) {
                return false;
            }
            let Some((_, event)) = self.held.pop_front() else { return false };
            let is_last = event.is_last();
            let event = match event {
                RunEvent::Exited { exit, gone } => ProcessEvent::Exited { exit, gone },
                RunEvent::Gone { survivors, limit } => ProcessEvent::Gone { survivors, limit },
                RunEvent::Answered(answer) => ProcessEvent::Answered(answer),
                RunEvent::Failed(failure) => ProcessEvent::Failed(failure),
                RunEvent::Lost | RunEvent::NotStarted | RunEvent::Started { .. } => {
                    ProcessEvent::Lost
                }
            };
            let _ = self.events.send(event);
            if is_last {
                return true;
            }
        }
        false
    }

    /// Makes the pipes of a program that runs: ours, and the engine's.
    fn open(&mut self, pid: i32, has: StartedPipes) -> Result<Started, Errno> {
        let failed = |_| Errno::MFILE;
        let output = |pipes: &mut Pipes, pipe| -> Result<OwnedFd, Errno> {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            pipes.add_sink(pipe, ours).map_err(failed)?;
            Ok(theirs)
        };
        let replies = has.replies.then(|| output(&mut self.pipes, REPLIES)).transpose()?;
        if has.terminal {
            let (theirs, ours) = socket_pair()?;
            self.pipes
                .add_source(STDIN, ours.try_clone().map_err(failed)?, false)
                .map_err(failed)?;
            self.pipes.add_sink(STDOUT, ours).map_err(failed)?;
            let stdin = Some(theirs.try_clone().map_err(failed)?);
            return Ok(Started { pid, stdout: theirs, stderr: None, stdin, replies });
        }
        let stdout = output(&mut self.pipes, STDOUT)?;
        let stderr = has.stderr.then(|| output(&mut self.pipes, STDERR)).transpose()?;
        let stdin = match has.stdin {
            true => {
                // The orders of a session come through a socket.
                let (ours, theirs) = socket_pair()?;
                self.pipes.add_source(STDIN, ours, false).map_err(failed)?;
                Some(theirs)
            }
            false => None,
        };
        Ok(Started { pid, stdout, stderr, stdin, replies })
    }
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}
