//! A connection to the control socket of another process.

use std::io;
use std::path::Path;

use mcpz_agent::Question;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::connect;
use super::messages::{
    ControlReply, ControlRequest, JobListing, MessageReader, OutputListing, OutputRange,
    PlaceListing, message,
};
use crate::request::TerminalSize;
use crate::run::RunAction;
use mcpz_output::Stream;

/// A connection to a control socket. Sending never waits, because the other side may be busy sending.
pub struct Connection {
    requests: mpsc::UnboundedSender<(Vec<u8>, OnSent)>,
    replies: MessageReader<OwnedReadHalf>,
    sending: JoinHandle<()>,
    /// The process at the other end.
    pid: Option<i32>,
}

/// The other side denies access.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AccessDenied(pub String);

/// Called when a request was sent.
type OnSent = Box<dyn FnOnce() + Send>;

impl Connection {
    /// Connects to the socket in a folder, if anyone serves it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let stream = UnixStream::from_std(connect(folder)?)?;
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (read, mut write) = stream.into_split();
        let (requests, mut outgoing) = mpsc::unbounded_channel::<(Vec<u8>, OnSent)>();
        let sending = tokio::spawn(async move {
            while let Some((bytes, on_sent)) = outgoing.recv().await {
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
                on_sent();
            }
        });
        Ok(Self { requests, replies: MessageReader::new(read), sending, pid })
    }

    /// The process at the other end, if it is visible from here.
    pub fn pid(&self) -> Option<i32> {
        self.pid.filter(|pid| *pid > 0)
    }

    /// Continues that process, if someone has stopped it.
    pub fn wake(&self) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Lists all jobs there. If access is denied, the error contains [`AccessDenied`].
    pub async fn list(&mut self) -> io::Result<Vec<JobListing>> {
        self.send(&ControlRequest::List, || ())?;
        match self.replies.next().await {
            Some(ControlReply::Jobs(jobs)) => Ok(jobs),
            Some(ControlReply::Refused(reason)) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, AccessDenied(reason)))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Lists all places there.
    pub async fn places(&mut self) -> io::Result<Vec<PlaceListing>> {
        self.send(&ControlRequest::Places, || ())?;
        match self.replies.next().await {
            Some(ControlReply::Places(places)) => Ok(places),
            Some(ControlReply::Refused(reason)) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, AccessDenied(reason)))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Ends the places with this name there, and returns how many there were.
    pub async fn stop_places(&mut self, name: &str) -> io::Result<usize> {
        self.send(&ControlRequest::StopPlaces { name: name.to_owned() }, || ())?;
        match self.replies.next().await {
            Some(ControlReply::StoppedPlaces(stopped)) => Ok(stopped),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Asks for the outputs kept there or, with a pattern, for those with lines that match. Call `next_output` for
    /// each of them.
    pub fn search_outputs(&self, pattern: Option<&str>) -> io::Result<()> {
        self.send(&ControlRequest::Outputs { pattern: pattern.map(str::to_owned) }, || ())
    }

    /// The next of the outputs that were asked for, or whether those were all. An older process hangs up.
    pub async fn next_output(&mut self) -> io::Result<Result<OutputListing, bool>> {
        match self.replies.next().await {
            Some(ControlReply::Kept(found)) => Ok(Ok(found)),
            Some(ControlReply::OutputsEnd { complete }) => Ok(Err(complete)),
            Some(ControlReply::Refused(reason)) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, AccessDenied(reason)))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Asks for a piece of a kept output. `ControlReply::Output` or `Passing` is the answer; it is empty at the end.
    pub fn read_output(&self, run: &str, stream: Stream, at: u64) -> io::Result<()> {
        self.send(&ControlRequest::Read { run: run.to_owned(), stream, at }, || ())
    }

    /// Asks a job's keeper something. `ControlReply::Seen` is the answer.
    pub fn look(&self, run: &str, question: Question) -> io::Result<()> {
        self.send(&ControlRequest::Look { run: run.to_owned(), question }, || ())
    }

    /// Resizes a job's terminal.
    pub fn resize(&self, run: &str, size: TerminalSize) -> io::Result<()> {
        let TerminalSize { rows, columns } = size;
        self.look(run, Question::Resize { rows, columns })
    }

    /// Requests a job's output and, with `stay`, everything that happens to it from now on.
    pub fn follow(&self, run: &str, wanted: OutputRange, stay: bool) -> io::Result<()> {
        self.send(&ControlRequest::Follow { run: run.to_owned(), wanted, stay }, || ())
    }

    /// Does something with a job. Calls `sent` when the request is on its way.
    pub fn say(
        &self,
        run: &str,
        action: RunAction,
        sent: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.send(&ControlRequest::Do { run: run.to_owned(), action }, sent)
    }

    /// The next reply, or `None` when the other side has left.
    pub async fn next(&mut self) -> Option<ControlReply> {
        self.replies.next().await
    }

    /// Closes the connection once everything is sent.
    pub async fn leave(self) {
        drop(self.requests);
        let _ = self.sending.await;
    }

    fn send(
        &self,
        request: &ControlRequest,
        sent: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let bytes = message(request)?;
        self.requests.send((bytes, Box::new(sent))).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
