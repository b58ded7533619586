//! Follows one run for its caller: tells progress, passes a cancellation on, brings the outcome.
//!
//! The caller's answer is sent after the last progress was, never before: both go through here. Nor is it
//! sent together with it. Clients made with the TypeScript SDK that read both at once forget the call
//! before they look at its progress, and some show the server as gone then.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpz_engine::{
    Client, Engine, Error, Job, MAX_TIMEOUT, Origin, Outcome, Run, RunRequest, STOP_GRACE,
};
use mcpz_output::{Output, Stream};
use rmcp::RoleServer;
use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::budget::MaxAnswer;
use crate::memory::{ANSWER, RequestMemory};
use crate::telling::{Teller, Voice};

/// The least time between two notifications.
const PACE: Duration = Duration::from_millis(100);

/// How long after the first output the first progress is sent: many commands have ended by then.
const FIRST: Duration = Duration::from_millis(50);

/// How long the answer waits for the last notification to be read. A client that does not read that will not
/// read the answer either.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// The most time between two while the command is silent.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Whoever waits for one call.
pub struct Watcher {
    pub voice: Voice,
    token: Option<ProgressToken>,
    pub origin: Origin,
    teller: Teller,
    /// What the command prints, once it runs.
    pub output: Arc<OnceLock<Output>>,
    /// Done when nobody waits any more.
    pub cancelled: CancellationToken,
    /// What of the command's output is shown.
    pub streams: &'static [Stream],
    memory: Option<RequestMemory>,
    /// About what an answer takes.
    answer: usize,
}

/// Why a run is not waited for any longer.
enum Over {
    Ended(Result<Outcome, Error>),
    /// There was a reason to leave.
    Left,
}

/// A command that was waited for.
pub enum CallOutcome {
    Ended(Outcome),
    /// It goes on as a job.
    HandedOver(Arc<Job>),
}

impl Watcher {
    pub fn new(
        context: &RequestContext<RoleServer>,
        origin: Origin,
        (voice, teller): (Voice, Teller),
        streams: &'static [Stream],
        max_answer: MaxAnswer,
    ) -> Self {
        Self {
            streams,
            // It is text and structure, and once more as it is sent.
            answer: ANSWER.max(3 * max_answer.characters()),
            memory: context.extensions.get().cloned(),
            origin,
            voice,
            teller,
            output: Arc::default(),
            token: context.meta.get_progress_token(),
            cancelled: context.ct.clone(),
        }
    }

    /// Waits until there is room for an answer of about this size.
    pub async fn wait_for_room(&self, bytes: usize) {
        if let Some(memory) = &self.memory {
            memory.wait_for_room(bytes, &self.cancelled).await;
        }
    }

    /// Runs a command to its end, for as long as somebody waits for it. What it leaves running
    /// becomes a job.
    pub async fn run(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
    ) -> Result<Outcome, Error> {
        let mut run = self.start(engine, owner, request).await?;
        let outcome = match self.finish(&mut run, pending()).await {
            Over::Ended(outcome) => outcome,
            Over::Left => Err(Error::Closed),
        };
        self.ended(outcome).await
    }

    /// The same for a command that is handed over as a job when it takes longer than that, or asks
    /// for input.
    pub async fn run_or_hand_over(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
        patience: Option<Duration>,
    ) -> Result<CallOutcome, Error> {
        let interactive = request.input.is_some();
        let mut run = self.start(engine, owner, request).await?;
        let asking = run.asking();
        let leave = async {
            tokio::select! {
                () = asking, if interactive => {}
                () = tokio::time::sleep(patience.unwrap_or(MAX_TIMEOUT)) => {}
            }
        };
        match self.finish(&mut run, leave).await {
            Over::Ended(outcome) => self.ended(outcome).await.map(CallOutcome::Ended),
            Over::Left => Ok(CallOutcome::HandedOver(engine.hand_over(owner, run))),
        }
    }

    async fn ended(&self, outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
        self.teller.tell_outcome(&outcome).await;
        self.wait_for_room(self.answer).await;
        outcome
    }

    /// Starts a command that goes on while its owner does something else.
    pub async fn start_job(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        let _reserved = engine.reserve_job(owner)?;
        let run = self.start(engine, owner, request).await?;
        Ok(engine.hand_over(owner, run))
    }

    /// Starts one that goes on when nobody here does.
    pub async fn start_detached(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        let started = engine.start_detached(owner, &self.origin, request).await;
        match &started {
            Err(error) => self.teller.tell_error(error).await,
            // Nobody would know what to ask for.
            Ok(job) if self.cancelled.is_cancelled() => drop(job.stop(None, STOP_GRACE).await),
            Ok(_) => {}
        }
        started
    }

    /// Runs a command to its end or hands it over, with an output its owner can read from the
    /// beginning on; returns its id too.
    pub async fn run_followed(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
        patience: Option<Duration>,
    ) -> Result<(String, CallOutcome), Error> {
        let mut run = self.start(engine, owner, request.clone()).await?;
        let id = run.id().to_string();
        owner.follow(&id, Some(request), run.output().clone());
        let leave = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => pending().await,
            }
        };
        let Over::Ended(outcome) = self.finish(&mut run, leave).await else {
            return Ok((id, CallOutcome::HandedOver(engine.hand_over(owner, run))));
        };
        let outcome = self.ended(outcome).await;
        match &outcome {
            Ok(outcome) => owner.note_end(&id, outcome),
            Err(_) => owner.forget(&id),
        }
        Ok((id, CallOutcome::Ended(outcome?)))
    }

    /// Starts a command when it is its turn, unless nobody waits for it by then.
    pub async fn start(
        &self,
        engine: &Engine,
        owner: &Client,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let started = tokio::select! {
            biased;
            started = engine.start(owner, &self.origin, request) => started,
            () = self.cancelled.cancelled() => Err(Error::Cancelled),
        };
        if let Err(error) = &started {
            self.teller.tell_error(error).await;
        }
        started
    }

    /// Waits for the outcome of a run, or until there is a reason to leave before that. Then it is time for
    /// the answer.
    async fn finish(&self, run: &mut Run, leave: impl Future<Output = ()>) -> Over {
        let mut leave = pin!(leave);
        let output = run.output().clone();
        let _ = self.output.set(output.clone());
        let mut reporter =
            self.token.clone().map(|token| Reporter::new(token, output, self.streams));
        let mut telling = None;
        let mut over = None;
        let mut last_words = Instant::now();
        let mut cancelled = false;
        let over = loop {
            let may_tell = telling.is_none() && over.is_none() && !cancelled;
            tokio::select! {
                biased;
                result = run.outcome(), if over.is_none() => {
                    over = Some(Over::Ended(result));
                    last_words = Instant::now() + LAST_WORDS;
                }
                () = self.cancelled.cancelled(), if !cancelled => {
                    cancelled = true;
                    run.cancel();
                }
                () = &mut leave, if over.is_none() => {
                    over = Some(Over::Left);
                    last_words = Instant::now() + LAST_WORDS;
                }
                () = finish(&mut telling) => telling = None,
                // At the end of a connection, nobody may take it any more.
                () = sleep_until(last_words), if over.is_some() => telling = None,
                news = next_news(&mut reporter), if may_tell => {
                    telling = Some(Box::pin(self.tell(news)));
                }
            }
            if let Some(over) = over.take_if(|_| telling.is_none() || cancelled) {
                break over;
            }
        };
        // Somebody who has not read the last progress holds on to it.
        drop(telling);
        self.voice.stand_apart().await;
        over
    }

    async fn tell(&self, news: ProgressNotificationParam) {
        let news = ProgressNotification::new(news);
        self.voice.say(ServerNotification::ProgressNotification(news)).await;
    }
}

async fn finish<F: Future<Output = ()> + Unpin>(telling: &mut Option<F>) {
    match telling {
        Some(telling) => telling.await,
        None => pending().await,
    }
}

async fn next_news(reporter: &mut Option<Reporter>) -> ProgressNotificationParam {
    match reporter {
        Some(reporter) => reporter.next().await,
        None => pending().await,
    }
}

/// Decides when there is something to tell, and what.
struct Reporter {
    token: ProgressToken,
    output: Output,
    streams: &'static [Stream],
    arrived: watch::Receiver<u64>,
    /// How many bytes were told of.
    seen: u64,
    /// What was told: the bytes, and one for each time there were none.
    told: u64,
    last: Option<Instant>,
    began: Instant,
}

impl Reporter {
    fn new(token: ProgressToken, output: Output, streams: &'static [Stream]) -> Self {
        let (arrived, began) = (output.watch(), Instant::now());
        Self { token, output, streams, arrived, seen: 0, told: 0, last: None, began }
    }

    /// The next thing to tell. Nothing is lost if it is dropped before it is done.
    async fn next(&mut self) -> ProgressNotificationParam {
        let silent_until = self.last.unwrap_or(self.began) + HEARTBEAT;
        tokio::select! {
            () = self.more() => {
                let first = Instant::now() + FIRST;
                sleep_until(self.last.map_or(first, |last| last + PACE)).await;
            }
            () = sleep_until(silent_until) => {}
        }
        // A silent command counts one up: progress always increases.
        self.seen = self.output.length();
        self.told = self.seen.max(self.told + 1);
        self.last = Some(Instant::now());
        let news = ProgressNotificationParam::new(self.token.clone(), self.told as f64);
        news.with_message(self.output.newest(self.streams))
    }

    async fn more(&self) {
        // The sender lives as long as the output we hold.
        let _ = self.arrived.clone().wait_for(|arrived| *arrived > self.seen).await;
    }
}
