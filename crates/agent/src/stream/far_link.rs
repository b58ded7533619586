//! How the engine uses a stream: it has programs started, asks about files, and ends it.
//!
//!     FarLink ─ Spawn ─▶ stream            stream ─▶ Far ─ Order ─▶ FarRun ─ ProcessEvent ─▶ FarProcess
//!                                                                      ╚═ pipes ═ engine

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::codec::{Frame, FromPlace, MAGIC, PlaceFacts, ToPlace, VERSIONS};
use super::exchange::{Broken, Given, PATIENCE, Signs, exchange};
use super::far::Far;
use super::far_run::{FarProcess, FarRun};
use super::gathering::Gathering;
use super::incoming::Incoming;
use super::pipes::Violation;
use crate::error::LinkError;
use crate::frame::FrameError;
use crate::limits::Limits;
use crate::lookup::{Found, Lookup};
use crate::spawn_frame::{SpawnFrame, Unsent};

/// How long a place may take to end everything when it is asked to.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// How long a relay may take to end all runs.
const ENDING_TIME: Duration = Duration::from_secs(5);

/// How long it may take to find something out about the files there.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// How much of what a place printed instead of a greeting is shown.
const SHOWN_JUNK: usize = 500;

/// Why a place does not serve.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("it did not greet within {0:?}")]
    Late(Duration),
    #[error("it ended without a greeting{}", but_printed(.printed))]
    NoGreeting { printed: String },
    #[error("it does not greet{}", but_printed(.printed))]
    NotAnAgent { printed: String },
    #[error("its agent is of another version ({theirs:?} instead of {VERSIONS:?})")]
    Version { theirs: (u16, u16) },
    #[error(transparent)]
    Broken(#[from] Broken),
}

fn but_printed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", but printed: {text}") }
}

/// A connection to an agent in a place. Clones share it.
#[derive(Clone)]
pub struct FarLink {
    far: Arc<Far>,
    beat: Duration,
}

impl FarLink {
    /// Greets a relay, and serves the stream from then on. The place must greet within this time, and say something
    /// in return at every beat.
    pub async fn connect<S>(
        stream: S,
        patience: Duration,
        beat: Duration,
    ) -> Result<(Self, PlaceFacts), StreamError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let gathering = Gathering::new(reader).map_err(Broken::Failed)?;
        let mut incoming = Incoming::new(gathering);
        let greeted = timeout(patience, greet(&mut incoming, &mut writer, beat)).await;
        let facts = greeted.map_err(|_| StreamError::Late(patience)).flatten()?;
        let far = Arc::<Far>::default();
        let served = far.clone();
        tokio::spawn(async move {
            let signs = Signs { beat, message: ToPlace::Beat, given: Given::ByItself };
            let handle = |frame: Frame<'_, FromPlace>| served.handle(frame);
            let (backlog, outgoing) = (&served.backlog, &served.outgoing);
            let mut given_up = served.why_ended();
            tokio::select! {
                ended = exchange(&mut incoming, backlog, outgoing, &mut writer, signs, handle) => {
                    served.end(ended);
                }
                _ = given_up.wait_for(Option::is_some) => {}
            }
        });
        Ok((Self { far, beat }, facts))
    }

    /// Sets what commands start with. Must precede the first of them.
    pub fn prepare(&self, variables: Vec<(OsString, OsString)>, limits: Limits) {
        let _ = self.far.outgoing.message(ToPlace::Start { variables, limits });
    }

    /// Has a program started for an owner.
    pub fn send(&self, owner: u64, frame: SpawnFrame) -> Result<FarProcess, Unsent> {
        let (orders, received) = mpsc::unbounded_channel();
        let Some(run) = self.far.add_run(orders.clone()) else {
            return Err(Unsent { error: LinkError::Gone, frame });
        };
        let (events, happening) = mpsc::unbounded_channel();
        let (request, length) = (frame.bytes.clone(), frame.bytes.len());
        if self.far.outgoing.message(ToPlace::Spawn { run, owner, request }).is_err() {
            self.far.forget(run);
            return Err(Unsent { error: LinkError::TooLong(FrameError::TooLong(length)), frame });
        }
        FarRun::start(run, self.far.clone(), received, events);
        Ok(FarProcess::new(self.far.clone(), happening, orders, frame))
    }

    /// Whether it takes no more runs.
    pub fn is_closed(&self) -> bool {
        !self.far.takes_runs()
    }

    /// Why the stream ended, if it has.
    pub fn why_ended(&self) -> Option<Arc<str>> {
        self.far.why_ended().borrow().clone()
    }

    /// Whether it is us who want the stream to end.
    pub fn is_leaving(&self) -> bool {
        self.far.is_leaving()
    }

    /// Within which time everything in a place ends whose server it cannot hear any more.
    pub fn ends_within(&self) -> Duration {
        self.beat * PATIENCE + ENDING_TIME
    }

    /// Completes when the stream has ended.
    pub async fn ended(&self) {
        let _ = self.far.why_ended().wait_for(Option::is_some).await;
    }

    /// Asks about the files of the place. `None` if it cannot be asked.
    pub async fn look(&self, lookup: Lookup) -> Option<Found> {
        let (caller, found) = oneshot::channel();
        let asked = Asked { far: &self.far, id: self.far.add_lookup(caller)? };
        self.far.outgoing.message(ToPlace::Look { id: asked.id, lookup }).ok()?;
        timeout(LOOK_TIME, found).await.ok()?.ok()
    }

    /// Ends everything in the place, without waiting.
    pub fn hang_up(&self) {
        if self.far.leave() {
            let _ = self.far.outgoing.message(ToPlace::Bye);
        }
    }

    /// Ends everything in the place, and waits until it has.
    pub async fn close(&self) {
        self.hang_up();
        if timeout(CLOSE_TIME, self.ended()).await.is_err() {
            self.far.end(Err(Broken::Closed));
        }
    }
}

/// A lookup that somebody waits for.
struct Asked<'a> {
    far: &'a Far,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.far.forget_lookup(self.id);
    }
}

/// Exchanges greetings.
async fn greet<R, W>(
    incoming: &mut Incoming<R>,
    writer: &mut W,
    beat: Duration,
) -> Result<PlaceFacts, StreamError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut hello = MAGIC.to_vec();
    let message: Frame<'_, ToPlace> = Frame::Message(ToPlace::Hello { version: VERSIONS, beat });
    message.encode(&mut hello).map_err(Broken::from)?;
    // If it has ended already, what it printed tells why.
    let _ = writer.write_all(&hello).await;
    let _ = writer.flush().await;
    incoming.skip_junk().await.map_err(|(source, junk)| {
        let text = String::from_utf8_lossy(&junk[junk.len().saturating_sub(SHOWN_JUNK)..]);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let printed = lines.join("; ");
        match source.kind() {
            io::ErrorKind::InvalidData => StreamError::NotAnAgent { printed },
            // It did not read our greeting either.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                StreamError::NoGreeting { printed }
            }
            _ => Broken::Failed(source).into(),
        }
    })?;
    loop {
        match incoming.next::<FromPlace>().map_err(Broken::from)? {
            Some(Frame::Message(FromPlace::Hello { version: VERSIONS, facts })) => {
                return Ok(facts);
            }
            Some(Frame::Message(FromPlace::Hello { version, .. })) => {
                return Err(StreamError::Version { theirs: version });
            }
            Some(_) => return Err(Broken::from(Violation("it did not greet first")).into()),
            None => match incoming.fill().await.map_err(Broken::Failed)? {
                true => {}
                false => return Err(Broken::Closed.into()),
            },
        }
    }
}
