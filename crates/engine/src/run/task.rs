//! The task that owns a run: its process, its pipes and its deadline.
//!
//!     keeper ─ ProcessEvent ─▶ RunTask ─▶ answer, once
//!     others ─ Message ───▶    └─────▶ Life, Output, audit trail
//!
//! When the first process has ended, the task reads what is in the pipes by then, and no more, so that a child that
//! keeps writing cannot hold up the answer.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::{
    Answer, Exit, Limit, Process, ProcessEvent, Question, SpawnFrame, Started, Status, Usage,
};
use mcpz_audit::RecordedRun;
use mcpz_output::{Output, Stream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::accounting::Accounting;
use super::capture::{Capture, Source};
use super::messages::{Message, RunAction};
use super::stdin::StdinWriter;
use super::{Backing, Channel, Life, RunDetails, RunHandle, TaskEnds, until};
use crate::error::Error;
use crate::exec_rules::described;
use crate::gate::Plan;
use crate::outcome::{End, Outcome};
use crate::request::{Input, TerminalSize};

/// How long a command has to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// If the agent has not reported a tree gone this long after the grace, it never will.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub struct RunTask {
    process: Process,
    plan: Plan,
    backing: Backing,
    about: Arc<RunDetails>,
    /// Until the end is recorded, too.
    recorded: Option<RecordedRun>,
    stdout: Capture,
    stderr: Capture,
    stdin: Option<StdinWriter>,
    /// Until the caller has its answer.
    answer: Option<oneshot::Sender<Result<Outcome, Error>>>,
    life: watch::Sender<Life>,
    backlog: Arc<AtomicUsize>,
    sender: mpsc::WeakUnboundedSender<Message>,
    /// The deadline or, once the run is being stopped, the time to stop waiting for its end.
    timer: Option<Instant>,
    exit: Option<Exit>,
    /// Whether all of it is being ended.
    stopping: bool,
    /// How it ended, if we ended it.
    stopped: Option<End>,
    /// Callers that wait for the keeper's answers, in order.
    callers: VecDeque<oneshot::Sender<Answer>>,
}

impl RunTask {
    pub fn spawn(
        process: Process,
        plan: Plan,
        recorded: RecordedRun,
        backing: Backing,
        ends: TaskEnds,
    ) {
        let TaskEnds { about, answer, messages, life, backlog, sender } = ends;
        let capture = |stream| Capture::closed(stream, about.output.clone(), plan.secrets.masker());
        let task = Self {
            stdout: capture(Stream::Stdout),
            stderr: capture(Stream::Stderr),
            stdin: None,
            recorded: Some(recorded),
            answer: Some(answer),
            life,
            backlog,
            sender,
            timer: plan.timeout.map(|timeout| Instant::now() + timeout),
            process,
            plan,
            backing,
            about,
            exit: None,
            stopping: false,
            stopped: None,
            callers: VecDeque::new(),
        };
        tokio::spawn(task.run(messages));
    }

    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let mut listening = true;
        loop {
            let waiting = self.answer.is_some();
            tokio::select! {
                biased;
                happening = self.process.next() => {
                    if self.handle(happening).await {
                        return;
                    }
                }
                message = messages.recv(), if listening => match message {
                    Some(Message::Switch(output, done)) => {
                        self.switch(output).await;
                        let _ = done.send(());
                    }
                    Some(message) => self.receive(message),
                    None => {
                        listening = false;
                        self.receive(Message::Cancel);
                    }
                },
                () = until(self.timer), if waiting => match self.stopping {
                    false => self.stop(Some(End::TimedOut {
                        after: self.plan.timeout.unwrap_or_default(),
                    }), GRACE),
                    true => self.answer_outcome(Vec::new()),
                },
                read = self.stdout.step(), if self.stdout.is_open() => self.check(read),
                read = self.stderr.step(), if self.stderr.is_open() => self.check(read),
            }
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            // The caller has its answer.
            Message::Cancel if self.answer.is_none() => {}
            Message::Cancel => self.stop(Some(End::Cancelled), GRACE),
            Message::Do(action) => self.perform(action),
            Message::Switch(..) => {}
            Message::BecomeJob => {
                self.backing.sandbox.iter().for_each(|it| it.sandbox().check());
                self.backing.adopt = None;
                if !self.stopping {
                    (self.timer, self.plan.timeout) = (None, None);
                }
            }
            Message::Look(question, caller) => self.look(question, caller),
        }
    }

    fn perform(&mut self, action: RunAction) {
        match action {
            RunAction::Write { bytes, before: Some(before), .. } if before != self.written() => {
                tracing::warn!("input dropped: someone else typed into the job first");
                self.backlog.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
            RunAction::Write { bytes, person, .. } => {
                let length = bytes.len() as u64;
                if let Some(stdin) = &self.stdin {
                    stdin.write(bytes);
                }
                self.life.send_modify(|life| match person {
                    true => life.person += 1,
                    false => life.written += length,
                });
            }
            RunAction::CloseInput => {
                if let Some(stdin) = &mut self.stdin {
                    stdin.close();
                }
            }
            RunAction::Signal(signal) => self.process.signal(signal),
            RunAction::Stopping => self.life.send_modify(|life| life.stopped = true),
            RunAction::Stop { grace } => self.stop(None, grace),
            RunAction::Permit(rules) => self.look(Question::Permit(rules), oneshot::channel().0),
        }
    }

    /// Passes a question on to the keeper. Before the start there is nothing to see.
    fn look(&mut self, question: Question, caller: oneshot::Sender<Answer>) {
        if self.life.borrow().pid.is_none() {
            return;
        }
        if let Question::Resize { rows, columns } = question {
            self.life.send_modify(|life| life.size = Some(TerminalSize { rows, columns }));
        }
        self.callers.push_back(caller);
        self.process.ask(question);
    }

    fn written(&self) -> u64 {
        self.life.borrow().written
    }

    /// Handles an event. Returns true if it was the last one.
    async fn handle(&mut self, happening: ProcessEvent) -> bool {
        match happening {
            ProcessEvent::NotStarted(frame) => self.restart(frame).await,
            ProcessEvent::Started(started) => {
                self.started(started);
                false
            }
            ProcessEvent::Answered(seen) => {
                if let Some(caller) = self.callers.pop_front() {
                    let _ = caller.send(seen);
                }
                false
            }
            ProcessEvent::Failed(failure) => {
                let Plan { program, directory, root, .. } = &self.plan;
                let (program, directory) = (program.clone(), directory.clone());
                let error = Error::from_failure(failure, program, directory, root.clone());
                self.answer_with(Err(error));
                true
            }
            ProcessEvent::Exited { exit, gone } => {
                // What is left running may still print the rest of a secret.
                match gone {
                    true => self.close().await,
                    false => self.drain().await,
                }
                let left = exit.left.clone();
                self.exit = Some(exit);
                // A run that is being stopped is over when the whole tree has ended.
                if gone || !self.stopping {
                    self.answer_outcome(left);
                }
                gone
            }
            ProcessEvent::Gone { survivors, limit } => {
                self.close().await;
                let lost = self.process.is_orphaned() && self.backing.closing.get().is_none();
                self.life.send_modify(|life| {
                    life.survivors = survivors.clone();
                    life.limit = limit;
                    life.lost = lost;
                });
                self.answer_outcome(survivors);
                true
            }
            ProcessEvent::Lost => {
                self.close().await;
                if let Some(place) = &self.backing.venue.place
                    && place.link.why_ended().is_some()
                {
                    place.until_explained().await;
                }
                let lost = self.backing.closing.get().is_none();
                self.life.send_modify(|life| life.lost = lost);
                self.answer_outcome(Vec::new());
                true
            }
        }
    }

    /// Starts it once more, because its agent was killed before starting it. Returns true if that is over, too.
    async fn restart(&mut self, frame: SpawnFrame) -> bool {
        match self.backing.restart.take().map(|start| start(frame)) {
            Some(Ok(process)) => {
                self.process = process;
                return false;
            }
            Some(Err(error)) => self.answer_with(Err(error)),
            None => {
                self.close().await;
                self.answer_outcome(Vec::new());
            }
        }
        true
    }

    fn started(&mut self, mut started: Started) {
        let source = match self.plan.input {
            Some(Input::Terminal(_)) => Source::Terminal,
            _ => Source::Pipe,
        };
        self.stdout.open(started.stdout, source);
        if let Some(stderr) = started.stderr {
            self.stderr.open(stderr, source);
        }
        if !self.stopping {
            // The time to start it does not count.
            self.timer = self.plan.timeout.map(|timeout| Instant::now() + timeout);
        }
        self.backing.accounting.iter_mut().for_each(Accounting::note_start);
        // Nobody waits for replies that will never come: not every place is honest.
        let channel = self.backing.channel.take();
        if let (Some(replies), Some(receiver)) = (started.replies, channel) {
            let _ = receiver.send(Channel { orders: started.stdin.take(), replies });
        }
        if let Some(pipe) = started.stdin {
            let first = std::mem::take(&mut self.plan.stdin);
            let backlog = self.backlog.clone();
            self.stdin = StdinWriter::start(pipe, first, self.plan.input, backlog);
        }
        self.life.send_modify(|life| {
            life.pid = Some(started.pid);
            if let Some(Input::Terminal(size)) = self.plan.input {
                life.size.get_or_insert(size);
            }
        });
    }

    fn stop(&mut self, why: Option<End>, grace: Duration) {
        if !self.stopping {
            self.stopping = true;
            self.stopped = why;
        }
        self.timer = Some(Instant::now() + grace + STOP_TIMEOUT);
        self.process.kill(grace);
    }

    async fn drain(&mut self) {
        tokio::join!(self.stdout.drain(), self.stderr.drain());
    }

    async fn close(&mut self) {
        tokio::join!(self.stdout.close(), self.stderr.close());
        let retired = (self.stdout.take_retired(), self.stderr.take_retired());
        self.backing.later.add(move || drop(retired));
    }

    async fn switch(&mut self, output: Output) {
        tokio::join!(self.stdout.switch(output.clone()), self.stderr.switch(output));
    }

    /// Ends a command whose output cannot be read.
    fn check(&mut self, read: io::Result<()>) {
        if let Err(source) = read {
            self.process.kill(Duration::ZERO);
            self.answer_with(Err(Error::Resources(source)));
        }
    }

    fn answer_outcome(&mut self, background: Vec<i32>) {
        let mut outcome = self.outcome(background);
        let (end, limit) = (outcome.end, outcome.limit);
        if tracing::enabled!(tracing::Level::INFO) {
            let (run, wall) = (self.about.id.clone(), outcome.usage.wall);
            self.backing.later.add(move || log(&run, end, limit, wall));
        }
        self.about.output.mark_answered();
        outcome.job = self.adopt(&outcome);
        self.answer_with(Ok(outcome));
    }

    /// Makes a job of what the command left running, and returns its id.
    fn adopt(&mut self, outcome: &Outcome) -> Option<String> {
        if outcome.background.is_empty() || self.answer.is_none() {
            return None;
        }
        let adopt = self.backing.adopt.take()?;
        adopt(RunHandle::of(&self.about, &self.sender, &self.backlog)?, outcome)
    }

    fn outcome(&self, background: Vec<i32>) -> Outcome {
        let ended = self.exit.as_ref().map(|exit| match exit.status {
            Status::Code(code) => End::Exited(code),
            Status::Signal(signal) => End::Signalled(signal),
        });
        // Nobody measured the usage of a lost run.
        let lost = || Usage { wall: self.about.began.elapsed(), ..Usage::default() };
        let usage = self.exit.as_ref().map_or_else(lost, |exit| exit.usage);
        let end = self.stopped.or(ended).unwrap_or(End::Lost);
        let end = match (end, self.backing.closing.get()) {
            // When the engine closes, keepers end their runs with a signal, or without any report.
            (End::Lost | End::Signalled(_), Some(why)) => End::Closed(*why),
            // Its agent was killed, and the run ended for that, however the command reacted.
            (End::Exited(_) | End::Signalled(_), None) if self.process.is_orphaned() => End::Lost,
            (end, _) => end,
        };
        let limit = self.exit.as_ref().and_then(|exit| exit.limit);
        let (id, output) = (self.about.id.clone(), self.about.output.clone());
        let command = self.about.command.clone();
        let location = self.about.location.get().cloned();
        let warnings = self.plan.warnings.clone();
        let execs = self.exit.as_ref().map(|exit| exit.refused.as_slice()).unwrap_or_default();
        if let (Some(occupied), false) = (&self.backing.sandbox, background.is_empty()) {
            occupied.sandbox().note_left();
        }
        let refused = described(execs).into_iter().chain(self.refused(end)).collect();
        let (job, session) = (None, None);
        Outcome {
            id,
            command,
            location,
            end,
            limit,
            usage,
            output,
            background,
            warnings,
            refused,
            job,
            session,
        }
    }

    /// What the sandbox refused, or what became of the place.
    fn refused(&self, end: End) -> Vec<String> {
        if let (Some(place), End::Lost) = (&self.backing.venue.place, end) {
            return vec![place.about_loss()];
        }
        if let Some(place) = &self.backing.venue.place {
            return place.take_news().into_iter().collect();
        }
        let Some(occupied) = &self.backing.sandbox else { return Vec::new() };
        occupied.sandbox().refused(&self.about.id, end, &self.about.output, &self.plan.directory)
    }

    fn answer_with(&mut self, answer: Result<Outcome, Error>) {
        match (self.recorded.take(), &answer) {
            (Some(recorded), Ok(outcome)) => {
                // Later, so that neither the answer nor the next call waits for the disk.
                let outcome = outcome.clone();
                self.backing.later.add(move || recorded.end(Ok(outcome.ended())));
            }
            (Some(recorded), Err(error)) => recorded.end(Err(error.reason())),
            (None, _) => {}
        }
        if let Some(accounting) = self.backing.accounting.take() {
            accounting.note_answer(&answer);
        }
        if let Some(sender) = self.answer.take() {
            let _ = sender.send(answer);
        }
    }
}

fn log(run: &str, end: End, limit: Option<Limit>, wall: Duration) {
    let text = match limit {
        Some(limit) => format!("{end}; {limit}"),
        None => end.to_string(),
    };
    let (exit_code, duration_ms) = (end.exit_code(), wall.as_millis() as u64);
    tracing::info!(run, exit_code, duration_ms, "{text}");
}

impl Drop for RunTask {
    fn drop(&mut self) {
        self.about.output.finish();
        // The runtime shuts down, and nobody gets an answer any more.
        if let Some(recorded) = self.recorded.take() {
            recorded.end(Ok(self.outcome(Vec::new()).ended()));
        }
    }
}
