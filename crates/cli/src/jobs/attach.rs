//! A person at the terminal of a job.
//!
//! What they type goes to the job and nowhere else; whoever reads the job is told that somebody typed,
//! not what.

use std::error::Error;
use std::io::{self, IsTerminal, Read, Write};

use mcpz_engine::{Saying, Shelf, Size, State, Tell, Visit, Wanted};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::JobsError;
use super::find::{Place, find};

/// Ctrl-], as telnet has it.
const LEAVE: u8 = 0x1d;

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

pub async fn attach(shelf: &Shelf, id: &str) -> Result<(), Box<dyn Error>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(JobsError::NoTerminal.into());
    }
    let (place, job) = find(shelf, id).await?;
    let Place::Desk(folder) = place else { return Err(JobsError::Ended(job.name).into()) };
    if job.state != State::Running {
        return Err(JobsError::Ended(job.name).into());
    }
    if !job.writable {
        return Err(JobsError::Deaf(job.name).into());
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "attached to {}; ctrl-] leaves", job.name)?;
    let mut visit = Visit::open(&folder).await?;
    visit.follow(&job.run, Wanted::Last(SHOWN), true)?;
    let raw = Raw::enter()?;
    if job.terminal {
        take_size(&visit, &job.run)?;
    }
    let mut resized = signal(SignalKind::window_change())?;
    let mut keys = keys();
    let left = loop {
        tokio::select! {
            tell = visit.next() => match tell {
                Some(Tell::Output { bytes, .. }) => {
                    stdout.write_all(&as_on_a_terminal(bytes, job.terminal))?;
                    stdout.flush()?;
                }
                Some(Tell::Ended(_)) | None => break false,
                Some(_) => {}
            },
            Some(()) = resized.recv(), if job.terminal => take_size(&visit, &job.run)?,
            typed = keys.recv() => match typed {
                None => break true,
                Some(bytes) => {
                    let (bytes, leave) = before_leaving(bytes);
                    if !bytes.is_empty() {
                        let bytes = if job.terminal { bytes } else { lines(bytes) };
                        visit.say(&job.run, Saying::Write { bytes, person: true }, || ())?;
                    }
                    if leave {
                        break true;
                    }
                }
            },
        }
    };
    visit.leave().await;
    drop(raw);
    let what = if left { "goes on" } else { "has ended" };
    writeln!(stdout, "\r\n{} {what}", job.name)?;
    Ok(())
}

/// Gives the job's terminal the size of ours.
fn take_size(visit: &Visit, run: &str) -> io::Result<()> {
    let size = tcgetwinsize(io::stdout())?;
    if size.ws_row == 0 || size.ws_col == 0 {
        return Ok(());
    }
    let size = Size { rows: size.ws_row, columns: size.ws_col };
    visit.say(run, Saying::Resize(size), || ())
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
