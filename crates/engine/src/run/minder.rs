//! The task that owns a run.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::{
    Answer, Exit, Limit, Process, ProcessEvent, Question, SpawnFrame, Started, Status, Usage,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::{Books, Life, Saying, Word, until};
use crate::channel::{Channel, Source};
use crate::error::Error;
use crate::feeder::Feeder;
use crate::gate::Pending;
use crate::outcome::{End, Outcome};
use crate::request::{Input, Size};
use mcpz_audit::Recorded;
use mcpz_output::Output;
use mcpz_runtime::Later;

/// What a command is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// When the agent has not said that a tree is gone this long after it should be, it never will.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Minder {
    pub process: Process,
    pub pending: Pending,
    pub id: Arc<str>,
    /// Until its end is on record, too.
    pub recorded: Option<Recorded>,
    pub output: Output,
    pub stdout: Channel,
    pub stderr: Channel,
    pub answer: Option<oneshot::Sender<Result<Outcome, Error>>>,
    pub living: watch::Sender<Life>,
    /// The deadline; once the run was stopped, the end of our patience.
    pub timer: Option<Instant>,
    pub exit: Option<Exit>,
    /// Whether all of it is being ended.
    pub stopping: bool,
    /// How it ended, if that is our doing.
    pub stopped: Option<End>,
    pub feeder: Option<Feeder>,
    /// Who waits for the answers to what its keeper was asked, in order.
    pub asked: VecDeque<oneshot::Sender<Answer>>,
    /// Closed when somebody is answered, or nobody waits any more.
    pub books: Option<Books>,
    pub later: Later,
    pub began: Instant,
    pub backlog: Arc<AtomicUsize>,
}

impl Minder {
    pub async fn mind(mut self, mut words: mpsc::UnboundedReceiver<Word>) {
        let mut heard = true;
        loop {
            let waiting = self.answer.is_some();
            tokio::select! {
                biased;
                happening = self.process.next() => {
                    if self.happened(happening).await {
                        return;
                    }
                }
                word = words.recv(), if heard => match word {
                    Some(Word::Switch(output, done)) => {
                        self.switch(output).await;
                        let _ = done.send(());
                    }
                    Some(word) => self.obey(word),
                    None => {
                        heard = false;
                        self.obey(Word::Cancel);
                    }
                },
                () = until(self.timer), if waiting => match self.stopping {
                    false => self.stop(Some(End::TimedOut {
                        after: self.pending.timeout.unwrap_or_default(),
                    }), GRACE),
                    true => self.answer_outcome(Vec::new()),
                },
                read = self.stdout.step(), if self.stdout.is_open() => self.check(read),
                read = self.stderr.step(), if self.stderr.is_open() => self.check(read),
            }
        }
    }

    fn obey(&mut self, word: Word) {
        match word {
            // Whoever was answered has had what they wanted.
            Word::Cancel if self.answer.is_none() => {}
            Word::Cancel => self.stop(Some(End::Cancelled), GRACE),
            Word::Say(saying) => self.heed(saying),
            Word::Switch(..) => {}
            Word::Last if self.stopping => {}
            Word::Last => (self.timer, self.pending.timeout) = (None, None),
            Word::Look(question, asked) => self.look(question, asked),
        }
    }

    fn heed(&mut self, saying: Saying) {
        match saying {
            Saying::Write { bytes, before: Some(before), .. } if before != self.written() => {
                tracing::warn!("nothing is typed: somebody else has typed meanwhile");
                self.backlog.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
            Saying::Write { bytes, person, .. } => {
                let length = bytes.len() as u64;
                if let Some(feeder) = &self.feeder {
                    feeder.write(bytes);
                }
                self.living.send_modify(|life| match person {
                    true => life.person += 1,
                    false => life.written += length,
                });
            }
            Saying::CloseInput => {
                if let Some(feeder) = &mut self.feeder {
                    feeder.close();
                }
            }
            Saying::Signal(signal) => self.process.signal(signal),
            Saying::Stopping => self.living.send_modify(|life| life.stopped = true),
            Saying::Stop { grace } => self.stop(None, grace),
        }
    }

    /// Before it was started there is nothing to see.
    fn look(&mut self, question: Question, asked: oneshot::Sender<Answer>) {
        if self.living.borrow().pid.is_none() {
            return;
        }
        if let Question::Resize { rows, columns } = question {
            self.living.send_modify(|life| life.size = Some(Size { rows, columns }));
        }
        self.asked.push_back(asked);
        self.process.ask(question);
    }

    fn written(&self) -> u64 {
        self.living.borrow().written
    }

    /// Deals with what happened. True when nothing more will.
    async fn happened(&mut self, happening: ProcessEvent) -> bool {
        match happening {
            ProcessEvent::NotStarted(letter) => self.start_again(letter).await,
            ProcessEvent::Started(started) => {
                self.started(started);
                false
            }
            ProcessEvent::Answered(seen) => {
                if let Some(asked) = self.asked.pop_front() {
                    let _ = asked.send(seen);
                }
                false
            }
            ProcessEvent::Failed(failure) => {
                let Pending { program, directory, .. } = &self.pending;
                let error = Error::from_failure(failure, program.clone(), directory.clone());
                self.answer_with(Err(error));
                true
            }
            ProcessEvent::Exited { exit, gone } => {
                // What is left running may yet print the rest of what looks like a secret.
                match gone {
                    true => self.close().await,
                    false => self.drain().await,
                }
                let left = exit.left.clone();
                self.exit = Some(exit);
                // A run that is being stopped is over when all of it is.
                if gone || !self.stopping {
                    self.answer_outcome(left);
                }
                gone
            }
            ProcessEvent::Gone { survivors, limit } => {
                self.close().await;
                let lost = self.process.is_orphaned() && self.pending.closing.get().is_none();
                self.living.send_modify(|life| {
                    life.survivors = survivors.clone();
                    life.limit = limit;
                    life.lost = lost;
                });
                self.answer_outcome(survivors);
                true
            }
            ProcessEvent::Lost => {
                self.close().await;
                let lost = self.pending.closing.get().is_none();
                self.living.send_modify(|life| life.lost = lost);
                self.answer_outcome(Vec::new());
                true
            }
        }
    }

    /// Has it started once more, as its agent was killed before it was. True when nothing more will
    /// happen.
    async fn start_again(&mut self, letter: SpawnFrame) -> bool {
        match self.pending.again.take().map(|start| start(letter)) {
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

    fn started(&mut self, started: Started) {
        let source = match self.pending.input {
            Some(Input::Terminal(_)) => Source::Terminal,
            _ => Source::Pipe,
        };
        self.stdout.open(started.stdout, source);
        if let Some(stderr) = started.stderr {
            self.stderr.open(stderr, source);
        }
        if !self.stopping {
            // What it took to start is not the command's time.
            self.timer = self.pending.timeout.map(|timeout| Instant::now() + timeout);
        }
        self.books.iter_mut().for_each(Books::note_start);
        if let (Some(direction), Some(waiting)) = (started.control, self.pending.directing.take()) {
            let _ = waiting.send(direction);
        }
        if let Some(pipe) = started.stdin {
            let first = std::mem::take(&mut self.pending.stdin);
            let backlog = self.backlog.clone();
            self.feeder = Feeder::start(pipe, first, self.pending.input, backlog);
        }
        self.living.send_modify(|life| {
            life.pid = Some(started.pid);
            if let Some(Input::Terminal(size)) = self.pending.input {
                life.size.get_or_insert(size);
            }
        });
    }

    fn stop(&mut self, why: Option<End>, grace: Duration) {
        if !self.stopping {
            self.stopping = true;
            self.stopped = why;
        }
        self.timer = Some(Instant::now() + grace + PATIENCE);
        self.process.kill(grace);
    }

    async fn drain(&mut self) {
        tokio::join!(self.stdout.drain(), self.stderr.drain());
    }

    async fn close(&mut self) {
        tokio::join!(self.stdout.close(), self.stderr.close());
        let spent = (self.stdout.take_spent(), self.stderr.take_spent());
        self.later.add(move || drop(spent));
    }

    async fn switch(&mut self, output: Output) {
        tokio::join!(self.stdout.switch(output.clone()), self.stderr.switch(output));
    }

    /// A command whose output cannot be read is ended.
    fn check(&mut self, read: io::Result<()>) {
        if let Err(source) = read {
            self.process.kill(Duration::ZERO);
            self.answer_with(Err(Error::Resources(source)));
        }
    }

    fn answer_outcome(&mut self, background: Vec<i32>) {
        let outcome = self.outcome(background);
        let (end, limit) = (outcome.end, outcome.limit);
        if tracing::enabled!(tracing::Level::INFO) {
            let (run, wall) = (self.id.clone(), outcome.usage.wall);
            self.later.add(move || log(&run, end, limit, wall));
        }
        self.output.settle();
        self.answer_with(Ok(outcome));
    }

    fn outcome(&self, background: Vec<i32>) -> Outcome {
        let ended = self.exit.as_ref().map(|exit| match exit.status {
            Status::Code(code) => End::Exited(code),
            Status::Signal(signal) => End::Signalled(signal),
        });
        // Of a run that was lost, nobody has told what it used.
        let lost = || Usage { wall: self.began.elapsed(), ..Usage::default() };
        let usage = self.exit.as_ref().map_or_else(lost, |exit| exit.usage);
        let end = self.stopped.or(ended).unwrap_or(End::Lost);
        let end = match (end, self.pending.closing.get()) {
            // Keepers end their runs without a word when everything ends, or with a signal.
            (End::Lost | End::Signalled(_), Some(why)) => End::Closed(*why),
            // Whatever it made of being told to end.
            (End::Exited(_) | End::Signalled(_), None) if self.process.is_orphaned() => End::Lost,
            (end, _) => end,
        };
        let limit = self.exit.as_ref().and_then(|exit| exit.limit);
        let (id, output) = (self.id.clone(), self.output.clone());
        let warnings = self.pending.warnings.clone();
        let refused = self.refused(end);
        let (job, session) = (None, None);
        Outcome { id, end, limit, usage, output, background, warnings, refused, job, session }
    }

    /// What the sandbox has refused.
    fn refused(&self, end: End) -> Vec<String> {
        let Pending { enclosure, directory, .. } = &self.pending;
        let enclosure = enclosure.as_ref();
        enclosure
            .map(|enclosure| enclosure.refused(&self.id, end, &self.output, directory))
            .unwrap_or_default()
    }

    fn answer_with(&mut self, answer: Result<Outcome, Error>) {
        match (self.recorded.take(), &answer) {
            (Some(recorded), Ok(outcome)) => {
                // Neither the answer nor the next call has to wait for the disk.
                let outcome = outcome.clone();
                self.later.add(move || recorded.end(Ok(outcome.ended())));
            }
            (Some(recorded), Err(error)) => recorded.end(Err(error.reason())),
            (None, _) => {}
        }
        if let Some(books) = self.books.take() {
            books.note_answer(&answer);
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

impl Drop for Minder {
    fn drop(&mut self) {
        self.output.finish();
        // The server ends, and nobody is answered any more.
        if let Some(recorded) = self.recorded.take() {
            recorded.end(Ok(self.outcome(Vec::new()).ended()));
        }
    }
}
