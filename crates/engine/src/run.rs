//! One run: the task that owns it, and the handle others have.
//!
//! The task lives as long as anything of the command does. It answers once, when the first process
//! has ended and all that was written until then is kept, or when the whole tree has been ended.
//! Afterwards it goes on reading what processes left running print, so that they do not stop or die
//! of a pipe nobody reads.

mod remote;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub use remote::Remote;
pub(crate) use remote::Word;

use mcpz_agent::{Exit, Happening, Limit, Process, Started, Status, Usage, known_inside_as};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::audit::Recorded;
use crate::channel::Channel;
use crate::error::Error;
use crate::feeder::Feeder;
use crate::gate::Pending;
use crate::jobs::asks;
use crate::later::Later;
use crate::outcome::{End, Outcome};
use crate::output::{Output, Stream};
use crate::request::{Input, Size};
use crate::sessions::Order;
use crate::stats::Stats;
use crate::turns::Turn;

/// What a command is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// When the agent has not said that a tree is gone this long after it should be, it never will.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that was started. Dropped before its outcome was taken, it is cancelled.
pub struct Run {
    outcome: oneshot::Receiver<Result<Outcome, Error>>,
    remote: Remote,
    life: watch::Receiver<Life>,
    id: Arc<str>,
    input: Option<Input>,
    output: Output,
}

/// What is known of a run's processes while there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The first process, as those know it that run with it.
    pub pid: Option<i32>,
    /// The process below which all of them are.
    pub keeper: Option<i32>,
    /// What is left when nothing more can be done.
    pub survivors: Vec<i32>,
    /// The limit that ended what the first process left, if one did.
    pub limit: Option<Limit>,
    /// Whether it ends because it was told to.
    pub stopped: bool,
    /// How long it took, if another process has counted.
    pub took: Option<Duration>,
    /// How many bytes were written to it, but for those of persons.
    pub written: u64,
    /// The size of its terminal, if it has one.
    pub size: Option<Size>,
    /// How often a person has typed something.
    pub person: u64,
}

impl Life {
    /// The first process by the number it has here: inside a sandbox it has another.
    pub(crate) fn first_process(&self) -> Option<i32> {
        known_inside_as(self.keeper?, self.pid?)
    }
}

impl Run {
    pub(crate) fn start(
        process: Process,
        pending: Pending,
        recorded: Recorded,
        output: Output,
        books: Option<Books>,
        later: Later,
    ) -> Self {
        let (id, input) = (recorded.id().clone(), pending.input);
        let (answer, outcome) = oneshot::channel();
        let (words, heard) = mpsc::unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let (living, life) = watch::channel(Life::default());
        let channel = |stream| Channel::closed(stream, output.clone(), pending.secrets.masker());
        let minder = Minder {
            stdout: channel(Stream::Stdout),
            stderr: channel(Stream::Stderr),
            id: id.clone(),
            recorded: Some(recorded),
            output: output.clone(),
            answer: Some(answer),
            living,
            timer: pending.timeout.map(|timeout| Instant::now() + timeout),
            pending,
            process,
            exit: None,
            stopping: false,
            stopped: None,
            feeder: None,
            books,
            later,
            backlog: backlog.clone(),
        };
        tokio::spawn(minder.mind(heard));
        Self { outcome, remote: Remote::new(words, backlog), life, id, input, output }
    }

    /// A command that a session carries out.
    pub(crate) fn in_session(order: Order) -> Self {
        let (answer, outcome) = oneshot::channel();
        let (words, heard) = mpsc::unbounded_channel();
        let (_, life) = watch::channel(Life::default());
        let (id, output) = (order.recorded.id().clone(), order.output.clone());
        tokio::spawn(order.carry_out(answer, heard));
        let remote = Remote::new(words, Arc::default());
        Self { outcome, remote, life, id, input: None, output }
    }

    /// One that another process minds. Words are heard, and the rest is told, by whoever follows it.
    pub(crate) fn elsewhere(
        outcome: oneshot::Receiver<Result<Outcome, Error>>,
        (words, backlog): (mpsc::UnboundedSender<Word>, Arc<AtomicUsize>),
        life: watch::Receiver<Life>,
        (id, input): (Arc<str>, Option<Input>),
        output: Output,
    ) -> Self {
        Self { outcome, remote: Remote::new(words, backlog), life, id, input, output }
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// How it can be written to, if it can.
    pub fn input(&self) -> Option<Input> {
        self.input
    }

    /// What is known of its processes; the sender is gone when there are none any more.
    pub fn life(&self) -> watch::Receiver<Life> {
        self.life.clone()
    }

    /// What it is known by, in the audit trail and where its output is kept.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What it prints, while it prints it.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Ends the command with all it started. The outcome comes as always.
    pub fn cancel(&mut self) {
        self.remote.cancel();
    }

    /// Waits until the command runs and returns its process id, or `None` if it cannot start: the
    /// outcome says why.
    pub async fn started(&mut self) -> Option<i32> {
        let started = self.life.wait_for(|life| life.pid.is_some()).await;
        started.ok().and_then(|life| life.pid)
    }

    /// Done when the command is silent and waits for input.
    pub fn asking(&self) -> impl Future<Output = ()> + Send + 'static {
        let (output, life) = (self.output.clone(), self.life.clone());
        async move { asks(&output, &life).await }
    }

    /// Waits for the outcome. Nothing is lost if it is dropped before it is done.
    pub async fn outcome(&mut self) -> Result<Outcome, Error> {
        (&mut self.outcome).await.unwrap_or(Err(Error::Closed))
    }
}

/// What is counted of a run as long as somebody waits for it.
pub(crate) struct Books {
    stats: Arc<Stats>,
    _turn: Turn,
    asked: std::time::Instant,
}

impl Books {
    pub fn open(stats: Arc<Stats>, turn: Turn, asked: std::time::Instant) -> Self {
        stats.running.fetch_add(1, Ordering::Relaxed);
        Self { stats, _turn: turn, asked }
    }

    fn note_start(&self) {
        self.stats.spawning.note(self.asked.elapsed());
    }

    pub fn note_answer(&self, answer: &Result<Outcome, Error>) {
        match answer {
            Ok(outcome) => self.stats.note_outcome(outcome),
            Err(error) => self.stats.note_error(error),
        }
        self.stats.total.note(self.asked.elapsed());
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        self.stats.running.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Minder {
    process: Process,
    pending: Pending,
    id: Arc<str>,
    /// Until its end is on record, too.
    recorded: Option<Recorded>,
    output: Output,
    stdout: Channel,
    stderr: Channel,
    answer: Option<oneshot::Sender<Result<Outcome, Error>>>,
    living: watch::Sender<Life>,
    /// The deadline; once the run was stopped, the end of our patience.
    timer: Option<Instant>,
    exit: Option<Exit>,
    /// Whether all of it is being ended.
    stopping: bool,
    /// How it ended, if that is our doing.
    stopped: Option<End>,
    feeder: Option<Feeder>,
    /// Closed when somebody is answered, or nobody waits any more.
    books: Option<Books>,
    later: Later,
    backlog: Arc<AtomicUsize>,
}

impl Minder {
    async fn mind(mut self, mut words: mpsc::UnboundedReceiver<Word>) {
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
            Word::Signal(signal) => self.process.signal(signal),
            Word::Stop { grace } => self.stop(None, grace),
            Word::Write { before: Some(before), .. } if before != self.written() => {
                tracing::warn!("nothing is typed: somebody else has typed meanwhile");
            }
            Word::Write { bytes, person, .. } => {
                let length = bytes.len() as u64;
                if let Some(feeder) = &self.feeder {
                    feeder.write(bytes);
                }
                self.living.send_modify(|life| match person {
                    true => life.person += 1,
                    false => life.written += length,
                });
            }
            Word::Stopping => self.living.send_modify(|life| life.stopped = true),
            Word::CloseInput => {
                if let Some(feeder) = &mut self.feeder {
                    feeder.close();
                }
            }
            Word::Switch(..) => {}
            Word::Last if self.stopping => {}
            Word::Last => (self.timer, self.pending.timeout) = (None, None),
            Word::Resize(size) => {
                self.feeder.iter().for_each(|feeder| feeder.resize(size));
                self.living.send_modify(|life| life.size = Some(size));
            }
            Word::Hides(asked) => {
                let _ = asked.send(self.feeder.as_ref().is_some_and(Feeder::hides));
            }
        }
    }

    fn written(&self) -> u64 {
        self.living.borrow().written
    }

    /// Deals with what happened. True when nothing more will.
    async fn happened(&mut self, happening: Happening) -> bool {
        match happening {
            Happening::Started(started) => {
                self.started(started);
                false
            }
            Happening::Failed(failure) => {
                let Pending { program, directory, .. } = &self.pending;
                let error = Error::from_failure(failure, program.clone(), directory.clone());
                self.answer_with(Err(error));
                true
            }
            Happening::Exited { exit, gone } => {
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
            Happening::Gone { survivors, limit } => {
                self.close().await;
                self.living.send_modify(|life| {
                    life.survivors = survivors.clone();
                    life.limit = limit;
                });
                self.answer_outcome(survivors);
                true
            }
            Happening::Lost => {
                self.close().await;
                self.answer_outcome(Vec::new());
                true
            }
        }
    }

    fn started(&mut self, started: Started) {
        self.stdout.open(started.stdout);
        if let Some(stderr) = started.stderr {
            self.stderr.open(stderr);
        }
        if !self.stopping {
            // What it took to start is not the command's time.
            self.timer = self.pending.timeout.map(|timeout| Instant::now() + timeout);
        }
        self.books.iter().for_each(Books::note_start);
        if let (Some(direction), Some(waiting)) = (started.direction, self.pending.directing.take())
        {
            let _ = waiting.send(direction);
        }
        if let Some(pipe) = started.stdin {
            let first = std::mem::take(&mut self.pending.stdin);
            let backlog = self.backlog.clone();
            self.feeder = Feeder::start(pipe, first, self.pending.input, backlog);
        }
        self.living.send_modify(|life| {
            life.pid = Some(started.pid);
            life.keeper = Some(started.keeper);
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
        let (stdout, stderr) = tokio::join!(self.stdout.drain(), self.stderr.drain());
        self.check(stdout.and(stderr));
    }

    async fn close(&mut self) {
        let (stdout, stderr) = tokio::join!(self.stdout.close(), self.stderr.close());
        self.check(stdout.and(stderr));
        let spent = (self.stdout.take_spent(), self.stderr.take_spent());
        self.later.add(move || drop(spent));
    }

    async fn switch(&mut self, output: Output) {
        let (stdout, stderr) =
            tokio::join!(self.stdout.switch(output.clone()), self.stderr.switch(output));
        self.check(stdout.and(stderr));
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
        self.later.add(move || match (end, limit) {
            (end, Some(limit)) => tracing::info!("ended: {end:?}, at its limit: {limit:?}"),
            (End::Exited(code), None) => tracing::info!("exit code {code}"),
            (other, None) => tracing::info!("ended: {other:?}"),
        });
        self.output.settle();
        self.answer_with(Ok(outcome));
    }

    fn outcome(&self, background: Vec<i32>) -> Outcome {
        let ended = self.exit.as_ref().map(|exit| match exit.status {
            Status::Code(code) => End::Exited(code),
            Status::Signal(signal) => End::Signalled(signal),
        });
        let usage = self.exit.as_ref().map_or(Usage::default(), |exit| exit.usage);
        let end = self.stopped.or(ended).unwrap_or(End::Lost);
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
                self.later.add(move || recorded.end(Ok(&outcome)));
            }
            (Some(recorded), Err(error)) => recorded.end(Err(error)),
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

impl Drop for Minder {
    fn drop(&mut self) {
        self.output.finish();
        // The server ends, and nobody is answered any more.
        if let Some(recorded) = self.recorded.take() {
            recorded.end(Ok(&self.outcome(Vec::new())));
        }
    }
}

pub(crate) async fn until(timer: Option<Instant>) {
    match timer {
        Some(timer) => sleep_until(timer).await,
        None => std::future::pending().await,
    }
}
