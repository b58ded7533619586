//! A run that a recorder keeps, as its owner's server sees it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::Answer;
use mcpz_output::{Output, Stream};
use mcpz_runtime::aside;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use super::JobFolder;
use super::job_folder::open;
use crate::control::{Connection, OutputRange, Reply};
use crate::error::Error;
use crate::jobs::{JobEnd, JobOutcome};
use crate::outcome::Outcome;
use crate::run::{Action, Life, Message, Run, TaskEnds};

/// Between two connections to a recorder that is there and does not answer.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How much of the file is read at a time.
const PIECE: usize = 256 << 10;

struct Follower {
    job: JobFolder,
    output: Output,
    life: watch::Sender<Life>,
    backlog: Arc<AtomicUsize>,
    /// What its recorder said at last.
    end: Option<JobEnd>,
    /// Why the recorder denies access, if it does.
    refused: Option<String>,
    /// Callers that wait for the recorder's answers, in order.
    asked: VecDeque<oneshot::Sender<Answer>>,
}

/// Follows a detached run; `output` reads the file its recorder writes.
pub fn follow(job: JobFolder, output: Output) -> Run {
    let manifest = &job.manifest;
    let (id, command) = (Arc::from(manifest.run.as_str()), manifest.command.clone());
    let (run, ends) = Run::new(id, command, None, manifest.input, output.clone());
    let TaskEnds { answer, messages, life, backlog, .. } = ends;
    let (end, refused, asked) = (None, None, VecDeque::new());
    let follower = Follower { job, output, life, backlog, end, refused, asked };
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
                    if self.attend(connection, &mut messages).await.is_none() {
                        return;
                    }
                }
                Err(error) if is_gone(&error) => break,
                // It has too many connections, or something else is wrong.
                Err(_) => {}
            }
            if self.end.is_some() || self.refused.is_some() || self.job.is_over() {
                break;
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                message = messages.recv() => if matches!(message, None | Some(Message::Cancel)) {
                    return;
                },
            }
        }
        self.conclude(answer).await;
    }

    /// The recorder has left, and everything it had to say is in its folder.
    async fn conclude(mut self, answer: oneshot::Sender<Result<Outcome, Error>>) {
        let job = self.job.clone();
        let written = aside(move || job.read_end().ok_or_else(|| job.took()));
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
                Err(Error::NotBegun(reason))
            }
            (None, JobOutcome::Ran(how, usage)) => Ok(Outcome {
                id: Arc::from(self.job.manifest.run.as_str()),
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

    /// Listens to the recorder, and passes messages on, until it leaves. Nothing if nobody here follows the run any
    /// more.
    async fn attend(
        &mut self,
        mut connection: Connection,
        messages: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<()> {
        let run = self.job.manifest.run.clone();
        // What must not wait behind input that the run does not read has a connection of its own.
        let urgent = Connection::open(&self.job.folder).ok();
        // What was asked on another connection is not answered on this one.
        self.asked.clear();
        let known = self.output.end(Stream::Stdout);
        connection.follow(&run, OutputRange::After(known), true).ok()?;
        loop {
            tokio::select! {
                reply = connection.next() => match reply {
                    Some(Reply::Output { stream, bytes, .. }) => self.output.append(stream, &bytes),
                    Some(Reply::Passing { stream, at, bytes }) => {
                        self.output.pass(stream, at, &bytes);
                    }
                    Some(Reply::Life(life)) => drop(self.life.send_replace(life)),
                    Some(Reply::Ended(end)) => self.end = Some(end),
                    Some(Reply::Refused(reason)) => self.refused = Some(reason),
                    Some(Reply::Seen(seen)) => {
                        if let (Some(asked), Some(seen)) = (self.asked.pop_front(), seen) {
                            let _ = asked.send(seen);
                        }
                    }
                    Some(Reply::Jobs(_)) => {}
                    Some(Reply::NoSuchJob) | None => return Some(()),
                },
                message = messages.recv() => match message {
                    None | Some(Message::Cancel) => return None,
                    Some(message) => self.pass_on((&connection, urgent.as_ref()), &run, message),
                },
            }
        }
    }

    fn pass_on(
        &mut self,
        (connection, urgent): (&Connection, Option<&Connection>),
        run: &str,
        message: Message,
    ) {
        let urgent = urgent.unwrap_or(connection);
        // A recorder that has left needs no message.
        let _ = match message {
            Message::Do(action) => match action {
                Action::Write { ref bytes, .. } => {
                    let (backlog, length) = (self.backlog.clone(), bytes.len());
                    connection.say(run, action, move || {
                        backlog.fetch_sub(length, Ordering::Relaxed);
                    })
                }
                Action::CloseInput => connection.say(run, action, || ()),
                _ => {
                    // It could not listen if someone has stopped it.
                    urgent.wake();
                    urgent.say(run, action, || ())
                }
            },
            Message::Look(question, asked) => {
                self.asked.push_back(asked);
                connection.look(run, question)
            }
            Message::Cancel | Message::BecomeJob | Message::Switch(..) => Ok(()),
        };
    }
}

/// Whether nobody is there, and nobody will be.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Takes in what is in the files and was not told, but for so many bytes that were lost.
async fn read_rest(job: &JobFolder, output: &Output, lost: u64) {
    let (job, output) = (job.clone(), output.clone());
    let read = aside(move || {
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
            output.pass(Stream::Stdout, at, &newest);
        }
        io::Result::Ok(())
    });
    if let Ok(Err(error)) = read.await {
        tracing::warn!("the output of a detached job cannot be read: {error}");
    }
}
