//! A person at the terminal of a job.
//!
//! What they type goes to the job and nowhere else; whoever reads the job is told that somebody typed,
//! not what.

use std::error::Error;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use mcpz_engine::{Listed, Saying, Shelf, Size, Standing, Tell, Visit, Wanted};
use mcpz_output::Stream;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::find::find;
use super::{JobsError, print_rest};

/// Ctrl-], as telnet has it.
const LEAVE: u8 = 0x1d;

/// How long it may take until what was typed last is on its way.
const FAREWELL: Duration = Duration::from_secs(1);

/// How much of what was printed before is shown.
const SHOWN: u64 = 64 << 10;

/// Our own terminal, which passes on every key until this is dropped.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

pub async fn attach(shelf: &Shelf, id: &str) -> Result<ExitCode, Box<dyn Error>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(JobsError::NoTerminal.into());
    }
    let (place, job) = find(shelf, id).await?;
    let folder = place.desk(&job)?;
    if !job.writable {
        return Err(JobsError::Deaf(job.name).into());
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "attached to {}; ctrl-] leaves", job.name)?;
    let visit = Visit::open(&folder)?;
    visit.follow(&job.run, Wanted::Last(SHOWN), true)?;
    let raw = Raw::enter()?;
    let mut sitting = Sitting { visit, job, told: 0 };
    let left = sitting.last().await;
    // Whatever becomes of the rest: the terminal is its owner's again.
    drop(raw);
    let Sitting { visit, job, told } = sitting;
    let left = left?;
    if left == Left::Ended
        && let Some(standing) = Standing::open(folder).filter(|job| job.ending().is_some())
    {
        print_rest(&standing, told)?;
    }
    let _ = timeout(FAREWELL, visit.leave()).await;
    let what = if left == Left::Ended { "has ended" } else { "goes on" };
    writeln!(stdout, "\n{} {what}", job.name)?;
    Ok(match left {
        Left::Signalled(number) => ExitCode::from(128 + number),
        Left::Asked | Left::Ended => ExitCode::SUCCESS,
    })
}

/// Why somebody does not sit at a job's terminal any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Asked,
    Ended,
    Signalled(u8),
}

struct Sitting {
    visit: Visit,
    job: Listed,
    /// Up to where in its output all was shown.
    told: u64,
}

impl Sitting {
    async fn last(&mut self) -> Result<Left, Box<dyn Error>> {
        if self.job.terminal {
            take_size(&self.visit, &self.job.run)?;
        }
        let (mut stdout, mut keys) = (io::stdout(), keys());
        let mut resized = signal(SignalKind::window_change())?;
        let mut ends = [1, 2, 3, 15].map(|number| (number, signal(SignalKind::from_raw(number))));
        loop {
            tokio::select! {
                tell = self.visit.next() => match tell {
                    Some(
                        Tell::Output { stream: Stream::Stdout, at, bytes }
                        | Tell::Passing { stream: Stream::Stdout, at, bytes },
                    ) => {
                        self.told = at + bytes.len() as u64;
                        stdout.write_all(&as_on_a_terminal(bytes, self.job.terminal))?;
                        stdout.flush()?;
                    }
                    Some(Tell::Ended(_)) | None => return Ok(Left::Ended),
                    Some(_) => {}
                },
                number = any(&mut ends) => return Ok(Left::Signalled(number as u8)),
                Some(()) = resized.recv(), if self.job.terminal => {
                    take_size(&self.visit, &self.job.run)?;
                }
                typed = keys.recv() => {
                    let Some(bytes) = typed else { return Ok(Left::Asked) };
                    if self.pass_on(bytes)? {
                        return Ok(Left::Asked);
                    }
                }
            }
        }
    }

    /// Has what was typed written to the job. True when that was the key that leaves.
    fn pass_on(&self, bytes: Vec<u8>) -> io::Result<bool> {
        let (bytes, leave) = before_leaving(bytes);
        if !bytes.is_empty() {
            let bytes = if self.job.terminal { bytes } else { lines(bytes) };
            let saying = Saying::Write { bytes, person: true, before: None };
            self.visit.say(&self.job.run, saying, || ())?;
        }
        Ok(leave)
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
fn take_size(visit: &Visit, run: &str) -> io::Result<()> {
    let size = tcgetwinsize(io::stdout())?;
    if size.ws_row == 0 || size.ws_col == 0 {
        return Ok(());
    }
    let size = Size { rows: size.ws_row, columns: size.ws_col };
    visit.resize(run, size)
}

/// What somebody types, as it comes.
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

/// What was typed before the key that leaves, and whether that was typed.
fn before_leaving(mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    match bytes.iter().position(|byte| *byte == LEAVE) {
        Some(at) => {
            bytes.truncate(at);
            (bytes, true)
        }
        None => (bytes, false),
    }
}

/// What a job without a terminal is given for the key enter.
fn lines(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().map(|byte| if byte == b'\r' { b'\n' } else { byte }).collect()
}

/// What a job without a terminal prints, as our raw one needs it.
fn as_on_a_terminal(bytes: Vec<u8>, terminal: bool) -> Vec<u8> {
    if terminal {
        return bytes;
    }
    let crlf = |byte: u8| if byte == b'\n' { vec![b'\r', b'\n'] } else { vec![byte] };
    bytes.into_iter().flat_map(crlf).collect()
}
