//! One visitor at our desk.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;

use super::Register;
use super::letters::{Ask, Listed, Mailbox, Saying, Tell, Wanted, letter};
use crate::detached::Ending;
use crate::jobs::{Job, Place, Use};
use crate::output::{Output, Stream};
use crate::run::Life;

/// How much output is told at a time.
const PIECE: usize = 64 << 10;

/// Between two tries to write to a job that does not read.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

struct Service {
    register: Register,
    write: OwnedWriteHalf,
    followed: Option<Followed>,
    /// What a job is to read, and has no room for.
    waiting: VecDeque<(Arc<Job>, Vec<u8>, bool)>,
}

/// A job somebody follows, and what they know of it.
struct Followed {
    job: Arc<Job>,
    place: Place,
    life: Option<Life>,
    stay: bool,
    _use: Use,
}

/// Serves a visitor until they leave, or all is told of the job they follow.
pub async fn serve(stream: UnixStream, register: Register) {
    let (read, write) = stream.into_split();
    let mut service = Service { register, write, followed: None, waiting: VecDeque::new() };
    let mut asks = Mailbox::new(read);
    loop {
        let blocked = !service.waiting.is_empty();
        let going_on = tokio::select! {
            ask = asks.next(), if !blocked => match ask {
                Some(ask) => service.answer(ask).await,
                None => return,
            },
            () = tokio::time::sleep(LOOK_AGAIN), if blocked => {
                service.write_waiting();
                Ok(true)
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
    let (mut arrived, mut life) = (job.output.watch(), job.life());
    let known = followed.life.as_ref();
    if known != Some(&*life.borrow_and_update()) || job.is_gone() {
        return;
    }
    let more = |stream, place| job.output.kept_length(stream) > place;
    arrived.mark_unchanged();
    if more(Stream::Stdout, followed.place.stdout) || more(Stream::Stderr, followed.place.stderr) {
        return;
    }
    tokio::select! {
        changed = arrived.changed() => drop(changed),
        Ok(()) = life.changed() => {}
        () = job.changed() => {}
    }
}

impl Service {
    /// Whether the conversation goes on.
    async fn answer(&mut self, ask: Ask) -> io::Result<bool> {
        match ask {
            Ask::List => {
                let jobs = (self.register)();
                let listed = jobs.iter().map(|(owner, job)| Listed::new(owner, job)).collect();
                self.tell(&Tell::Jobs(listed)).await?;
            }
            Ask::Follow { run, wanted, stay } => match self.find(&run) {
                Some(job) => {
                    let place = wanted.from(&job.output);
                    let _use = job.begin_use();
                    self.followed = Some(Followed { job, place, life: None, stay, _use });
                }
                None => self.tell(&Tell::NoSuchJob).await?,
            },
            Ask::Hides { run } => match self.find(&run) {
                Some(job) => {
                    let hides = job.remote().hides_input().await;
                    self.tell(&Tell::Hides(hides)).await?;
                }
                None => self.tell(&Tell::NoSuchJob).await?,
            },
            Ask::Say { run, saying } => match self.find(&run) {
                Some(job) => self.say(job, saying),
                None => self.tell(&Tell::NoSuchJob).await?,
            },
        }
        Ok(true)
    }

    fn find(&self, run: &str) -> Option<Arc<Job>> {
        (self.register)().into_iter().map(|(_, job)| job).find(|job| &*job.run == run)
    }

    fn say(&mut self, job: Arc<Job>, saying: Saying) {
        match saying {
            Saying::Write { bytes, person } => {
                self.waiting.push_back((job, bytes, person));
                self.write_waiting();
            }
            Saying::CloseInput => job.remote().close_input(),
            Saying::Resize(size) => job.resize(size),
            Saying::Signal(signal) => job.remote().signal(signal),
            Saying::Stop { grace } => {
                tokio::spawn(async move { job.stop(None, grace).await });
            }
        }
    }

    fn write_waiting(&mut self) {
        while let Some((job, bytes, person)) = self.waiting.pop_front() {
            match job.remote().reserve(bytes.len()) {
                _ if job.is_gone() => {}
                Some(room) => room.write_for(bytes, person),
                None => {
                    self.waiting.push_front((job.clone(), bytes, person));
                    return;
                }
            }
        }
    }

    async fn tell_news(&mut self) -> io::Result<bool> {
        let Some(followed) = &mut self.followed else { return Ok(true) };
        let (job, stay) = (followed.job.clone(), followed.stay);
        let gone = job.is_gone();
        let life = job.life().borrow().clone();
        let changed = followed.life.replace(life.clone()).as_ref() != Some(&life);
        if changed {
            self.tell(&Tell::Life(life)).await?;
        }
        self.tell_output(&job).await?;
        if gone {
            self.tell(&Tell::Ended(Ending::of(&job))).await?;
        }
        Ok(stay && !gone)
    }

    async fn tell_output(&mut self, job: &Job) -> io::Result<()> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            loop {
                let Some(followed) = &mut self.followed else { return Ok(()) };
                let place = match stream {
                    Stream::Stdout => &mut followed.place.stdout,
                    Stream::Stderr => &mut followed.place.stderr,
                };
                let (output, at) = (job.output.clone(), *place);
                if output.kept_length(stream) <= at {
                    break;
                }
                let read = tokio::task::spawn_blocking(move || output.read_at(stream, at, PIECE));
                let bytes = read.await.map_err(io::Error::from).flatten()?;
                *place += bytes.len() as u64;
                self.tell(&Tell::Output { stream, bytes }).await?;
            }
        }
        Ok(())
    }

    async fn tell(&mut self, tell: &Tell) -> io::Result<()> {
        self.write.write_all(&letter(tell)?).await
    }
}

impl Wanted {
    fn from(self, output: &Output) -> Place {
        let from = |stream| match self {
            Self::Everything => 0,
            Self::Last(bytes) => output.kept_length(stream).saturating_sub(bytes),
            Self::Nothing => u64::MAX,
        };
        Place { stdout: from(Stream::Stdout), stderr: from(Stream::Stderr) }
    }
}

impl Listed {
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
