//! One command in a session, from its place in the queue to its report.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{Identity, Usage};
use mcpz_audit::RecordedRun;
use mcpz_output::Output;
use mcpz_runtime::Later;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::conversation::{self, Conversation};
use super::{Queued, Session};
use crate::error::Error;
use crate::exec_rules::described;
use crate::gate::Plan;
use crate::jobs::{JobState, UseGuard};
use crate::outcome::{End, Outcome, SessionState};
use crate::places::Venue;
use crate::run::{Accounting, Message, Run, RunAction, TaskEnds, until};

/// How long a command has to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// How long the shell may take to report after its command was killed, and everything killed to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two kills.
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// A command for the shell of a session.
pub(crate) struct SessionCommand {
    pub session: Arc<Session>,
    pub venue: Venue,
    pub _in_use: UseGuard,
    pub text: String,
    /// The same with secrets masked.
    pub shown: String,
    pub plan: Plan,
    pub recorded: RecordedRun,
    pub output: Output,
    pub accounting: Accounting,
    pub later: Later,
}

/// How a command ended.
enum Report {
    Done {
        code: i32,
        directory: PathBuf,
    },
    /// The shell ended with it.
    ShellEnded,
}

impl SessionCommand {
    /// Starts a task that runs it when it is its turn.
    pub fn start(self, queued: Queued) -> Run {
        let shown = self.shown.clone();
        let (id, output) = (self.recorded.id().clone(), self.output.clone());
        let description = self.plan.description.clone();
        let (run, ends) = Run::new(id, shown, description, None, output);
        tokio::spawn(self.run(queued, ends));
        run
    }

    async fn run(self, queued: Queued, TaskEnds { about, answer, mut messages, .. }: TaskEnds) {
        let session = self.session.clone();
        let permit = tokio::select! {
            biased;
            permit = queued.permit() => permit.ok(),
            () = wait_for_cancel(&mut messages) => None,
        };
        let alive = session.job.state() == JobState::Running;
        let Some(permit) = permit.filter(|_| alive) else {
            let error = if alive { Error::Cancelled } else { Error::SessionEnded };
            self.recorded.end(Err(error.reason()));
            let _ = answer.send(Err(error));
            return;
        };
        let mut shell = session.conversation.lock().await;
        let began = Instant::now();
        let location = session.location();
        let _ = about.location.set(location.clone());
        let controls = session.job.controls();
        let inspector = controls.inspector();
        let rules = self.plan.exec_rules.clone();
        let locked = rules.is_some();
        if let Some(rules) = rules {
            controls.permit(rules);
        }
        let ((), before) = tokio::join!(controls.switch(self.output.clone()), inspector.others());
        let deadline = self.plan.timeout.map(|timeout| began + timeout);
        let after = self.plan.timeout.unwrap_or_default();
        let reported = tokio::select! {
            biased;
            report = shell.run(&session, &self.text) => Ok(report),
            () = wait_for_cancel(&mut messages) => Err(End::Cancelled),
            () = until(deadline) => Err(End::TimedOut { after }),
        };
        let (report, stopped) = match reported {
            Ok(report) => (report, None),
            Err(end) => (shell.interrupt(&session, before.as_deref()).await, Some(end)),
        };
        // Everything printed before the report belongs to the command.
        controls.switch(session.job.output.clone()).await;
        let execs = match locked {
            true => inspector.refused_execs(true).await,
            false => Vec::new(),
        };
        drop((shell, permit));
        if let Report::Done { directory, .. } = &report {
            session.note_directory(directory);
        }
        let outcome = self.outcome(report, stopped, began.elapsed());
        let mut outcome = Outcome { location: Some(location), ..outcome };
        let place = self.venue.place.as_ref();
        let news = match outcome.end {
            End::Lost => place.map(|place| place.about_loss()),
            _ => place.and_then(|place| place.take_news()),
        };
        outcome.refused.splice(0..0, described(&execs).into_iter().chain(news));
        self.output.mark_answered();
        self.output.finish();
        let (recorded, recorded_outcome) = (self.recorded, outcome.clone());
        self.later.add(move || recorded.end(Ok(recorded_outcome.ended())));
        let outcome = Ok(outcome);
        self.accounting.note_answer(&outcome);
        let _ = answer.send(outcome);
    }

    fn outcome(&self, report: Report, stopped: Option<End>, wall: Duration) -> Outcome {
        let ended = matches!(report, Report::ShellEnded);
        let (end, limit, directory) = match report {
            Report::Done { code, directory } => (End::Exited(code), None, Some(directory)),
            Report::ShellEnded => {
                let shells = self.session.job.end().outcome.and_then(Result::ok);
                let limit = shells.as_ref().and_then(|outcome| outcome.limit);
                (shells.map_or(End::Lost, |outcome| outcome.end), limit, None)
            }
        };
        let refused = self.session.refused(end, &self.output, directory.as_deref());
        let (name, expired) = (self.session.name.clone(), self.session.take_expired());
        let was_lost = self.session.take_was_lost();
        let session = SessionState { name, directory, ended, expired, was_lost };
        Outcome {
            id: self.recorded.id().clone(),
            command: self.shown.clone(),
            location: None,
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

impl Conversation {
    /// Sends a command and waits for its end.
    async fn run(&mut self, session: &Session, text: &str) -> Report {
        match self.order(text).await {
            Ok(()) => self.end(session).await,
            Err(_) => session.end().await,
        }
    }

    /// Waits for the end of a command, or of the shell.
    async fn end(&mut self, session: &Session) -> Report {
        tokio::select! {
            biased;
            report = self.report() => match report {
                Some(conversation::Report { code, directory }) => {
                    Report::Done { code: code.into(), directory: directory.into() }
                }
                None => session.end().await,
            },
            () = wait_for_end(session) => Report::ShellEnded,
        }
    }

    /// Ends everything that was started since. If the shell still does not report, ends the shell.
    ///
    /// This includes what the command has put in the background, even if it is no longer below the shell. What was
    /// there before is left alone, with everything below it.
    async fn interrupt(&mut self, session: &Session, before: Option<&[Identity]>) -> Report {
        // A shell whose command was ended reports, if only in a moment. One that is busy itself has started nothing.
        let mut awaits = session.signal_since(Signal::TERM.as_raw(), before).await;
        let grace = Instant::now() + GRACE;
        let mut report = timeout_at(grace, self.end(session)).await.ok();
        while report.is_some() && Instant::now() < grace && session.signal_since(0, before).await {
            sleep(KILL_INTERVAL).await;
        }
        let until = Instant::now() + KILL_TIMEOUT;
        loop {
            let killed = session.signal_since(Signal::KILL.as_raw(), before).await;
            awaits |= killed;
            let late = Instant::now() >= until;
            match report {
                Some(Report::ShellEnded) => return Report::ShellEnded,
                Some(report) if late || !killed => return report,
                // Whatever was killed needs a moment to be gone.
                Some(_) => sleep(KILL_INTERVAL).await,
                None if late || !awaits => return session.end().await,
                None => report = timeout(KILL_INTERVAL, self.end(session)).await.ok(),
            }
        }
    }
}

impl Session {
    /// Signals everything that was started since. Returns false if that is nothing, or cannot be found out.
    async fn signal_since(&self, signal: i32, before: Option<&[Identity]>) -> bool {
        let Some(before) = before else { return false };
        self.job.controls().inspector().signal_others(signal, before).await
    }

    /// Ends the shell and everything it started.
    async fn end(&self) -> Report {
        self.job.stop(None, Duration::ZERO).await;
        Report::ShellEnded
    }
}

/// Completes when the shell has ended and its output is kept.
async fn wait_for_end(session: &Session) {
    let mut ending = session.job.watch_end();
    while session.job.state() == JobState::Running && ending.changed().await.is_ok() {}
    // A report may still be in the pipe when the shell's end is noticed.
    sleep(Duration::from_millis(5)).await;
}

/// Completes when the command is cancelled, or nobody waits for it any more.
async fn wait_for_cancel(messages: &mut mpsc::UnboundedReceiver<Message>) {
    loop {
        match messages.recv().await {
            None | Some(Message::Cancel | Message::Do(RunAction::Stop { .. })) => return,
            Some(_) => {}
        }
    }
}
