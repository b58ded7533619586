//! One run: the task that owns it, and the handle others have.
//!
//! The task lives as long as anything of the command does. It answers once, when the first process
//! has ended and all that was written until then is kept, or when the whole tree has been ended.
//! Afterwards it goes on reading what processes left running print, so that they do not stop or die
//! of a pipe nobody reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpz_agent::{Exit, Happening, Process, Started, Status, Usage};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::audit::Recorded;
use crate::channel::Channel;
use crate::error::Error;
use crate::gate::Pending;
use crate::later::Later;
use crate::outcome::{End, Outcome};
use crate::output::{Output, Stream};
use crate::stats::Stats;
use crate::turns::Turn;

/// What a command is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// When the agent has not said that a tree is gone this long after it should be, it never will.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that was started. Dropped before its outcome was taken, it is cancelled.
pub struct Run {
    outcome: oneshot::Receiver<Result<Outcome, Error>>,
    word: Option<oneshot::Sender<Word>>,
    started: watch::Receiver<Option<i32>>,
    id: Arc<str>,
    output: Output,
}

/// What whoever has the handle wants. A handle that is dropped cancels.
enum Word {
    Cancel,
    /// Nobody waits any more; the command goes on, without a deadline.
    Leave,
}

impl Run {
    pub(crate) fn start(
        process: Process,
        pending: Pending,
        recorded: Recorded,
        output: Output,
        books: Books,
        later: Later,
    ) -> Self {
        let id = recorded.id().clone();
        let (answer, outcome) = oneshot::channel();
        let (word, words) = oneshot::channel();
        let (starting, started) = watch::channel(None);
        let channel = |stream| Channel::closed(stream, output.clone(), pending.secrets.masker());
        let minder = Minder {
            stdout: channel(Stream::Stdout),
            stderr: channel(Stream::Stderr),
            id: id.clone(),
            recorded: Some(recorded),
            output: output.clone(),
            answer: Some(answer),
            starting,
            timer: Instant::now() + pending.timeout,
            pending,
            process,
            exit: None,
            stopped: None,
            feeder: None,
            books: Some(books),
            later,
        };
        tokio::spawn(minder.mind(words));
        Self { outcome, word: Some(word), started, id, output }
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
        self.say(Word::Cancel);
    }

    /// Lets the command go on by itself. It ends with the engine.
    pub fn leave(mut self) {
        self.say(Word::Leave);
    }

    /// Waits until the command runs and returns its process id, or `None` if it cannot start: the
    /// outcome says why.
    pub async fn started(&mut self) -> Option<i32> {
        let started = self.started.wait_for(Option::is_some).await;
        started.ok().and_then(|pid| *pid)
    }

    fn say(&mut self, word: Word) {
        if let Some(sender) = self.word.take() {
            let _ = sender.send(word);
        }
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

    fn note_answer(&self, answer: &Result<Outcome, Error>) {
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
    starting: watch::Sender<Option<i32>>,
    /// The deadline; once the run was stopped, the end of our patience.
    timer: Instant,
    exit: Option<Exit>,
    stopped: Option<End>,
    feeder: Option<AbortHandle>,
    /// Closed when somebody is answered, or nobody waits any more.
    books: Option<Books>,
    later: Later,
}

impl Minder {
    async fn mind(mut self, mut words: oneshot::Receiver<Word>) {
        loop {
            let waiting = self.answer.is_some();
            tokio::select! {
                biased;
                happening = self.process.next() => {
                    if self.happened(happening).await {
                        return;
                    }
                }
                word = &mut words, if waiting && self.stopped.is_none() => match word {
                    Ok(Word::Leave) => (self.answer, self.books) = (None, None),
                    Ok(Word::Cancel) | Err(_) => self.stop(End::Cancelled),
                },
                () = sleep_until(self.timer), if waiting => {
                    match self.stopped {
                        None => self.stop(End::TimedOut { after: self.pending.timeout }),
                        Some(_) => self.answer_outcome(Vec::new()),
                    }
                }
                read = self.stdout.step(), if self.stdout.is_open() => self.check(read),
                read = self.stderr.step(), if self.stderr.is_open() => self.check(read),
            }
        }
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
                if gone || self.stopped.is_none() {
                    self.answer_outcome(left);
                }
                gone
            }
            Happening::Gone { survivors } => {
                self.close().await;
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
        self.stderr.open(started.stderr);
        self.starting.send_replace(Some(started.pid));
        if self.stopped.is_none() {
            // What it took to start is not the command's time.
            self.timer = Instant::now() + self.pending.timeout;
        }
        self.books.iter().for_each(Books::note_start);
        if let (Some(pipe), Some(bytes)) = (started.stdin, self.pending.stdin.take())
            && let Ok(mut pipe) = Sender::from_owned_fd_unchecked(pipe)
        {
            // A program that does not read all of its input is no failure.
            let feeding = tokio::spawn(async move {
                let _ = pipe.write_all(&bytes).await;
            });
            self.feeder = Some(feeding.abort_handle());
        }
    }

    fn stop(&mut self, why: End) {
        self.stopped = Some(why);
        self.timer = Instant::now() + GRACE + PATIENCE;
        self.process.kill(GRACE);
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

    /// A command whose output cannot be read is ended.
    fn check(&mut self, read: io::Result<()>) {
        if let Err(source) = read {
            self.process.kill(Duration::ZERO);
            self.answer_with(Err(Error::Resources(source)));
        }
    }

    fn answer_outcome(&mut self, background: Vec<i32>) {
        let outcome = self.outcome(background);
        let end = outcome.end;
        self.later.add(move || match end {
            End::Exited(code) => tracing::info!("exit code {code}"),
            other => tracing::info!("ended: {other:?}"),
        });
        self.output.note_answer();
        self.answer_with(Ok(outcome));
    }

    fn outcome(&self, background: Vec<i32>) -> Outcome {
        let ended = self.exit.as_ref().map(|exit| match exit.status {
            Status::Code(code) => End::Exited(code),
            Status::Signal(signal) => End::Signalled(signal),
        });
        let usage = self.exit.as_ref().map_or(Usage::default(), |exit| exit.usage);
        let end = self.stopped.or(ended).unwrap_or(End::Lost);
        let (id, output) = (self.id.clone(), self.output.clone());
        let warnings = self.pending.warnings.clone();
        Outcome { id, end, usage, output, background, warnings }
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
        if let Some(feeder) = &self.feeder {
            feeder.abort();
        }
    }
}
