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
use super::messages::{JobListing, MessageReader, OutputRange, Reply, Request, message};
use crate::request::Size;
use crate::run::Action;

/// A connection to a control socket. Sending never waits: the other side may be busy sending.
pub struct Connection {
    asks: mpsc::UnboundedSender<(Vec<u8>, Done)>,
    told: MessageReader<OwnedReadHalf>,
    sending: JoinHandle<()>,
    /// The process at the other end.
    pid: Option<i32>,
}

/// The other side denies access.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Called when something was sent.
type Done = Box<dyn FnOnce() + Send>;

impl Connection {
    /// Connects to the socket in a folder, if anyone serves it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let stream = UnixStream::from_std(connect(folder)?)?;
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (read, mut write) = stream.into_split();
        let (asks, mut asked) = mpsc::unbounded_channel::<(Vec<u8>, Done)>();
        let sending = tokio::spawn(async move {
            while let Some((bytes, done)) = asked.recv().await {
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
                done();
            }
        });
        Ok(Self { asks, told: MessageReader::new(read), sending, pid })
    }

    /// The process at the other end, if it is visible from here.
    pub fn pid(&self) -> Option<i32> {
        self.pid.filter(|pid| *pid > 0)
    }

    /// Continues that process, if it was stopped.
    pub fn wake(&self) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// All jobs there; the error has a [`Refused`] in it where we are not told.
    pub async fn list(&mut self) -> io::Result<Vec<JobListing>> {
        self.ask(&Request::List, || ())?;
        match self.told.next().await {
            Some(Reply::Jobs(jobs)) => Ok(jobs),
            Some(Reply::Refused(reason)) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, Refused(reason)))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Asks a job's keeper something; `Reply::Seen` is the answer.
    pub fn look(&self, run: &str, question: Question) -> io::Result<()> {
        self.ask(&Request::Look { run: run.to_owned(), question }, || ())
    }

    /// Gives a job's terminal another size.
    pub fn resize(&self, run: &str, size: Size) -> io::Result<()> {
        let Size { rows, columns } = size;
        self.look(run, Question::Resize { rows, columns })
    }

    /// Has told what a job has printed and, with `stay`, all that becomes of it.
    pub fn follow(&self, run: &str, wanted: OutputRange, stay: bool) -> io::Result<()> {
        self.ask(&Request::Follow { run: run.to_owned(), wanted, stay }, || ())
    }

    /// Does something with a job. `sent` is called when the request is on its way.
    pub fn say(
        &self,
        run: &str,
        saying: Action,
        sent: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.ask(&Request::Say { run: run.to_owned(), saying }, sent)
    }

    /// What is told next; nothing when the other side has left.
    pub async fn next(&mut self) -> Option<Reply> {
        self.told.next().await
    }

    /// Leaves when all that was asked and said is sent.
    pub async fn leave(self) {
        drop(self.asks);
        let _ = self.sending.await;
    }

    fn ask(&self, ask: &Request, sent: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let bytes = message(ask)?;
        self.asks.send((bytes, Box::new(sent))).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
