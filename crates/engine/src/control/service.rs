//! One connection to our control socket.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcpz_runtime::aside;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;

use super::Register;
use super::messages::{JobListing, MessageReader, OutputRange, Reply, Request, message};
use crate::jobs::{Job, JobEnd, Use};
use crate::run::{Action, Life};
use mcpz_output::{Output, Piece, Stream};

/// How much output is told at a time.
const PIECE: usize = 64 << 10;

/// Between two tries to write to a job that does not read, at first and at last.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_SELDOM: Duration = Duration::from_secs(1);

struct Service {
    register: Register,
    write: OwnedWriteHalf,
    followed: Option<Followed>,
    /// What a job is to read, and has no room for.
    waiting: VecDeque<(Arc<Job>, Action)>,
    /// How long until that is tried again.
    patience: Duration,
    followers: watch::Sender<usize>,
}

/// How many bytes of each stream were passed on, as they came.
struct Sent {
    stdout: u64,
    stderr: u64,
}

/// A job somebody follows, and what they know of it.
struct Followed {
    job: Arc<Job>,
    sent: Sent,
    life: Option<Life>,
    stay: bool,
    _use: Use,
    _counted: Counted,
}

/// Counts one more for as long as it is there.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(followers: &watch::Sender<usize>) -> Self {
        followers.send_modify(|followers| *followers += 1);
        Self(followers.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|followers| *followers -= 1);
    }
}

/// Serves a connection until it closes, or everything about the job it follows is told.
pub async fn serve(stream: UnixStream, register: Register, followers: watch::Sender<usize>) {
    let (read, write) = stream.into_split();
    let (followed, waiting) = (None, VecDeque::new());
    let mut service =
        Service { register, write, followed, waiting, patience: LOOK_AGAIN, followers };
    let mut asks = MessageReader::new(read);
    loop {
        let blocked = !service.waiting.is_empty();
        let going_on = tokio::select! {
            biased;
            ask = asks.next(), if !blocked => match ask {
                Some(ask) => service.answer(ask).await,
                None => return,
            },
            () = tokio::time::sleep(service.patience), if blocked => {
                service.write_waiting();
                Ok(!service.write.ready(Interest::WRITABLE).await.is_ok_and(|it| it.is_write_closed()))
            }
            () = news(service.followed.as_ref()) => service.tell_news().await,
        };
        if !going_on.unwrap_or(false) {
            return;
        }
    }
}

/// Done when there is something to tell of a job that is followed.
async fn news(followed: Option<&Followed>) {
    let Some(followed) = followed else { return std::future::pending().await };
    let job = &followed.job;
    let (mut arrived, mut life, mut ending) = (job.output.watch(), job.life(), job.ending());
    arrived.mark_unchanged();
    ending.mark_unchanged();
    let known = followed.life.as_ref();
    if known != Some(&*life.borrow_and_update()) || job.is_gone() || followed.has_more() {
        return;
    }
    tokio::select! {
        changed = arrived.changed() => drop(changed),
        Ok(()) = life.changed() => {}
        Ok(()) = ending.changed() => {}
    }
}

impl Followed {
    /// Whether there is output that was not told.
    fn has_more(&self) -> bool {
        let more = |stream, place| self.job.output.end(stream) > place;
        more(Stream::Stdout, self.sent.stdout) || more(Stream::Stderr, self.sent.stderr)
    }
}

impl Service {
    /// Whether the conversation goes on.
    async fn answer(&mut self, ask: Request) -> io::Result<bool> {
        match ask {
            Request::List => {
                let jobs = (self.register)();
                let listed = jobs.iter().map(|(owner, job)| JobListing::new(owner, job)).collect();
                self.tell(&Reply::Jobs(listed)).await?;
            }
            Request::Follow { run, wanted, stay } => match self.find(&run) {
                Some(job) => {
                    let sent = wanted.from(&job.output);
                    let (_use, _counted) = (job.begin_use(), Counted::new(&self.followers));
                    let followed = Followed { job, sent, life: None, stay, _use, _counted };
                    self.followed = Some(followed);
                }
                None => self.tell(&Reply::NoSuchJob).await?,
            },
            Request::Look { run, question } => match self.find(&run) {
                Some(job) => {
                    let seen = job.controls().inspector().ask(question).await;
                    self.tell(&Reply::Seen(seen)).await?;
                }
                None => self.tell(&Reply::NoSuchJob).await?,
            },
            Request::Say { run, saying } => match self.find(&run) {
                Some(job) => self.say(job, saying),
                None => self.tell(&Reply::NoSuchJob).await?,
            },
        }
        Ok(true)
    }

    fn find(&self, run: &str) -> Option<Arc<Job>> {
        (self.register)().into_iter().map(|(_, job)| job).find(|job| &*job.run == run)
    }

    fn say(&mut self, job: Arc<Job>, saying: Action) {
        match saying {
            Action::Write { .. } | Action::CloseInput => {
                self.waiting.push_back((job, saying));
                self.write_waiting();
            }
            Action::Signal(signal) => job.controls().signal(signal),
            Action::Stopping => job.controls().note_stop(),
            Action::Stop { grace } => {
                tokio::spawn(async move { job.stop(None, grace).await });
            }
        }
    }

    /// Gives jobs what they are to read, as far as they have room for it.
    fn write_waiting(&mut self) {
        while let Some((job, saying)) = self.waiting.pop_front() {
            match saying {
                _ if job.is_gone() => {}
                Action::Write { bytes, person, before } => {
                    match job.controls().reserve(bytes.len()) {
                        Some(room) => room.write(bytes, person, before),
                        None => {
                            let saying = Action::Write { bytes, person, before };
                            self.waiting.push_front((job.clone(), saying));
                            // It may be long until it reads.
                            self.patience = (self.patience * 2).min(LOOK_SELDOM);
                            return;
                        }
                    }
                }
                _ => job.controls().close_input(),
            }
        }
        self.patience = LOOK_AGAIN;
    }

    /// Tells what is new, and of the output a piece, so that nobody who asks for something waits for
    /// the end of a flood.
    async fn tell_news(&mut self) -> io::Result<bool> {
        let Some(followed) = &mut self.followed else { return Ok(true) };
        let (job, stay) = (followed.job.clone(), followed.stay);
        let gone = job.is_gone();
        let life = job.life().borrow().clone();
        let changed = followed.life.replace(life.clone()).as_ref() != Some(&life);
        if changed {
            self.tell(&Reply::Life(life)).await?;
        }
        self.tell_output(&job, Stream::Stdout).await?;
        self.tell_output(&job, Stream::Stderr).await?;
        if self.followed.as_ref().is_some_and(Followed::has_more) {
            return Ok(true);
        }
        if gone {
            self.tell(&Reply::Ended(JobEnd::of(&job))).await?;
        }
        Ok(stay && !gone)
    }

    async fn tell_output(&mut self, job: &Job, stream: Stream) -> io::Result<()> {
        let Some(followed) = &mut self.followed else { return Ok(()) };
        let place = match stream {
            Stream::Stdout => &mut followed.sent.stdout,
            Stream::Stderr => &mut followed.sent.stderr,
        };
        let (output, at) = (job.output.clone(), *place);
        if output.end(stream) <= at {
            return Ok(());
        }
        let read = aside(move || output.read_on(stream, at, PIECE));
        let Piece { at, bytes, kept } = read.await.map_err(io::Error::from).flatten()?;
        *place = at + bytes.len() as u64;
        let tell = match kept {
            true => Reply::Output { stream, at, bytes },
            false => Reply::Passing { stream, at, bytes },
        };
        self.tell(&tell).await
    }

    async fn tell(&mut self, tell: &Reply) -> io::Result<()> {
        self.write.write_all(&message(tell)?).await
    }
}

impl OutputRange {
    fn from(self, output: &Output) -> Sent {
        let from = |stream| match self {
            Self::Everything => 0,
            Self::After(bytes) if stream == Stream::Stdout => bytes,
            Self::After(_) => 0,
            Self::Last(bytes) => output.end(stream).saturating_sub(bytes),
            Self::Nothing => u64::MAX,
        };
        Sent { stdout: from(Stream::Stdout), stderr: from(Stream::Stderr) }
    }
}

impl JobListing {
    fn new(owner: &str, job: &Job) -> Self {
        Self {
            run: job.run.to_string(),
            name: job.id().to_owned(),
            owner: owner.to_owned(),
            command: job.command.clone(),
            state: job.state(),
            pid: job.pid(),
            started_at: job.started_at,
            duration: job.duration(),
            terminal: job.has_terminal(),
            detached: job.is_detached(),
            writable: job.can_be_written_to(),
        }
    }
}
