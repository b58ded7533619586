//! A run that a recorder keeps, as its owner's server sees it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpz_agent::Answer;
use mcpz_runtime::aside;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use super::shelf::open;
use super::{Ending, Standing};
use crate::desk::{Tell, Visit, Wanted};
use crate::error::Error;
use crate::outcome::Outcome;
use crate::run::{Life, Run, Saying, Word};
use mcpz_output::{Output, Stream};

/// Between two visits to a recorder that is there and does not answer.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How much of the file is read at a time.
const PIECE: usize = 256 << 10;

struct Follower {
    standing: Standing,
    output: Output,
    living: watch::Sender<Life>,
    backlog: Arc<AtomicUsize>,
    /// What its recorder said at last.
    ending: Option<Ending>,
    /// Why it tells us nothing, if it does not.
    refused: Option<String>,
    /// Who waits for the answers to what it was asked, in order.
    asked: VecDeque<oneshot::Sender<Answer>>,
}

/// Follows a detached run; `output` reads the file its recorder writes.
pub fn follow(standing: Standing, output: Output) -> Run {
    let (answer, outcome) = oneshot::channel();
    let (words, heard) = mpsc::unbounded_channel();
    let backlog = Arc::new(AtomicUsize::new(0));
    let (living, life) = watch::channel(Life::default());
    let (id, input) = (Arc::from(standing.card.run.as_str()), standing.card.input);
    let run = Run::elsewhere(outcome, (words, backlog.clone()), life, (id, input), output.clone());
    let follower = Follower {
        standing,
        output,
        living,
        backlog,
        ending: None,
        refused: None,
        asked: VecDeque::new(),
    };
    tokio::spawn(follower.follow(answer, heard));
    run
}

impl Follower {
    async fn follow(
        mut self,
        answer: oneshot::Sender<Result<Outcome, Error>>,
        mut words: mpsc::UnboundedReceiver<Word>,
    ) {
        loop {
            match Visit::open(&self.standing.folder) {
                Ok(visit) => {
                    if self.attend(visit, &mut words).await.is_none() {
                        return;
                    }
                }
                Err(error) if is_gone(&error) => break,
                // Too many stand there, or something else is not as it should be.
                Err(_) => {}
            }
            if self.ending.is_some() || self.refused.is_some() || self.standing.is_over() {
                break;
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                word = words.recv() => if matches!(word, None | Some(Word::Cancel)) {
                    return;
                },
            }
        }
        self.conclude(answer).await;
    }

    /// The recorder has left, and everything it had to say is in its folder.
    async fn conclude(mut self, answer: oneshot::Sender<Result<Outcome, Error>>) {
        let standing = self.standing.clone();
        let written = aside(move || standing.ending().ok_or_else(|| standing.took()));
        let written = written.await.unwrap_or(Err(Duration::ZERO));
        let known = self.ending.take().map_or(written, Ok);
        let ending = known.unwrap_or_else(Ending::lost);
        self.living.send_modify(|life| {
            life.pid = life.pid.or(ending.pid);
            life.stopped = ending.stopped;
            life.survivors = ending.survivors;
            life.took = Some(ending.took);
        });
        let (id, output) = (Arc::from(self.standing.card.run.as_str()), self.output.clone());
        let (background, warnings) = (Vec::new(), Vec::new());
        let (refused, job, session) = (ending.refused, None, None);
        let outcome = self.refused.take().map_or(ending.outcome, Err).map_err(Error::NotBegun);
        let limit = ending.limit;
        let _ = answer.send(outcome.map(|(end, usage)| Outcome {
            id,
            end,
            limit,
            usage,
            output,
            background,
            warnings,
            refused,
            job,
            session,
        }));
        drop(self.living);
        read_rest(&self.standing, &self.output, ending.lost).await;
        self.output.finish();
    }

    /// Hears the recorder, and passes on what is wanted, until it leaves. Nothing if nobody here
    /// wants to know any more.
    async fn attend(
        &mut self,
        mut visit: Visit,
        words: &mut mpsc::UnboundedReceiver<Word>,
    ) -> Option<()> {
        let run = self.standing.card.run.clone();
        // What must not wait behind something the run does not read has a way of its own.
        let urgent = Visit::open(&self.standing.folder).ok();
        // What was asked at another visit is not answered here.
        self.asked.clear();
        let known = self.output.end(Stream::Stdout);
        visit.follow(&run, Wanted::After(known), true).ok()?;
        loop {
            tokio::select! {
                tell = visit.next() => match tell {
                    Some(Tell::Output { stream, bytes, .. }) => self.output.append(stream, &bytes),
                    Some(Tell::Passing { stream, at, bytes }) => {
                        self.output.pass(stream, at, &bytes);
                    }
                    Some(Tell::Life(life)) => drop(self.living.send_replace(life)),
                    Some(Tell::Ended(ending)) => self.ending = Some(ending),
                    Some(Tell::Refused(reason)) => self.refused = Some(reason),
                    Some(Tell::Seen(seen)) => {
                        if let (Some(asked), Some(seen)) = (self.asked.pop_front(), seen) {
                            let _ = asked.send(seen);
                        }
                    }
                    Some(Tell::Jobs(_)) => {}
                    Some(Tell::NoSuchJob) | None => return Some(()),
                },
                word = words.recv() => match word {
                    None | Some(Word::Cancel) => return None,
                    Some(word) => self.pass_on((&visit, urgent.as_ref()), &run, word),
                },
            }
        }
    }

    fn pass_on(&mut self, (visit, urgent): (&Visit, Option<&Visit>), run: &str, word: Word) {
        let urgent = urgent.unwrap_or(visit);
        // Whoever has left needs not be told.
        let _ = match word {
            Word::Say(saying) => match saying {
                Saying::Write { ref bytes, .. } => {
                    let (backlog, length) = (self.backlog.clone(), bytes.len());
                    visit.say(run, saying, move || {
                        backlog.fetch_sub(length, Ordering::Relaxed);
                    })
                }
                Saying::CloseInput => visit.say(run, saying, || ()),
                _ => {
                    // It could not hear if somebody has stopped it.
                    urgent.wake();
                    urgent.say(run, saying, || ())
                }
            },
            Word::Look(question, asked) => {
                self.asked.push_back(asked);
                visit.look(run, question)
            }
            Word::Cancel | Word::Last | Word::Switch(..) => Ok(()),
        };
    }
}

/// Whether nobody is there, and nobody will be.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Takes in what is in the files and was not told, but for so many bytes that were lost.
async fn read_rest(standing: &Standing, output: &Output, lost: u64) {
    let (standing, output) = (standing.clone(), output.clone());
    let read = aside(move || {
        let (file, mut piece) = (open(&standing.output())?, vec![0; PIECE]);
        while output.cut(Stream::Stdout).is_none() {
            match file.read_at(&mut piece, output.end(Stream::Stdout))? {
                0 => break,
                length => output.append(Stream::Stdout, &piece[..length]),
            }
        }
        let known = output.end(Stream::Stdout);
        let (at, newest) = standing.newest_after(known, lost)?;
        if at > known || !newest.is_empty() {
            output.pass(Stream::Stdout, at, &newest);
        }
        io::Result::Ok(())
    });
    if let Ok(Err(error)) = read.await {
        tracing::warn!("the output of a detached job cannot be read: {error}");
    }
}
