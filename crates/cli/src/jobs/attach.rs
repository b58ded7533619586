//! `mcpz jobs attach`: connects this terminal to a job.
//!
//! What the person types goes to the job and nowhere else. A model that reads the job learns that somebody typed,
//! not what.

use std::error::Error;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use mcpz_engine::{
    Connection, ControlReply, JobFolder, JobListing, JobsFolder, OutputRange, RunAction,
    TerminalSize,
};
use mcpz_output::Stream;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::find::find;
use super::{JobsError, print_rest};

/// Ctrl-], as in telnet.
const DETACH_KEY: u8 = 0x1d;

/// How long it may take to send what was typed last.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes of earlier output to show.
const EARLIER: u64 = 64 << 10;

/// Our terminal in raw mode, until this is dropped.
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

pub async fn attach(shelf: &JobsFolder, id: &str) -> Result<ExitCode, Box<dyn Error>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(JobsError::NoTerminal.into());
    }
    let (location, job) = find(shelf, id).await?;
    let folder = location.running(&job)?;
    if !job.writable {
        return Err(JobsError::NoInput(job.name).into());
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "attached to {}; Ctrl-] detaches", job.name)?;
    let visit = Connection::open(&folder)?;
    visit.follow(&job.run, OutputRange::Last(EARLIER), true)?;
    let raw = RawMode::enter()?;
    let mut attachment = Attachment { visit, job, shown: 0 };
    let detached = attachment.run().await;
    // Restores the terminal whatever happens next.
    drop(raw);
    let Attachment { visit, job, shown } = attachment;
    let detached = detached?;
    if detached == Detached::JobEnded
        && let Some(standing) = JobFolder::open(folder).filter(|job| job.read_end().is_some())
    {
        print_rest(&standing, shown, &mut stdout)?;
    }
    let _ = timeout(FLUSH_TIMEOUT, visit.leave()).await;
    let what = if detached == Detached::JobEnded { "has ended" } else { "is still running" };
    writeln!(stdout, "\n{} {what}", job.name)?;
    Ok(match detached {
        Detached::BySignal(number) => ExitCode::from(128 + number),
        Detached::ByKey | Detached::JobEnded => ExitCode::SUCCESS,
    })
}

/// Why the terminal was detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detached {
    ByKey,
    JobEnded,
    BySignal(u8),
}

struct Attachment {
    visit: Connection,
    job: JobListing,
    /// The offset up to which its output was shown.
    shown: u64,
}

impl Attachment {
    async fn run(&mut self) -> Result<Detached, Box<dyn Error>> {
        if self.job.terminal {
            copy_size(&self.visit, &self.job.run)?;
        }
        let (mut stdout, mut keys) = (io::stdout(), keys());
        let mut resized = signal(SignalKind::window_change())?;
        let mut ends = [1, 2, 3, 15].map(|number| (number, signal(SignalKind::from_raw(number))));
        loop {
            tokio::select! {
                tell = self.visit.next() => match tell {
                    Some(
                        ControlReply::Output { stream: Stream::Stdout, at, bytes }
                        | ControlReply::Passing { stream: Stream::Stdout, at, bytes },
                    ) => {
                        self.shown = at + bytes.len() as u64;
                        stdout.write_all(&as_on_a_terminal(bytes, self.job.terminal))?;
                        stdout.flush()?;
                    }
                    Some(ControlReply::Ended(_)) | None => return Ok(Detached::JobEnded),
                    Some(_) => {}
                },
                number = any(&mut ends) => return Ok(Detached::BySignal(number as u8)),
                Some(()) = resized.recv(), if self.job.terminal => {
                    copy_size(&self.visit, &self.job.run)?;
                }
                typed = keys.recv() => {
                    let Some(bytes) = typed else { return Ok(Detached::ByKey) };
                    if self.send_keys(bytes)? {
                        return Ok(Detached::ByKey);
                    }
                }
            }
        }
    }

    /// Sends what was typed to the job. True if it contains the key that detaches.
    fn send_keys(&self, bytes: Vec<u8>) -> io::Result<bool> {
        let (bytes, detach) = before_detach(bytes);
        if !bytes.is_empty() {
            let bytes = if self.job.terminal { bytes } else { lines(bytes) };
            let saying = RunAction::Write { bytes, person: true, before: None };
            self.visit.say(&self.job.run, saying, || ())?;
        }
        Ok(detach)
    }
}

/// The number of the first signal that comes.
async fn any(signals: &mut [(i32, io::Result<Signal>)]) -> i32 {
    let waits = signals.iter_mut().filter_map(|(number, signal)| {
        let signal = signal.as_mut().ok()?;
        Some(Box::pin(async move {
            signal.recv().await;
            *number
        }))
    });
    let mut waits: Vec<_> = waits.collect();
    std::future::poll_fn(|context| {
        let ready = waits.iter_mut().find_map(|wait| match wait.as_mut().poll(context) {
            Poll::Ready(number) => Some(number),
            Poll::Pending => None,
        });
        ready.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Gives the job's terminal the size of ours.
fn copy_size(visit: &Connection, run: &str) -> io::Result<()> {
    let size = tcgetwinsize(io::stdout())?;
    if size.ws_row == 0 || size.ws_col == 0 {
        return Ok(());
    }
    let size = TerminalSize { rows: size.ws_row, columns: size.ws_col };
    visit.resize(run, size)
}

/// What is typed, as it arrives.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (sender, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = io::stdin().lock().read(&mut buffer) {
            if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    keys
}

/// What was typed before the key that detaches, and whether that key was typed.
fn before_detach(mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    match bytes.iter().position(|byte| *byte == DETACH_KEY) {
        Some(at) => {
            bytes.truncate(at);
            (bytes, true)
        }
        None => (bytes, false),
    }
}

/// Turns the Enter key into a line end, for a job without a terminal.
fn lines(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().map(|byte| if byte == b'\r' { b'\n' } else { byte }).collect()
}

/// Adds carriage returns to the output of a job without a terminal, as raw mode needs them.
fn as_on_a_terminal(bytes: Vec<u8>, terminal: bool) -> Vec<u8> {
    if terminal {
        return bytes;
    }
    let crlf = |byte: u8| if byte == b'\n' { vec![b'\r', b'\n'] } else { vec![byte] };
    bytes.into_iter().flat_map(crlf).collect()
}
