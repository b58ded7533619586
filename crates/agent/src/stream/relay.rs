//! The place's end of a stream: starts an ordinary agent there, and passes everything on.
//!
//!     stream ─▶ Relay ─ Order ─▶ RelayedRun ─ Process ═ keeper
//!     stream ◀─ Outgoing ◀───────────┘
//!
//! The stream is standard input and output, or a socket that the server shares with the place.
//!
//! In a container it is the first process. When the stream ends, for whatever reason, it ends all runs, then itself.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_runtime::spawn_blocking;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::backlog::{Backlog, Waiting};
use super::codec::{Frame, FromPlace, MAGIC, PlaceFacts, ToPlace, VERSIONS};
use super::exchange::{Broken, Given, Signs, exchange};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::patient::Patient;
use super::pipes::Arrival;
use super::relayed::{Order, RelayedRun};
use crate::error::LinkError;
use crate::frame::{Failure, Stage};
use crate::limits::Limits;
use crate::lookup::look_up;
use crate::near_link::NearLink;
use crate::near_process::NearProcess;
use crate::own_program::OWN_PROGRAM;
use crate::spawn_frame::{SpawnFrame, Unsent};

/// How long the last word may take to be sent.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// How long a server may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(30);

/// The length of what the server says on standard input to a relay that may come by a socket instead.
pub const TOKEN_LENGTH: usize = 32;

/// What the server answers to the right one.
pub const WELCOME: &[u8; 1] = b"\n";

/// What the relay prints if it cannot come by the socket. Like everything before the greeting, it is skipped.
const NO_SOCKET: &[u8] = b"\n";

/// Why a relay ended although the server had not said goodbye.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("cannot set up the relay")]
    Setup(#[source] io::Error),
    #[error("no server has greeted this relay")]
    NoGreeting,
    #[error("the server speaks version {0:?} of the protocol, this relay {VERSIONS:?}")]
    Version((u16, u16)),
    #[error("lost the server")]
    Broken(#[from] Broken),
}

/// Serves the stream on standard input and output until it ends, or that on a socket, if there is one. When this
/// returns, nothing that was started here is left. It also ends when it is told to. Must be called within a runtime
/// with one thread, by a process that inherits orphans.
pub async fn serve_stream(
    facts: PlaceFacts,
    socket: Option<&Path>,
    told: impl Future<Output = ()>,
) -> Result<(), RelayError> {
    let (mut stdin, mut stdout) = take_stdio().map_err(RelayError::Setup)?;
    if let Some(socket) = socket {
        if let Ok(socket) = connect(socket, &mut stdin).await {
            let (reader, writer) = socket.into_split();
            let ended = async {
                tokio::select! {
                    () = told => {}
                    () = read_to_end(stdin) => {}
                }
            };
            let served = serve(facts, reader, writer, ended).await;
            // Standard output stays open until now, as the server watches it.
            drop(stdout);
            return served;
        }
        stdout.write_all(NO_SOCKET).await.map_err(RelayError::Setup)?;
    }
    serve(facts, stdin, stdout, told).await
}

async fn serve(
    facts: PlaceFacts,
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    told: impl Future<Output = ()>,
) -> Result<(), RelayError> {
    let mut incoming = Incoming::new(reader);
    let greeting = timeout(GREETING_TIME, greeting(&mut incoming)).await;
    let (theirs, beat) = greeting.ok().flatten().ok_or(RelayError::NoGreeting)?;
    let outgoing = Arc::new(Outgoing::default());
    writer.write_all(MAGIC).await.map_err(RelayError::Setup)?;
    let hello = FromPlace::Hello { version: VERSIONS, facts };
    outgoing.message(hello).map_err(Broken::from)?;
    let mut relay = Relay::new(outgoing.clone());
    let backlog = relay.backlog.clone();
    let served = match theirs == VERSIONS {
        true => {
            let signs = Signs { beat, message: FromPlace::Beat, given: Given::InReturn };
            let handle = |frame: Frame<'_, ToPlace>| Ok(relay.handle(frame));
            let exchange = exchange(&mut incoming, &backlog, &outgoing, &mut writer, signs, handle);
            tokio::select! {
                served = exchange => served.map_err(Into::into),
                () = told => Ok(()),
            }
        }
        false => Err(RelayError::Version(theirs)),
    };
    relay.close().await;
    if served.is_ok() {
        outgoing.message(FromPlace::Bye).map_err(Broken::from)?;
    }
    outgoing.close();
    let _ = timeout(GOODBYE_TIME, outgoing.write_to(&mut writer)).await;
    served
}

/// Connects to the server's socket, and repeats the token that comes on standard input, which nobody else can know.
async fn connect(socket: &Path, stdin: &mut Receiver) -> io::Result<UnixStream> {
    let mut socket = UnixStream::connect(socket).await?;
    let mut token = [0; TOKEN_LENGTH];
    stdin.read_exact(&mut token).await?;
    socket.write_all(&token).await?;
    // If the token is wrong, the server closes the connection.
    socket.read_exact(&mut [0; WELCOME.len()]).await?;
    Ok(socket)
}

/// Completes when nothing more can come.
async fn read_to_end(mut stdin: Receiver) {
    while let Ok(1..) = stdin.read(&mut [0; 64]).await {}
}

/// The server's greeting: its versions, and how often it wants to hear something.
async fn greeting(
    incoming: &mut Incoming<impl AsyncRead + Unpin>,
) -> Option<((u16, u16), Duration)> {
    incoming.skip_junk().await.ok()?;
    loop {
        match incoming.next::<ToPlace>().ok()? {
            Some(Frame::Message(ToPlace::Hello { version, beat })) => return Some((version, beat)),
            Some(_) => return None,
            None => incoming.fill().await.ok().filter(|filled| *filled)?,
        };
    }
}

struct Relay {
    /// What commands start with, once the server has said that.
    start: Option<(Vec<(OsString, OsString)>, Limits)>,
    link: Option<NearLink>,
    runs: Runs,
    outgoing: Arc<Outgoing>,
    backlog: Arc<Backlog>,
}

/// The runs that are alive, by their numbers.
type Runs = Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<(Order, Waiting)>>>>;

impl Relay {
    fn new(outgoing: Arc<Outgoing>) -> Self {
        Self { start: None, link: None, runs: Runs::default(), outgoing, backlog: Arc::default() }
    }

    fn handle(&mut self, frame: Frame<'_, ToPlace>) -> ControlFlow<()> {
        match Arrival::of(frame) {
            Ok((run, arrival)) => self.order(run, Order::Arrived(arrival)),
            Err(message) => return self.receive(message),
        }
        ControlFlow::Continue(())
    }

    fn receive(&mut self, message: ToPlace) -> ControlFlow<()> {
        match message {
            ToPlace::Start { variables, limits } => self.start = Some((variables, limits)),
            ToPlace::Spawn { run, owner, request } => self.spawn(run, owner, request),
            ToPlace::Run { run, request } => self.order(run, Order::Request(request)),
            ToPlace::Drop { run } => drop(lock(&self.runs).remove(&run)),
            ToPlace::Look { id, lookup } => {
                // Folders of the `PATH` may be far away, and nobody else should wait for them.
                let outgoing = self.outgoing.clone();
                spawn_blocking(move || {
                    let found = look_up(&lookup);
                    let _ = outgoing.message(FromPlace::Found { id, found });
                });
            }
            ToPlace::Hello { .. } | ToPlace::Beat => {}
            ToPlace::Bye => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Passes something on to a run. It may have ended meanwhile.
    fn order(&self, run: u64, order: Order) {
        if let Some(orders) = lock(&self.runs).get(&run) {
            let _ = orders.send((order, self.backlog.add()));
        }
    }

    fn spawn(&mut self, run: u64, owner: u64, request: Vec<u8>) {
        let started = match SpawnFrame::received(request) {
            Some(frame) => self.send(owner, frame),
            None => Err(Errno::PROTO.into()),
        };
        let relayed = RelayedRun::new(run, self.outgoing.clone());
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::AGAIN.raw_os_error());
                return relayed.fail(Failure { stage: Stage::Resources, errno });
            }
        };
        let (orders, received) = mpsc::unbounded_channel();
        lock(&self.runs).insert(run, orders);
        let runs = self.runs.clone();
        tokio::spawn(async move {
            relayed.relay(process, received).await;
            lock(&runs).remove(&run);
        });
    }

    /// Has a program started by the agent, or by another one if that was killed.
    fn send(&mut self, owner: u64, mut frame: SpawnFrame) -> io::Result<NearProcess> {
        for _ in 0..2 {
            match self.link()?.send(owner, frame) {
                Ok(process) => return Ok(process),
                Err(Unsent { error: LinkError::Gone, frame: unsent }) => frame = unsent,
                Err(Unsent { error, .. }) => return Err(io_error(error)),
            }
        }
        Err(Errno::AGAIN.into())
    }

    fn link(&mut self) -> io::Result<&NearLink> {
        if self.link.as_ref().is_none_or(NearLink::is_closed) {
            let (variables, limits) = self.start.as_ref().ok_or(Errno::PROTO)?;
            let link =
                NearLink::start(Path::new(OWN_PROGRAM), variables, *limits).map_err(io_error)?;
            self.link = Some(link);
        }
        self.link.as_ref().ok_or(Errno::AGAIN.into())
    }

    /// Ends all runs, and waits until they are gone.
    async fn close(&mut self) {
        lock(&self.runs).clear();
        if let Some(link) = &self.link {
            link.close().await;
        }
    }
}

fn io_error(error: LinkError) -> io::Error {
    match error {
        LinkError::Start(source) | LinkError::Ask(source) => source,
        other => io::Error::other(other),
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the stream off standard input and output, which programs inherit.
fn take_stdio() -> io::Result<(Receiver, Patient)> {
    let stdin = moved(io::stdin().as_fd())?;
    let stdout = moved(io::stdout().as_fd())?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((Receiver::from_owned_fd_unchecked(stdin)?, Patient::new(stdout)?))
}

fn moved(from: std::os::fd::BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let fd = fcntl_dupfd_cloexec(from, 3)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}
