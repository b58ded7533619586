//! Serves one connection to our control socket.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcpz_runtime::spawn_blocking;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Register;
use super::messages::{
    ControlReply, ControlRequest, JobListing, MessageReader, OutputRange, message,
};
use crate::jobs::{Job, JobEnd, UseGuard};
use crate::run::{Life, RunAction};
use mcpz_output::{Filter, Output, Piece, Stop, Stream};

/// How much output to send at a time.
const PIECE: usize = 64 << 10;

/// How long outputs are searched. Nobody waits longer than that for an answer.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// The first and the longest pause between two attempts to write to a job that does not read.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(1);

struct Service {
    register: Register,
    write: OwnedWriteHalf,
    followed: Option<Followed>,
    /// Input that a job has no room for yet.
    pending_input: VecDeque<(Arc<Job>, RunAction)>,
    /// The pause before the next attempt.
    retry_pause: Duration,
    followers: watch::Sender<usize>,
}

/// How many bytes of each stream were sent.
struct Sent {
    stdout: u64,
    stderr: u64,
}

impl Sent {
    fn up_to(&mut self, stream: Stream) -> &mut u64 {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

/// A followed job, and what its follower knows of it.
struct Followed {
    job: Arc<Job>,
    sent: Sent,
    life: Option<Life>,
    stay: bool,
    _in_use: UseGuard,
    _follower_count: FollowerCount,
}

/// Counts one follower for as long as it exists.
struct FollowerCount(watch::Sender<usize>);

impl FollowerCount {
    fn new(followers: &watch::Sender<usize>) -> Self {
        followers.send_modify(|followers| *followers += 1);
        Self(followers.clone())
    }
}

impl Drop for FollowerCount {
    fn drop(&mut self) {
        self.0.send_modify(|followers| *followers -= 1);
    }
}

/// Serves a connection until it closes, or everything about the job it follows is sent.
pub async fn serve(stream: UnixStream, register: Register, followers: watch::Sender<usize>) {
    let (read, write) = stream.into_split();
    let (followed, pending_input) = (None, VecDeque::new());
    let mut service =
        Service { register, write, followed, pending_input, retry_pause: RETRY_PAUSE, followers };
    let mut requests = MessageReader::new(read);
    loop {
        let blocked = !service.pending_input.is_empty();
        let stay_open = tokio::select! {
            biased;
            request = requests.next(), if !blocked => match request {
                Some(request) => service.answer(request).await,
                None => return,
            },
            () = tokio::time::sleep(service.retry_pause), if blocked => {
                service.write_pending();
                Ok(!service.write.ready(Interest::WRITABLE).await.is_ok_and(|it| it.is_write_closed()))
            }
            () = wait_for_news(service.followed.as_ref()) => service.send_news().await,
        };
        if !stay_open.unwrap_or(false) {
            return;
        }
    }
}

/// Completes when there is something to report of a followed job.
async fn wait_for_news(followed: Option<&Followed>) {
    let Some(followed) = followed else { return std::future::pending().await };
    let job = &followed.job;
    let (mut arrived, mut life, mut ending) = (job.output.watch(), job.life(), job.watch_end());
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
    /// Whether there is output to send.
    fn has_more(&self) -> bool {
        let more = |stream, sent_up_to| self.job.output.end(stream) > sent_up_to;
        more(Stream::Stdout, self.sent.stdout) || more(Stream::Stderr, self.sent.stderr)
    }
}

impl Service {
    /// Handles a request. Returns whether to stay connected.
    async fn answer(&mut self, request: ControlRequest) -> io::Result<bool> {
        match request {
            ControlRequest::List => {
                let jobs = self.register.jobs();
                let listed = jobs.iter().map(|(owner, job)| JobListing::new(owner, job)).collect();
                self.send(&ControlReply::Jobs(listed)).await?;
            }
            ControlRequest::Follow { run, wanted, stay } => match self.find(&run) {
                Some(job) => {
                    let sent = wanted.from(&job.output);
                    let (_in_use, _follower_count) =
                        (job.begin_use(), FollowerCount::new(&self.followers));
                    let followed =
                        Followed { job, sent, life: None, stay, _in_use, _follower_count };
                    self.followed = Some(followed);
                }
                None => self.send(&ControlReply::NoSuchJob).await?,
            },
            ControlRequest::Look { run, question } => match self.find(&run) {
                Some(job) => {
                    let seen = job.controls().inspector().ask(question).await;
                    self.send(&ControlReply::Seen(seen)).await?;
                }
                None => self.send(&ControlReply::NoSuchJob).await?,
            },
            ControlRequest::Do { run, action } => match self.find(&run) {
                Some(job) => self.perform(job, action),
                None => self.send(&ControlReply::NoSuchJob).await?,
            },
            ControlRequest::Places => {
                let places = self.register.places();
                self.send(&ControlReply::Places(places)).await?;
            }
            ControlRequest::StopPlaces { name } => {
                let stopped = self.register.stop_places(&name).await;
                self.send(&ControlReply::StoppedPlaces(stopped)).await?;
            }
            ControlRequest::Outputs { pattern } => {
                let complete = self.send_outputs(pattern).await?;
                self.send(&ControlReply::OutputsEnd { complete }).await?;
            }
            ControlRequest::Read { run, stream, at } => {
                let kept = self.register.outputs().into_iter().find(|kept| *kept.run == run);
                match kept {
                    Some(kept) => drop(self.send_piece(kept.output, stream, at).await?),
                    None => self.send(&ControlReply::NoSuchJob).await?,
                }
            }
        }
        Ok(true)
    }

    fn find(&self, run: &str) -> Option<Arc<Job>> {
        self.register.jobs().into_iter().map(|(_, job)| job).find(|job| &*job.run == run)
    }

    fn perform(&mut self, job: Arc<Job>, action: RunAction) {
        match action {
            RunAction::Permit(_) | RunAction::Write { .. } | RunAction::CloseInput => {
                self.pending_input.push_back((job, action));
                self.write_pending();
            }
            RunAction::Signal(signal) => job.controls().signal(signal),
            RunAction::Stopping => job.controls().note_stop(),
            RunAction::Stop { grace } => {
                tokio::spawn(async move { job.stop(None, grace).await });
            }
        }
    }

    /// Writes pending input, as far as jobs have room for it.
    fn write_pending(&mut self) {
        while let Some((job, action)) = self.pending_input.pop_front() {
            match action {
                _ if job.is_gone() => {}
                RunAction::Write { bytes, person, before } => {
                    match job.controls().reserve(bytes.len()) {
                        Some(room) => room.write(bytes, person, before),
                        None => {
                            let action = RunAction::Write { bytes, person, before };
                            self.pending_input.push_front((job.clone(), action));
                            // It may take long until the job reads.
                            self.retry_pause = (self.retry_pause * 2).min(MAX_RETRY_PAUSE);
                            return;
                        }
                    }
                }
                RunAction::Permit(rules) => job.controls().permit(rules),
                _ => job.controls().close_input(),
            }
        }
        self.retry_pause = RETRY_PAUSE;
    }

    /// Sends what is new, and one piece of the output: requests must not wait for the end of a flood.
    async fn send_news(&mut self) -> io::Result<bool> {
        let Some(followed) = &mut self.followed else { return Ok(true) };
        let (job, stay) = (followed.job.clone(), followed.stay);
        let gone = job.is_gone();
        let life = job.life().borrow().clone();
        let changed = followed.life.replace(life.clone()).as_ref() != Some(&life);
        if changed {
            self.send(&ControlReply::Life(life)).await?;
        }
        self.send_output(&job, Stream::Stdout).await?;
        self.send_output(&job, Stream::Stderr).await?;
        if self.followed.as_ref().is_some_and(Followed::has_more) {
            return Ok(true);
        }
        if gone {
            self.send(&ControlReply::Ended(JobEnd::of(&job))).await?;
        }
        Ok(stay && !gone)
    }

    async fn send_output(&mut self, job: &Job, stream: Stream) -> io::Result<()> {
        let Some(followed) = &mut self.followed else { return Ok(()) };
        let at = *followed.sent.up_to(stream);
        if job.output.end(stream) <= at {
            return Ok(());
        }
        let next = self.send_piece(job.output.clone(), stream, at).await?;
        if let Some(followed) = &mut self.followed {
            *followed.sent.up_to(stream) = next;
        }
        Ok(())
    }

    /// Sends the next piece of an output, and returns the offset of the one after it.
    async fn send_piece(&mut self, output: Output, stream: Stream, at: u64) -> io::Result<u64> {
        let read = spawn_blocking(move || output.read_next(stream, at, PIECE));
        let Piece { at, bytes, kept } = read.await.map_err(io::Error::from).flatten()?;
        let next = at + bytes.len() as u64;
        let reply = match kept {
            true => ControlReply::Output { stream, at, bytes },
            false => ControlReply::Passing { stream, at, bytes },
        };
        self.send(&reply).await?;
        Ok(next)
    }

    /// Sends the outputs that match. Returns false if there was not enough time to search them all.
    async fn send_outputs(&mut self, pattern: Option<String>) -> io::Result<bool> {
        let Ok(filter) = Filter::new(pattern.as_deref(), None) else { return Ok(false) };
        let (filter, stop) = (pattern.map(|_| Arc::new(filter)), Stop::default());
        let until = Instant::now() + SEARCH_TIME;
        for kept in self.register.outputs() {
            let (wanted, stopped) = (filter.clone(), stop.clone());
            let mut search = spawn_blocking(move || kept.list(wanted.as_deref(), &stopped));
            let found = tokio::select! {
                found = &mut search => found,
                () = tokio::time::sleep_until(until) => {
                    stop.stop();
                    return Ok(false);
                }
            };
            // An output that cannot be read does not match.
            let Ok(Ok(found)) = found else { continue };
            if filter.is_none() || !found.lines.is_empty() {
                self.send(&ControlReply::Kept(found)).await?;
            }
        }
        Ok(true)
    }

    async fn send(&mut self, reply: &ControlReply) -> io::Result<()> {
        self.write.write_all(&message(reply)?).await
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
