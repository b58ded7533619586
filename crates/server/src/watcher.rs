//! Runs commands for one call: sends progress, passes a cancellation on and returns the outcome.
//!
//! Progress and the answer both go through here, so that no progress follows the answer, and no client reads both at
//! once. The TypeScript SDK forgets a call's token when its answer comes, before it looks at progress from the same
//! read. It then reports an error, and Gemini CLI and Qwen Code show the server as disconnected. Therefore the first
//! progress comes a moment after the first output (`progress.rs`), and the answer a moment after the last progress
//! (`notifications.rs`), on stdio not before the client has read that ([`LAST_WORDS`] at most). A call that continues
//! as a task falls silent before it is answered with a handle.

mod progress;

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpz_engine::{Engine, Error, Job, Origin, Outcome, Owner, Run, RunRequest, Settings};
use mcpz_output::{Output, Stream};
use rmcp::RoleServer;
use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::RequestContext;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::budget::MaxAnswer;
use crate::memory::{ANSWER, RequestMemory};
use crate::notifications::{ClientLog, Notifier};
use progress::Progress;

/// How long the answer waits until the client has read the last progress. A client that does not read that does not
/// read the answer either.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

pub struct Watcher {
    pub notifier: Notifier,
    token: Option<ProgressToken>,
    pub origin: Origin,
    log: ClientLog,
    /// The command with secrets masked, once it runs.
    pub command: OnceLock<String>,
    /// What the command prints, once it runs.
    pub output: Arc<OnceLock<Output>>,
    /// Cancelled when nobody waits for the answer any more.
    pub cancelled: CancellationToken,
    /// The streams that answers show.
    pub streams: &'static [Stream],
    memory: Option<RequestMemory>,
    /// Roughly the memory of an answer.
    answer_size: usize,
}

/// Why a wait for a run is over.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each call, and it is soon taken apart"
)]
enum WaitEnd {
    Ended(Result<Outcome, Error>),
    /// The run continues.
    Left,
}

/// What a call waited for.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each call, and it is soon taken apart"
)]
pub enum CallOutcome {
    Ended(Outcome),
    /// The command continues as a job.
    HandedOver(Arc<Job>),
}

impl Watcher {
    pub fn new(
        context: &RequestContext<RoleServer>,
        origin: Origin,
        (notifier, log): (Notifier, ClientLog),
        streams: &'static [Stream],
        max_answer: MaxAnswer,
    ) -> Self {
        Self {
            streams,
            // Text, structure, and both once more in the message that is sent.
            answer_size: ANSWER.max(3 * max_answer.characters()),
            memory: context.extensions.get().cloned(),
            origin,
            notifier,
            log,
            command: OnceLock::new(),
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

    /// Runs a command until it ends or the call is cancelled. Processes it leaves running become a job.
    pub async fn run(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
    ) -> Result<Outcome, Error> {
        let mut run = self.start(engine, owner, request).await?;
        let outcome = match self.wait(&mut run, pending()).await {
            WaitEnd::Ended(outcome) => outcome,
            WaitEnd::Left => Err(Error::Closed),
        };
        self.ended(outcome).await
    }

    /// The same, but the command becomes a job when it takes longer than `after`, or asks for input.
    pub async fn run_or_hand_over(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
        after: Option<Duration>,
    ) -> Result<CallOutcome, Error> {
        let interactive = request.input.is_some();
        let mut run = self.start(engine, owner, request).await?;
        let asking = run.asking();
        let leave = async {
            tokio::select! {
                () = asking, if interactive => {}
                () = tokio::time::sleep(after.unwrap_or(Settings::MAX_TIMEOUT)) => {}
            }
        };
        match self.wait(&mut run, leave).await {
            WaitEnd::Ended(outcome) => self.ended(outcome).await.map(CallOutcome::Ended),
            WaitEnd::Left => Ok(CallOutcome::HandedOver(engine.hand_over(owner, run))),
        }
    }

    async fn ended(&self, outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
        self.log.log_outcome(&outcome).await;
        self.wait_for_room(self.answer_size).await;
        outcome
    }

    /// Starts a command that is a job from the beginning.
    pub async fn start_job(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        let _reserved = engine.reserve_job(owner)?;
        let run = self.start(engine, owner, request).await?;
        Ok(engine.hand_over(owner, run))
    }

    /// Starts a job that outlives the server.
    pub async fn start_detached(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
    ) -> Result<Arc<Job>, Error> {
        let started = engine.start_detached(owner, &self.origin, request).await;
        match &started {
            Err(error) => self.log.log_error(error).await,
            // A cancelled call is not answered, so nobody would know the job.
            Ok(job) if self.cancelled.is_cancelled() => drop(job.stop(None, Job::STOP_GRACE).await),
            Ok(_) => {}
        }
        started
    }

    /// Runs a command until it ends or becomes a job. Its owner can read its output from the start, under the id that
    /// this returns.
    pub async fn run_followed(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
        after: Option<Duration>,
    ) -> Result<(String, CallOutcome), Error> {
        let mut run = self.start(engine, owner, request.clone()).await?;
        let id = run.id().to_string();
        engine.keep_running(owner, &run, request);
        let leave = async {
            match after {
                Some(after) => tokio::time::sleep(after).await,
                None => pending().await,
            }
        };
        let WaitEnd::Ended(outcome) = self.wait(&mut run, leave).await else {
            return Ok((id, CallOutcome::HandedOver(engine.hand_over(owner, run))));
        };
        let outcome = self.ended(outcome).await;
        match &outcome {
            Ok(outcome) => owner.note_end(&id, outcome),
            Err(_) => owner.forget(&id),
        }
        Ok((id, CallOutcome::Ended(outcome?)))
    }

    /// Starts a command when it is its turn, unless the call is cancelled by then.
    pub async fn start(
        &self,
        engine: &Engine,
        owner: &Owner,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let started = tokio::select! {
            biased;
            started = engine.start(owner, &self.origin, request) => started,
            () = self.cancelled.cancelled() => Err(Error::Cancelled),
        };
        if let Err(error) = &started {
            self.log.log_error(error).await;
        }
        started
    }

    /// Waits for the outcome of a run, or until `leave` is done. Afterwards the answer may be sent.
    async fn wait(&self, run: &mut Run, leave: impl Future<Output = ()>) -> WaitEnd {
        let mut leave = pin!(leave);
        let output = run.output().clone();
        let _ = self.command.set(run.command().to_owned());
        let _ = self.output.set(output.clone());
        let mut progress =
            self.token.clone().map(|token| Progress::new(token, output, self.streams));
        let mut sending = None;
        let mut end = None;
        let mut last_words = Instant::now();
        let mut cancelled = false;
        let end = loop {
            let may_send = sending.is_none() && end.is_none() && !cancelled;
            tokio::select! {
                biased;
                result = run.outcome(), if end.is_none() => {
                    end = Some(WaitEnd::Ended(result));
                    last_words = Instant::now() + LAST_WORDS;
                }
                () = self.cancelled.cancelled(), if !cancelled => {
                    cancelled = true;
                    run.cancel();
                }
                () = &mut leave, if end.is_none() => {
                    end = Some(WaitEnd::Left);
                    last_words = Instant::now() + LAST_WORDS;
                }
                () = finish(&mut sending) => sending = None,
                // At the end of a connection nobody may read it any more.
                () = sleep_until(last_words), if end.is_some() => sending = None,
                next = next(&mut progress), if may_send => {
                    sending = Some(Box::pin(self.send(next)));
                }
            }
            if let Some(end) = end.take_if(|_| sending.is_none() || cancelled) {
                break end;
            }
        };
        // While it exists it holds the notifier's lock, for which the next line waits.
        drop(sending);
        self.notifier.wait_after_progress().await;
        end
    }

    async fn send(&self, progress: ProgressNotificationParam) {
        let progress = ProgressNotification::new(progress);
        self.notifier.send(ServerNotification::ProgressNotification(progress)).await;
    }
}

async fn finish<F: Future<Output = ()> + Unpin>(sending: &mut Option<F>) {
    match sending {
        Some(sending) => sending.await,
        None => pending().await,
    }
}

async fn next(progress: &mut Option<Progress>) -> ProgressNotificationParam {
    match progress {
        Some(progress) => progress.next().await,
        None => pending().await,
    }
}
