//! The transport over standard input and output: one JSON-RPC message on each line.
//!
//! It replaces the library's own, which ignores a broken line, drops one that is too long and reads through a thread.
//! Here every line that is not a message gets an answer, and the service loop never sees what it could not handle:
//! messages before the first request, and a second request with the id of one still running.
//!
//! The end of the input is not the end of the conversation. Running requests are still answered, for as long as
//! `finish_time` and while somebody can read stdout. Then the server ends their commands, and answers these too. The
//! service loop hears of the end only when the client has everything: from then on rmcp passes on no progress, a
//! handler that sends some never finishes, and after five seconds rmcp gives up on the answers that are missing.

mod descriptors;
mod outstanding;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcpz_runtime::{Blocking, spawn_blocking};
use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ServerNotification,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catch_panic::Panicked;
use crate::lines::Lines;
use crate::memory::{Direction, MemoryAccount, RequestMemory, Reservation};
use crate::message::{self, Fault, Message};
use descriptors::{Sink, Source, open_stdin, open_stdout, wait_for_readers_until, wait_until_read};
use outstanding::{Outstanding, Unwritten};

/// A request that is answered only when its client stops listening.
const LISTEN: &str = "subscriptions/listen";

/// How many faults may wait to be written.
const MAX_FAULTS: usize = 16;

pub struct Stdio {
    lines: Lines<Source>,
    waiting: VecDeque<Result<Message, Fault>>,
    /// A large line. It is here because the future that waits for it may be dropped.
    parsing: Option<Blocking<Vec<Result<Message, Fault>>>>,
    /// The memory of the last line, until every message in it is answered.
    reservation: Option<Arc<Reservation>>,
    writer: Writer,
    faults: mpsc::Sender<(Fault, Unwritten)>,
    /// Whether a request has opened the conversation.
    opened: bool,
    /// How long running requests may take after the end of the input.
    finish_time: Duration,
    /// When that time is over, once the input has ended.
    finish_by: Option<Instant>,
}

#[derive(Clone)]
struct Writer {
    sink: Arc<tokio::sync::Mutex<Sink>>,
    account: Arc<MemoryAccount>,
    outstanding: Arc<Outstanding>,
    closed: CancellationToken,
}

impl Stdio {
    /// This process's own standard input and output.
    pub fn open(finish_time: Duration, account: Arc<MemoryAccount>) -> io::Result<Self> {
        let writer = Writer {
            sink: Arc::new(tokio::sync::Mutex::new(open_stdout()?)),
            account,
            outstanding: Arc::default(),
            closed: CancellationToken::new(),
        };
        let (faults, received) = mpsc::channel(MAX_FAULTS);
        tokio::spawn(write_faults(writer.clone(), received));
        Ok(Self {
            lines: Lines::new(open_stdin()?),
            waiting: VecDeque::new(),
            parsing: None,
            reservation: None,
            writer,
            faults,
            opened: false,
            finish_time,
            finish_by: None,
        })
    }

    /// Cancelled when the client has closed its end, and either has every answer or waited too long for one.
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
            let reservation = self.writer.account.reserve(Direction::Incoming, line.len());
            self.reservation = Some(Arc::new(reservation));
            match line.len() > message::LARGE {
                true => self.parsing = Some(spawn_blocking(move || message::read(line))),
                false => self.waiting = message::read(line).into(),
            }
        }
        self.waiting.pop_front()
    }

    /// Whether the service loop may see this message, or why not.
    fn admit(&mut self, message: &mut Message) -> Result<bool, Fault> {
        let Writer { account, outstanding, .. } = &self.writer;
        match message {
            JsonRpcMessage::Request(request) => {
                self.opened |= opens(&request.request);
                let will_be_answered = request.request.method() != LISTEN;
                let memory = RequestMemory::new(account.clone(), self.reservation.clone());
                if outstanding.note_request(&request.id, will_be_answered, memory.clone()) {
                    request.request.extensions_mut().insert(memory);
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
                    outstanding.note_cancelled(id);
                }
            }
            _ => {}
        }
        Ok(self.opened)
    }

    /// Waits until the client has everything. When that takes too long, the server ends the commands (see `closed`),
    /// and their requests are answered then.
    async fn finish(&self, by: Instant) {
        let Writer { outstanding, closed, .. } = &self.writer;
        tokio::select! {
            biased;
            () = outstanding.nothing() => closed.cancel(),
            () = wait_for_readers_until(by) => {
                closed.cancel();
                outstanding.nothing().await;
            }
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
        while self.finish_by.is_none() {
            // Reserved before a line is read, because this future may be dropped while it waits. A client that does
            // not read what is wrong with its messages gets no further ones read.
            let Ok(fault_slot) = self.faults.clone().reserve_owned().await else {
                return None;
            };
            // Nor does a client that does not read its answers.
            if self.waiting.is_empty() && self.parsing.is_none() {
                self.reservation = None;
            }
            self.writer.account.wait_until_readable().await;
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
                    fault_slot.send((fault, self.writer.outstanding.message()));
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
async fn write_faults(writer: Writer, mut faults: mpsc::Receiver<(Fault, Unwritten)>) {
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
        let unwritten = self.outstanding.message();
        let memory = answered.and_then(|id| self.outstanding.note_answered(id));
        let is_progress = matches!(
            &message,
            JsonRpcMessage::Notification(it)
                if matches!(it.notification, ServerNotification::ProgressNotification(_))
        );
        self.write(message, (unwritten, memory)).await?;
        if is_progress {
            wait_until_read().await;
        }
        Ok(())
    }

    async fn write(
        &self,
        message: TxJsonRpcMessage<RoleServer>,
        (_unwritten, memory): (Unwritten, Option<RequestMemory>),
    ) -> io::Result<()> {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        drop(message);
        let _reservation = self.account.reserve(Direction::Outgoing, line.len());
        memory.inspect(RequestMemory::release_answer);
        let mut sink = self.sink.lock().await;
        let written = match sink.write_all(&line).await {
            // A file is written by a thread, which has finished only when it says so.
            Ok(()) => sink.flush().await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.closed.cancel();
        }
        written
    }
}
