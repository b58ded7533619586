//! The transport over standard input and output: a JSON-RPC message a line.
//!
//! Takes the place of the library's own, which answers nothing to a broken line, drops one that is
//! too long and reads through a thread. Here every line that is not a message is answered, and
//! what the service loop could not bear is kept from it: messages before the first request, and a
//! second request with the id of one still running.
//!
//! The end of the input is not the end of the conversation: what was asked is still answered. The
//! service loop is told of the end only when the client has everything, so that it goes on writing.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{is_all_read, path_of};
use mcpz_runtime::{Aside, aside};
use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ServerNotification,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fstat};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::caught::Panicked;
use crate::lines::Lines;
use crate::memory::{Account, Held, Taken, Way};
use crate::message::{self, Fault, Message};
use crate::owed::{Owed, Unwritten};
use crate::watcher::LAST_WORDS;

type Source = Box<dyn AsyncRead + Send + Sync + Unpin>;
type Sink = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// The request that is answered only when its client does not want to hear any more.
const LISTEN: &str = "subscriptions/listen";

/// How many complaints may wait to be written.
const COMPLAINTS: usize = 16;

/// Between two looks whether somebody can still read what we write.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Between two looks whether progress has been read: the first pause, which doubles, and the longest.
const SOON: Duration = Duration::from_millis(2);
const LATER: Duration = Duration::from_millis(32);

pub struct Stdio {
    lines: Lines<Source>,
    waiting: VecDeque<Result<Message, Fault>>,
    /// A large line. Kept here because whoever waits for it may be dropped.
    parsing: Option<Aside<Vec<Result<Message, Fault>>>>,
    /// What the last line takes, until all in it is answered.
    held: Option<Arc<Held>>,
    writer: Writer,
    complaints: mpsc::Sender<(Fault, Unwritten)>,
    /// Whether a request has opened the conversation.
    opened: bool,
    /// How long what was asked may take once there is nothing more to read.
    finish_time: Duration,
    /// When that time is over, once it has begun.
    finish_by: Option<Instant>,
}

#[derive(Clone)]
struct Writer {
    sink: Arc<tokio::sync::Mutex<Sink>>,
    account: Arc<Account>,
    owed: Arc<Owed>,
    closed: CancellationToken,
}

impl Stdio {
    /// This process's own standard input and output.
    pub fn open(finish_time: Duration, account: Arc<Account>) -> io::Result<Self> {
        let writer = Writer {
            sink: Arc::new(tokio::sync::Mutex::new(open_stdout()?)),
            account,
            owed: Arc::default(),
            closed: CancellationToken::new(),
        };
        let (complaints, faults) = mpsc::channel(COMPLAINTS);
        tokio::spawn(complain(writer.clone(), faults));
        let (lines, waiting) = (Lines::new(open_stdin()?), VecDeque::new());
        let (opened, finish_by, held, parsing) = (false, None, None, None);
        Ok(Self {
            lines,
            waiting,
            parsing,
            held,
            writer,
            complaints,
            opened,
            finish_time,
            finish_by,
        })
    }

    /// Told when the client has closed its end, and either has all it asked for or has to wait too
    /// long for it.
    pub fn closed(&self) -> CancellationToken {
        self.writer.closed.clone()
    }

    async fn next(&mut self) -> Option<Result<Message, Fault>> {
        while self.waiting.is_empty() {
            if let Some(parsing) = &mut self.parsing {
                let failed = |_| vec![Err(Fault::new(Panicked.into(), None))];
                self.waiting = parsing.await.unwrap_or_else(failed).into();
                self.parsing = None;
                continue;
            }
            let line = self.lines.next().await?;
            self.held = Some(Arc::new(self.writer.account.hold(Way::Arriving, line.len())));
            match line.len() > message::LARGE {
                true => self.parsing = Some(aside(move || message::read(line))),
                false => self.waiting = message::read(line).into(),
            }
        }
        self.waiting.pop_front()
    }

    /// Whether the service loop may see this message, or why not.
    fn admit(&mut self, message: &mut Message) -> Result<bool, Fault> {
        let owed = &self.writer.owed;
        match message {
            JsonRpcMessage::Request(request) => {
                self.opened |= opens(&request.request);
                // Who listens is answered when they stop.
                let will_be_answered = request.request.method() != LISTEN;
                let taken = Taken::new(self.writer.account.clone(), self.held.clone());
                if owed.note_request(&request.id, will_be_answered, taken.clone()) {
                    request.request.extensions_mut().insert(taken);
                    return Ok(true);
                }
                let text = "Invalid Request: a request with this id is still running";
                let error = ErrorData::invalid_request(text, None);
                return Err(Fault::new(error, Some(request.id.clone())));
            }
            JsonRpcMessage::Notification(notification) if self.opened => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    owed.note_cancelled(id);
                }
            }
            _ => {}
        }
        Ok(self.opened)
    }

    /// Waits until the client has all it is owed. What takes too long is ended by whoever waits for
    /// us to be closed, and is answered then.
    async fn finish(&self, by: Instant) {
        let Writer { owed, closed, .. } = &self.writer;
        tokio::select! {
            biased;
            () = owed.nothing() => closed.cancel(),
            () = over(by) => {
                closed.cancel();
                owed.nothing().await;
            }
        }
    }
}

/// Done at that time, or when nobody can read what we write any more.
async fn over(by: Instant) {
    while Instant::now() < by && !nobody_reads(rustix::stdio::stdout()) {
        sleep_until(by.min(Instant::now() + LOOK_AGAIN)).await;
    }
}

/// Waits until the client has read all that was written, if it does so soon: what is told of a call and its
/// answer must not be read at once (see `watcher.rs`).
async fn until_read(stdout: BorrowedFd<'_>) {
    let (until, mut pause) = (Instant::now() + LAST_WORDS, SOON);
    while Instant::now() < until && !is_all_read(stdout) {
        tokio::time::sleep(pause).await;
        pause = LATER.min(2 * pause);
    }
}

/// Whether the other end of a pipe or socket is gone.
fn nobody_reads(stdout: BorrowedFd<'_>) -> bool {
    let mut looked = [PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut looked, Some(&Timespec::default())).is_ok() && looked[0].revents().intersects(gone)
}

/// Whether the service loop takes this request for the beginning of a conversation.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.protocol_version().is_some()
                && meta.client_info().is_some()
                && meta.client_capabilities().is_some()
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.writer.clone().send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        while self.finish_by.is_none() {
            // Before anything is taken, as this future may be dropped while it waits. A client that
            // does not read what is wrong with its messages is not read either.
            let Ok(complaint) = self.complaints.clone().reserve_owned().await else {
                return None;
            };
            // Nor is one that does not read what it asked for.
            if self.waiting.is_empty() && self.parsing.is_none() {
                self.held = None;
            }
            self.writer.account.wait_for_any().await;
            let Some(next) = self.next().await else {
                self.finish_by = Some(Instant::now() + self.finish_time);
                break;
            };
            let admitted = match next {
                Ok(mut message) => self.admit(&mut message).map(|fine| fine.then_some(message)),
                Err(fault) => Err(fault),
            };
            match admitted {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(fault) => {
                    tracing::debug!("{}", fault.error.message);
                    complaint.send((fault, self.writer.owed.message()));
                }
            }
        }
        self.finish(self.finish_by?).await;
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.sink.lock().await.shutdown().await
    }
}

/// Tells the client what is wrong with its messages.
async fn complain(writer: Writer, mut faults: mpsc::Receiver<(Fault, Unwritten)>) {
    while let Some((Fault { error, id }, unwritten)) = faults.recv().await {
        let _ = writer.write(JsonRpcMessage::error(*error, id), (unwritten, None)).await;
    }
}

impl Writer {
    async fn send(self, message: TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let unwritten = self.owed.message();
        let taken = answered.and_then(|id| self.owed.note_answered(id));
        let is_progress = matches!(
            &message,
            JsonRpcMessage::Notification(it)
                if matches!(it.notification, ServerNotification::ProgressNotification(_))
        );
        self.write(message, (unwritten, taken)).await?;
        if is_progress {
            until_read(rustix::stdio::stdout()).await;
        }
        Ok(())
    }

    async fn write(
        &self,
        message: TxJsonRpcMessage<RoleServer>,
        (_unwritten, taken): (Unwritten, Option<Taken>),
    ) -> io::Result<()> {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        drop(message);
        let _held = self.account.hold(Way::Leaving, line.len());
        taken.inspect(Taken::answered);
        let mut sink = self.sink.lock().await;
        let written = match sink.write_all(&line).await {
            // A thread may write to a file, and has not done so before it says so.
            Ok(()) => sink.flush().await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.closed.cancel();
        }
        written
    }
}

/// Standard input, read without a thread where the system can tell us when there is more.
fn open_stdin() -> io::Result<Source> {
    let stdin = rustix::stdio::stdin();
    Ok(match FileType::from_raw_mode(fstat(stdin)?.st_mode) {
        FileType::Fifo => {
            let fd = match reopen(stdin, OpenOptions::new().read(true)) {
                Ok(fd) => fd,
                Err(_) => stdin.try_clone_to_owned()?,
            };
            Box::new(pipe::Receiver::from_owned_fd(fd)?)
        }
        FileType::Socket => Box::new(socket(stdin.try_clone_to_owned()?)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

fn open_stdout() -> io::Result<Sink> {
    let stdout = rustix::stdio::stdout();
    Ok(match FileType::from_raw_mode(fstat(stdout)?.st_mode) {
        FileType::Fifo => {
            let fd = match reopen(stdout, OpenOptions::new().write(true)) {
                Ok(fd) => fd,
                Err(_) => stdout.try_clone_to_owned()?,
            };
            Box::new(pipe::Sender::from_owned_fd(fd)?)
        }
        FileType::Socket => Box::new(socket(stdout.try_clone_to_owned()?)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

/// Opens a pipe a second time. Whether it blocks is a property of the opening, and ours may be
/// shared with others who do not expect theirs to change.
fn reopen(pipe: BorrowedFd<'_>, options: &mut OpenOptions) -> io::Result<OwnedFd> {
    Ok(options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path_of(pipe))?.into())
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
