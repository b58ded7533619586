//! A detached run, as its owner's server sees it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::Answer;
use mcpz_output::{Output, Stream};
use mcpz_runtime::spawn_blocking;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use super::JobFolder;
use super::job_folder::open;
use crate::control::{Connection, ControlReply, OutputRange};
use crate::error::Error;
use crate::jobs::{JobEnd, JobOutcome};
use crate::outcome::Outcome;
use crate::run::{Life, Message, Run, RunAction, TaskEnds};

/// The pause before connecting again to a recorder that does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How much of the file to read at a time.
const PIECE: usize = 256 << 10;

struct Follower {
    job: JobFolder,
    output: Output,
    life: watch::Sender<Life>,
    backlog: Arc<AtomicUsize>,
    /// The end its recorder reported.
    end: Option<JobEnd>,
    /// Why the recorder denies access, if it does.
    refused: Option<String>,
    /// Callers that wait for the recorder's answers, in order.
    callers: VecDeque<oneshot::Sender<Answer>>,
}

/// Follows a detached run. `output` reads the file its recorder writes.
pub fn follow(job: JobFolder, output: Output) -> Run {
    let manifest = &job.manifest;
    let (id, command) = (Arc::from(manifest.run.as_str()), manifest.command.clone());
    let (run, ends) = Run::new(id, command, None, manifest.input, output.clone());
    let TaskEnds { about, answer, messages, life, backlog, .. } = ends;
    if let Some(location) = job.manifest.location() {
        let _ = about.location.set(location);
    }
    let (end, refused, callers) = (None, None, VecDeque::new());
    let follower = Follower { job, output, life, backlog, end, refused, callers };
    tokio::spawn(follower.follow(answer, messages));
    run
}

impl Follower {
    async fn follow(
        mut self,
        answer: oneshot::Sender<Result<Outcome, Error>>,
        mut messages: mpsc::UnboundedReceiver<Message>,
    ) {
        loop {
            match Connection::open(&self.job.folder) {
                Ok(connection) => {
                    if self.listen(connection, &mut messages).await.is_none() {
                        return;
                    }
                }
                Err(error) if is_gone(&error) => break,
                // Too many connections, or another error that may pass.
                Err(_) => {}
            }
            if self.end.is_some() || self.refused.is_some() || self.job.is_over() {
                break;
            }
            tokio::select! {
                () = sleep(RETRY_PAUSE) => {}
                message = messages.recv() => if matches!(message, None | Some(Message::Cancel)) {
                    return;
                },
            }
        }
        self.conclude(answer).await;
    }

    /// Ends the run. The recorder has left, and its folder contains the rest.
    async fn conclude(mut self, answer: oneshot::Sender<Result<Outcome, Error>>) {
        let job = self.job.clone();
        let written = spawn_blocking(move || job.read_end().ok_or_else(|| job.took()));
        let written = written.await.unwrap_or(Err(Duration::ZERO));
        let known = self.end.take().map_or(written, Ok);
        let end = known.unwrap_or_else(JobEnd::lost);
        self.life.send_modify(|life| {
            life.pid = life.pid.or(end.pid);
            life.stopped = end.stopped;
            life.survivors = end.survivors;
            life.took = Some(end.took);
        });
        let outcome = match (self.refused.take(), end.outcome) {
            (Some(reason), _) | (None, JobOutcome::NotStarted(reason)) => {
                Err(Error::RecorderFailed(reason))
            }
            (None, JobOutcome::Ran(how, usage)) => Ok(Outcome {
                id: Arc::from(self.job.manifest.run.as_str()),
                command: self.job.manifest.command.clone(),
                location: self.job.manifest.location(),
                end: how,
                limit: end.limit,
                usage,
                output: self.output.clone(),
                background: Vec::new(),
                warnings: Vec::new(),
                refused: end.refused,
                job: None,
                session: None,
            }),
        };
        let _ = answer.send(outcome);
        drop(self.life);
        read_rest(&self.job, &self.output, end.lost).await;
        self.output.finish();
    }

    /// Listens to the recorder and forwards messages until it leaves. Returns `None` if nobody here follows the run any
    /// more.
    async fn listen(
        &mut self,
        mut connection: Connection,
        messages: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<()> {
        let run = self.job.manifest.run.clone();
        // A second connection, so that a stop does not wait behind input that the run does not read.
        let urgent = Connection::open(&self.job.folder).ok();
        // Answers to questions asked on an earlier connection do not arrive on this one.
        self.callers.clear();
        let known = self.output.end(Stream::Stdout);
        connection.follow(&run, OutputRange::After(known), true).ok()?;
        loop {
            tokio::select! {
                reply = connection.next() => match reply {
                    Some(ControlReply::Output { stream, bytes, .. }) => self.output.append(stream, &bytes),
                    Some(ControlReply::Passing { stream, at, bytes }) => {
                        self.output.append_beyond_cut(stream, at, &bytes);
                    }
                    Some(ControlReply::Life(life)) => drop(self.life.send_replace(life)),
                    Some(ControlReply::Ended(end)) => self.end = Some(end),
                    Some(ControlReply::Refused(reason)) => self.refused = Some(reason),
                    Some(ControlReply::Seen(seen)) => {
                        if let (Some(caller), Some(seen)) = (self.callers.pop_front(), seen) {
                            let _ = caller.send(seen);
                        }
                    }
                    Some(
                        ControlReply::Jobs(_)
                        | ControlReply::Places(_)
                        | ControlReply::StoppedPlaces(_)
                        | ControlReply::Kept(_)
                        | ControlReply::OutputsEnd { .. },
                    ) => {}
                    Some(ControlReply::NoSuchJob) | None => return Some(()),
                },
                message = messages.recv() => match message {
                    None | Some(Message::Cancel) => return None,
                    Some(message) => self.forward((&connection, urgent.as_ref()), &run, message),
                },
            }
        }
    }

    fn forward(
        &mut self,
        (connection, urgent): (&Connection, Option<&Connection>),
        run: &str,
        message: Message,
    ) {
        let urgent = urgent.unwrap_or(connection);
        // A recorder that has left needs no message.
        let _ = match message {
            Message::Do(action) => match action {
                RunAction::Write { ref bytes, .. } => {
                    let (backlog, length) = (self.backlog.clone(), bytes.len());
                    connection.say(run, action, move || {
                        backlog.fetch_sub(length, Ordering::Relaxed);
                    })
                }
                // In order with what is written.
                RunAction::CloseInput | RunAction::Permit(_) => connection.say(run, action, || ()),
                _ => {
                    // Someone may have stopped it, and then it does not read.
                    urgent.wake();
                    urgent.say(run, action, || ())
                }
            },
            Message::Look(question, caller) => {
                self.callers.push_back(caller);
                connection.look(run, question)
            }
            Message::Cancel | Message::BecomeJob | Message::Switch(..) => Ok(()),
        };
    }
}

/// Whether nobody serves the socket, and nobody will.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Reads what is in the files and was not sent, `lost` bytes aside.
async fn read_rest(job: &JobFolder, output: &Output, lost: u64) {
    let (name, job, output) = (job.manifest.name(), job.clone(), output.clone());
    let read = spawn_blocking(move || {
        let (file, mut piece) = (open(&job.output())?, vec![0; PIECE]);
        while output.cut(Stream::Stdout).is_none() {
            match file.read_at(&mut piece, output.end(Stream::Stdout))? {
                0 => break,
                length => output.append(Stream::Stdout, &piece[..length]),
            }
        }
        let known = output.end(Stream::Stdout);
        let (at, newest) = job.newest_after(known, lost)?;
        if at > known || !newest.is_empty() {
            output.append_beyond_cut(Stream::Stdout, at, &newest);
        }
        io::Result::Ok(())
    });
    if let Ok(Err(error)) = read.await {
        tracing::warn!("cannot read the output of detached job {name}: {error}");
    }
}
