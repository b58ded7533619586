//! The transport over standard input and output: a JSON-RPC message a line.
//!
//! Takes the place of the library's own, which answers nothing to a broken line, drops one that is
//! too long and reads through a thread. Here every line that is not a message is answered, and
//! what the service loop could not bear is kept from it: messages before the first request, and a
//! second request with the id of one still running.

use std::collections::{HashSet, VecDeque};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, JsonRpcMessage, RequestId};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rustix::fs::{FileType, OFlags, fstat};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::lines::Lines;
use crate::message::{self, Fault, Message};

type Source = Box<dyn AsyncRead + Send + Sync + Unpin>;
type Sink = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// How many complaints may wait to be written.
const COMPLAINTS: usize = 16;

pub struct Stdio {
    lines: Lines<Source>,
    waiting: VecDeque<Result<Message, Fault>>,
    writer: Writer,
    complaints: mpsc::Sender<Fault>,
    /// Whether a request has opened the conversation.
    opened: bool,
}

#[derive(Clone)]
struct Writer {
    sink: Arc<tokio::sync::Mutex<Sink>>,
    /// Requests that were passed on and not answered yet. One that was cancelled never is, and its
    /// id is never free again: the service loop could take an old answer for a new one.
    running: Arc<Mutex<HashSet<RequestId>>>,
    closed: CancellationToken,
}

impl Stdio {
    pub fn new(source: Source, sink: Sink) -> Self {
        let writer = Writer {
            sink: Arc::new(tokio::sync::Mutex::new(sink)),
            running: Arc::default(),
            closed: CancellationToken::new(),
        };
        let (complaints, faults) = mpsc::channel(COMPLAINTS);
        tokio::spawn(complain(writer.clone(), faults));
        let lines = Lines::new(source);
        Self { lines, waiting: VecDeque::new(), writer, complaints, opened: false }
    }

    /// This process's own standard input and output.
    pub fn open() -> io::Result<Self> {
        Ok(Self::new(open_stdin()?, open_stdout()?))
    }

    /// Told when the client has closed its end.
    pub fn closed(&self) -> CancellationToken {
        self.writer.closed.clone()
    }

    async fn next(&mut self) -> Option<Result<Message, Fault>> {
        while self.waiting.is_empty() {
            self.waiting = message::read(self.lines.next().await?).into();
        }
        self.waiting.pop_front()
    }

    /// Whether the service loop may see this message, or why not.
    fn admit(&mut self, message: &Message) -> Result<bool, Fault> {
        let mut running = self.writer.running.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            JsonRpcMessage::Request(request) => {
                self.opened |= opens(&request.request);
                if running.insert(request.id.clone()) {
                    return Ok(true);
                }
                let text = "Invalid Request: a request with this id is still running";
                let error = ErrorData::invalid_request(text, None);
                Err(Fault::new(error, Some(request.id.clone())))
            }
            _ => Ok(self.opened),
        }
    }
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
        loop {
            // Before anything is taken, as this future may be dropped while it waits. A client that
            // does not read what is wrong with its messages is not read either.
            let Ok(complaint) = self.complaints.clone().reserve_owned().await else {
                return None;
            };
            let Some(next) = self.next().await else {
                self.writer.closed.cancel();
                return None;
            };
            let admitted = match next {
                Ok(message) => self.admit(&message).map(|fine| fine.then_some(message)),
                Err(fault) => Err(fault),
            };
            match admitted {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(fault) => {
                    tracing::debug!("{}", fault.error.message);
                    complaint.send(fault);
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.sink.lock().await.shutdown().await
    }
}

/// Tells the client what is wrong with its messages.
async fn complain(writer: Writer, mut faults: mpsc::Receiver<Fault>) {
    while let Some(Fault { error, id }) = faults.recv().await {
        let _ = writer.clone().write(JsonRpcMessage::error(*error, id)).await;
    }
}

impl Writer {
    async fn send(self, message: TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
        self.write(message).await
    }

    async fn write(self, message: TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        let written = self.sink.lock().await.write_all(&line).await;
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
            let fd = match reopen("/proc/self/fd/0", OpenOptions::new().read(true)) {
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
            let fd = match reopen("/proc/self/fd/1", OpenOptions::new().write(true)) {
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
fn reopen(path: &str, options: &mut OpenOptions) -> io::Result<OwnedFd> {
    Ok(options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?.into())
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
