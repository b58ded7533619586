//! A run that a recorder keeps, as its owner's server sees it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot, watch};

use super::{Ending, Standing};
use crate::desk::{Saying, Tell, Visit, Wanted};
use crate::error::Error;
use crate::outcome::Outcome;
use crate::output::{Output, Stream};
use crate::run::{Life, Run, Word};

/// How much of the file is read at a time.
const PIECE: usize = 256 << 10;

struct Follower {
    standing: Standing,
    output: Output,
    living: watch::Sender<Life>,
    backlog: Arc<AtomicUsize>,
    /// What its recorder said at last.
    ending: Option<Ending>,
}

/// Follows a detached run; `output` reads the file its recorder writes.
pub fn follow(standing: Standing, output: Output) -> Run {
    let (answer, outcome) = oneshot::channel();
    let (words, heard) = mpsc::unbounded_channel();
    let backlog = Arc::new(AtomicUsize::new(0));
    let (living, life) = watch::channel(Life::default());
    let (id, input) = (Arc::from(standing.card.run.as_str()), standing.card.input);
    let run = Run::elsewhere(outcome, (words, backlog.clone()), life, (id, input), output.clone());
    let follower = Follower { standing, output, living, backlog, ending: None };
    tokio::spawn(follower.follow(answer, heard));
    run
}

impl Follower {
    async fn follow(
        mut self,
        answer: oneshot::Sender<Result<Outcome, Error>>,
        mut words: mpsc::UnboundedReceiver<Word>,
    ) {
        if let Ok(visit) = Visit::open(&self.standing.folder).await
            && self.attend(visit, &mut words).await.is_none()
        {
            return;
        }
        // The recorder has left, and everything it has to say is in its folder.
        self.read_rest().await;
        let standing = self.standing.clone();
        let written = tokio::task::spawn_blocking(move || standing.ending()).await.ok().flatten();
        let ending = self.ending.take().or(written).unwrap_or_else(Ending::lost);
        self.living.send_modify(|life| {
            life.pid = life.pid.or(ending.pid);
            life.stopped = ending.stopped;
            life.survivors = ending.survivors;
        });
        self.output.lose(ending.lost);
        self.output.finish();
        let _ = answer.send(match ending.outcome {
            Ok((end, usage)) => {
                let (id, output) = (Arc::from(self.standing.card.run.as_str()), self.output);
                let (background, warnings) = (Vec::new(), Vec::new());
                Ok(Outcome {
                    id,
                    end,
                    limit: ending.limit,
                    usage,
                    output,
                    background,
                    warnings,
                    job: None,
                    session: None,
                })
            }
            Err(text) => Err(Error::NotBegun(text)),
        });
    }

    /// Hears the recorder, and passes on what is wanted, until it leaves. Nothing if nobody here
    /// wants to know any more.
    async fn attend(
        &mut self,
        mut visit: Visit,
        words: &mut mpsc::UnboundedReceiver<Word>,
    ) -> Option<()> {
        let run = self.standing.card.run.clone();
        visit.follow(&run, Wanted::Everything, true).ok()?;
        loop {
            tokio::select! {
                tell = visit.next() => match tell {
                    Some(Tell::Output { stream, bytes }) => self.output.append(stream, &bytes),
                    Some(Tell::Life(life)) => drop(self.living.send_replace(life)),
                    Some(Tell::Ended(ending)) => self.ending = Some(ending),
                    Some(Tell::Jobs(_) | Tell::Hides(_)) => {}
                    Some(Tell::NoSuchJob) | None => return Some(()),
                },
                word = words.recv() => match word {
                    None | Some(Word::Cancel) => return None,
                    Some(word) => self.pass_on(&visit, &run, word).await,
                },
            }
        }
    }

    async fn pass_on(&self, visit: &Visit, run: &str, word: Word) {
        // Whoever has left needs not be told.
        let _ = match word {
            Word::Write { bytes, person } => {
                let (backlog, length) = (self.backlog.clone(), bytes.len());
                visit.say(run, Saying::Write { bytes, person }, move || {
                    backlog.fetch_sub(length, Ordering::Relaxed);
                })
            }
            Word::CloseInput => visit.say(run, Saying::CloseInput, || ()),
            Word::Resize(size) => visit.say(run, Saying::Resize(size), || ()),
            Word::Signal(signal) => self.say_at_once(run, Saying::Signal(signal)).await,
            Word::Stop { grace } => self.say_at_once(run, Saying::Stop { grace }).await,
            Word::Hides(asked) => {
                let (folder, run) = (self.standing.folder.clone(), run.to_owned());
                tokio::spawn(async move {
                    let hides = async { Visit::open(&folder).await?.hides(&run).await };
                    // What nobody can tell is kept to ourselves.
                    let _ = asked.send(hides.await.unwrap_or(true));
                });
                Ok(())
            }
            Word::Cancel | Word::Last | Word::Switch(..) => Ok(()),
        };
    }

    /// Says something that must not wait behind what the run does not read.
    async fn say_at_once(&self, run: &str, saying: Saying) -> io::Result<()> {
        Visit::open(&self.standing.folder).await?.say(run, saying, || ())
    }

    /// Takes in what is in the file and was not told.
    async fn read_rest(&self) {
        let (path, output) = (self.standing.output(), self.output.clone());
        let read = tokio::task::spawn_blocking(move || {
            let (file, mut piece) = (File::open(path)?, vec![0; PIECE]);
            loop {
                match file.read_at(&mut piece, output.kept_length(Stream::Stdout))? {
                    0 => return io::Result::Ok(()),
                    length => output.append(Stream::Stdout, &piece[..length]),
                }
            }
        });
        if let Ok(Err(error)) = read.await {
            tracing::warn!("the output of a detached job cannot be read: {error}");
        }
    }
}
