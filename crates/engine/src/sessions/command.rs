//! One command in a session, from its order to its answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{Identity, Usage};
use mcpz_audit::Recorded;
use mcpz_output::Output;
use mcpz_runtime::Later;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::dialect::parse_answer;
use super::{Line, Queued, Session};
use crate::error::Error;
use crate::gate::Plan;
use crate::jobs::{State, Use};
use crate::outcome::{End, Outcome, SessionState};
use crate::run::{Accounting, Action, Message, Run, TaskEnds, until};

/// What a command is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// How long the shell may take to answer after its command was killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks while killing.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The longest answer: a code and a path.
const MAX_ANSWER: usize = 8 << 10;

/// A command for the shell of a session.
pub(crate) struct SessionCommand {
    pub session: Arc<Session>,
    pub _use: Use,
    pub text: String,
    pub plan: Plan,
    pub recorded: Recorded,
    pub output: Output,
    pub accounting: Accounting,
    pub later: Later,
}

/// How an order came to its end.
enum Answer {
    Given {
        code: i32,
        directory: PathBuf,
    },
    /// The shell has ended.
    Gone,
}

impl SessionCommand {
    /// Starts a task that carries it out when it is its turn.
    pub fn start(self, queued: Queued, shown: String) -> Run {
        let (id, output) = (self.recorded.id().clone(), self.output.clone());
        let description = self.plan.description.clone();
        let (run, ends) = Run::new(id, shown, description, None, output);
        let TaskEnds { answer, messages, .. } = ends;
        tokio::spawn(self.carry_out(queued, answer, messages));
        run
    }

    async fn carry_out(
        self,
        queued: Queued,
        answer: oneshot::Sender<Result<Outcome, Error>>,
        mut messages: mpsc::UnboundedReceiver<Message>,
    ) {
        let session = self.session.clone();
        let turn = tokio::select! {
            biased;
            turn = queued.turn() => turn.ok(),
            () = cancelled(&mut messages) => None,
        };
        let alive = session.job.state() == State::Running;
        let Some(turn) = turn.filter(|_| alive) else {
            let error = if alive { Error::Cancelled } else { Error::SessionEnded };
            self.recorded.end(Err(error.reason()));
            let _ = answer.send(Err(error));
            return;
        };
        let mut line = session.line.lock().await;
        let began = Instant::now();
        let controls = session.job.controls();
        let inspector = controls.inspector();
        let ((), before) = tokio::join!(controls.switch(self.output.clone()), inspector.started());
        let order = session.dialect.order(&self.text);
        let deadline = self.plan.timeout.map(|timeout| began + timeout);
        let after = self.plan.timeout.unwrap_or_default();
        let answered = tokio::select! {
            biased;
            answer = line.give(&session, &order) => Ok(answer),
            () = cancelled(&mut messages) => Err(End::Cancelled),
            () = until(deadline) => Err(End::TimedOut { after }),
        };
        let (given, stopped) = match answered {
            Ok(answer) => (answer, None),
            Err(end) => (line.interrupt(&session, before.as_deref()).await, Some(end)),
        };
        // All that was printed until the answer is the command's.
        controls.switch(session.job.output.clone()).await;
        drop((line, turn));
        let outcome = self.outcome(given, stopped, began.elapsed());
        self.output.settle();
        self.output.finish();
        let (recorded, recorded_outcome) = (self.recorded, outcome.clone());
        self.later.add(move || recorded.end(Ok(recorded_outcome.ended())));
        let outcome = Ok(outcome);
        self.accounting.note_answer(&outcome);
        let _ = answer.send(outcome);
    }

    fn outcome(&self, given: Answer, stopped: Option<End>, wall: Duration) -> Outcome {
        let ended = matches!(given, Answer::Gone);
        let (end, limit, directory) = match given {
            Answer::Given { code, directory } => (End::Exited(code), None, Some(directory)),
            Answer::Gone => {
                let shells = self.session.job.end().outcome.and_then(Result::ok);
                let limit = shells.as_ref().and_then(|outcome| outcome.limit);
                (shells.map_or(End::Lost, |outcome| outcome.end), limit, None)
            }
        };
        let refused = self.session.refused(end, &self.output, directory.as_deref());
        let (name, expired) = (self.session.name.clone(), self.session.take_expired());
        let session = SessionState { name, directory, ended, expired };
        Outcome {
            id: self.recorded.id().clone(),
            end: stopped.unwrap_or(end),
            limit,
            usage: Usage { wall, ..Usage::default() },
            output: self.output.clone(),
            background: Vec::new(),
            warnings: self.plan.warnings.clone(),
            refused,
            job: None,
            session: Some(Box::new(session)),
        }
    }
}

impl Line {
    /// Gives an order and waits for the answer.
    async fn give(&mut self, session: &Session, order: &[u8]) -> Answer {
        match self.orders.write_all(order).await {
            Ok(()) => self.answer(session).await,
            Err(_) => session.end().await,
        }
    }

    /// Waits for the answer to an order.
    async fn answer(&mut self, session: &Session) -> Answer {
        let mut bytes = Vec::new();
        tokio::select! {
            biased;
            _ = self.answers.read_until(0, &mut bytes) => match parse_answer(&bytes) {
                Some((code, directory)) if bytes.len() <= MAX_ANSWER => {
                    Answer::Given { code, directory: directory.into() }
                }
                _ => session.end().await,
            },
            () = ended(session) => Answer::Gone,
        }
    }

    /// Ends what the shell has started since and, if it does not answer then, the shell.
    async fn interrupt(&mut self, session: &Session, before: Option<&[Identity]>) -> Answer {
        session.signal_commands(Signal::TERM, before).await;
        if let Ok(answer) = timeout(GRACE, self.answer(session)).await {
            return answer;
        }
        let until = Instant::now() + PATIENCE;
        // A shell that is busy by itself has nothing that could be ended.
        while session.signal_commands(Signal::KILL, before).await && Instant::now() < until {
            if let Ok(answer) = timeout(LOOK_AGAIN, self.answer(session)).await {
                return answer;
            }
        }
        session.end().await
    }
}

impl Session {
    /// Sends a signal to all that the shell has started since. False if that is nothing, or nobody knows.
    async fn signal_commands(&self, signal: Signal, before: Option<&[Identity]>) -> bool {
        let Some(before) = before else { return false };
        self.job.controls().inspector().signal_started(signal.as_raw(), before).await
    }

    /// Ends the shell with all it started.
    async fn end(&self) -> Answer {
        self.job.stop(None, Duration::ZERO).await;
        Answer::Gone
    }
}

/// Done when the shell has ended, and what it printed is kept.
async fn ended(session: &Session) {
    let mut ending = session.job.ending();
    while session.job.state() == State::Running && ending.changed().await.is_ok() {}
    // A shell that ends while its answer is under way has given it.
    sleep(Duration::from_millis(5)).await;
}

/// Done when nobody wants the answer any more.
async fn cancelled(messages: &mut mpsc::UnboundedReceiver<Message>) {
    loop {
        match messages.recv().await {
            None | Some(Message::Cancel | Message::Do(Action::Stop { .. })) => return,
            Some(_) => {}
        }
    }
}
